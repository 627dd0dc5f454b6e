#include "core/observe/move_objects.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace loadline {

uint64_t KeyOfPod(const ClusterState& cluster, Slot slot, size_t position) {
  const NodePods& pods = cluster.pods(slot);
  if (!pods.uid(position).empty()) return FleetKey(pods.uid(position));
  const PodShape& shape = cluster.pod_shapes()[pods.pods()[position].shape];
  return FleetKey(absl::StrCat(shape.namespace_name, "/", pods.name(position)));
}

NodesByKey NodesByKeyOf(const ClusterState& cluster) {
  NodesByKey nodes;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (cluster.Occupied(Slot{i})) nodes.emplace(KeyOfNode(cluster, Slot{i}), Slot{i});
  }
  return nodes;
}

Slot Find(const NodesByKey& nodes, uint64_t key) {
  const auto found = nodes.find(key);
  return found == nodes.end() ? kNoSlot : found->second;
}

std::vector<Slot> FindAll(const NodesByKey& nodes, const std::vector<uint64_t>& keys) {
  std::vector<Slot> slots;
  for (const uint64_t key : keys) {
    if (const Slot slot = Find(nodes, key); slot != kNoSlot) slots.push_back(slot);
  }
  return slots;
}

std::vector<Slot> TargetsOf(const NodesByKey& nodes, const MoveUnderWay& move) {
  std::vector<Slot> targets;
  for (const auto* keys : {&move.came, &move.onto}) {
    for (const uint64_t key : *keys) targets.push_back(key == 0 ? kNoSlot : Find(nodes, key));
  }
  return targets;
}

bool IsEmptyNode(const ClusterState& cluster, Slot slot) {
  const std::span<const NodePods::Pod> pods = cluster.pods(slot).pods();
  return std::all_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    const PodShape& shape = cluster.pod_shapes()[pod.shape];
    const PodTraits& traits = TraitsOf(shape);
    return shape.finished || traits.mirror || traits.static_pod ||
           (traits.owner.has_value() && traits.owner->kind == "DaemonSet");
  });
}

const MoveUnderWay::Place* PlaceOf(const MoveUnderWay& move, uint64_t pod) {
  const auto place = std::lower_bound(move.places.begin(), move.places.end(), pod,
                                      [](const auto& at, uint64_t key) { return at.pod < key; });
  return place == move.places.end() || place->pod != pod ? nullptr : &*place;
}

std::vector<std::pair<GroupIndex, int64_t>> MissingNodes(NodeGroupSpan groups, const MoveUnderWay& move) {
  std::vector<std::pair<GroupIndex, int64_t>> missing;
  auto first = move.came.begin();
  for (const MoveUnderWay::Order& order : move.orders) {
    const auto end = first + order.nodes;
    if (const auto group = GroupNamed(groups, order.group))
      missing.emplace_back(*group, std::count(first, end, 0U));
    first = end;
  }
  return missing;
}

std::optional<GroupIndex> GroupNamed(NodeGroupSpan groups, const std::string& name) {
  for (const GroupIndex group : groups.indices()) {
    if (groups[group].name == name) return group;
  }
  return std::nullopt;
}

}  // namespace loadline
