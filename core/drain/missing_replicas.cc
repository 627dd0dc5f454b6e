#include "core/drain/missing_replicas.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cluster/pod_traits.h"

namespace loadline {
namespace {

constexpr std::array<std::pair<absl::string_view, ObjectKind>, 4> kKindsWithReplicas = {
    {{"StatefulSet", ObjectKind::kStatefulSet},
     {"Job", ObjectKind::kJob},
     {"ReplicaSet", ObjectKind::kReplicaSet},
     {"ReplicationController", ObjectKind::kReplicationController}}};

const Workload* FindWorkload(const ClusterObjects& objects, const PodShape& shape) {
  const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
  if (!owner.has_value()) return nullptr;
  for (const auto& [name, kind] : kKindsWithReplicas) {
    if (owner->kind == name) return objects.FindOwner(kind, shape.namespace_name, *owner);
  }
  return nullptr;
}

// Empty: it has none.
std::string KeyOfOwner(const PodShape& shape) {
  const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
  if (!owner.has_value()) return "";
  return absl::StrCat(owner->uid, "/", shape.namespace_name, "/", owner->kind, "/", owner->name);
}

bool StillEnds(const ClusterState& cluster, const RecentEviction& eviction) {
  const std::optional<Slot> slot = cluster.Find(eviction.node);
  if (!slot.has_value()) return false;
  const NodePods& pods = cluster.pods(*slot);
  for (size_t i = 0; i < pods.pods().size(); ++i) {
    const PodShape& shape = cluster.pod_shapes()[pods.pods()[i].shape];
    if (pods.name(i) == eviction.name && shape.namespace_name == eviction.shape.namespace_name) {
      return TraitsOf(shape).deleted_s.has_value();
    }
  }
  return false;
}

}  // namespace

MissingReplicas::MissingReplicas(const ClusterState& cluster,
                                 std::span<const RecentEviction* const> evictions) {
  bool any_ends = false;
  for (const RecentEviction* const eviction : evictions) {
    const Workload* const workload = FindWorkload(cluster.objects(), eviction->shape);
    if (workload == nullptr) continue;
    Owner& owner = owners_[KeyOfOwner(eviction->shape)];
    owner.wanted = workload->target_replicas;
    owner.missing = std::max<int64_t>(0, workload->target_replicas - workload->current_replicas);
    // A job wants fewer pods the more of them are done: its status alone tells.
    const bool is_job = TraitsOf(eviction->shape).owner->kind == "Job";
    if (is_job || !StillEnds(cluster, *eviction)) continue;
    ++owner.ending;
    any_ends = true;
  }
  if (!any_ends) return;
  CountPodsOnNodes(cluster);
  for (auto& [key, owner] : owners_) {
    owner.missing = std::max(owner.missing, std::min(owner.ending, owner.wanted - owner.on_nodes));
  }
}

void MissingReplicas::CountPodsOnNodes(const ClusterState& cluster) {
  std::vector<std::optional<Owner*>> of_shape;  // nullopt: not looked up yet
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (!cluster.Occupied(Slot{i})) continue;
    for (const NodePods::Pod& pod : cluster.pods(Slot{i}).pods()) {
      const size_t number = static_cast<size_t>(pod.shape);
      if (number >= of_shape.size()) of_shape.resize(number + 1);
      if (!of_shape[number].has_value()) {
        const PodShape& shape = cluster.pod_shapes()[pod.shape];
        const auto owner = owners_.find(KeyOfOwner(shape));
        const bool counts =
            owner != owners_.end() && !shape.finished && !TraitsOf(shape).deleted_s.has_value();
        of_shape[number] = counts ? &owner->second : nullptr;
      }
      if (*of_shape[number] != nullptr) ++(*of_shape[number])->on_nodes;
    }
  }
}

bool MissingReplicas::Take(const RecentEviction& eviction) {
  const auto owner = owners_.find(KeyOfOwner(eviction.shape));
  return owner == owners_.end() || owner->second.missing-- > 0;
}

}  // namespace loadline
