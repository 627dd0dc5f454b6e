#include "core/drain/being_deleted.h"

#include <algorithm>
#include <string>

#include "core/cluster/pod_role.h"
#include "core/drain/eligibility.h"

namespace loadline {
namespace {

// Each slot once.
void SortByName(const ClusterState& cluster, std::vector<Slot>* slots) {
  std::sort(slots->begin(), slots->end(), [&](Slot a, Slot b) { return cluster.name(a) < cluster.name(b); });
  slots->erase(std::unique(slots->begin(), slots->end()), slots->end());
}

}  // namespace

std::optional<Slot> FindDeletingNode(const ClusterState& cluster, const DeletingNode& node) {
  const std::optional<Slot> slot = cluster.Find(node.node);
  if (!slot.has_value()) return std::nullopt;
  const std::string& uid = cluster.traits(*slot).uid;
  if (!node.uid.empty() && !uid.empty() && uid != node.uid) return std::nullopt;
  return slot;
}

std::vector<Slot> RememberedDeleting(const ClusterState& cluster, std::span<const DeletingNode> remembered) {
  std::vector<Slot> slots;
  for (const DeletingNode& node : remembered) {
    if (const std::optional<Slot> slot = FindDeletingNode(cluster, node)) slots.push_back(*slot);
  }
  SortByName(cluster, &slots);
  return slots;
}

std::vector<Slot> NodesBeingDeleted(const ClusterState& cluster, std::span<const DeletingNode> remembered,
                                    int64_t now_s) {
  std::vector<Slot> slots = RememberedDeleting(cluster, remembered);
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (cluster.Occupied(Slot{i}) && IsBeingDeleted(cluster, Slot{i}, now_s)) slots.push_back(Slot{i});
  }
  SortByName(cluster, &slots);
  return slots;
}

bool IsReplaced(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  return !GivesWay(traits) && !BelongsToNode(shape, objects);
}

bool NeedsAnotherNode(const PodShape& shape, const ClusterObjects& objects) {
  return !shape.finished && !TraitsOf(shape).deleted_s.has_value() && IsReplaced(shape, objects);
}

}  // namespace loadline
