#include "core/grow/upcoming_nodes.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "core/cluster/objects.h"
#include "core/cluster/pod_role.h"

namespace loadline {
namespace {

// Returns the room of the pods that are bound to a node and stay there.
std::vector<PodShape> BoundPods(const ClusterState& cluster, Slot slot, const NodeModel& of_group,
                                const ResourceNames& names) {
  std::vector<PodShape> bound;
  bool has_static_pods = false;
  for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
    const PodShape& shape = cluster.pod_shapes()[pod.shape];
    if (shape.finished || IsDaemonPod(TraitsOf(shape)) || GivesWay(TraitsOf(shape))) continue;
    has_static_pods = has_static_pods || IsKubeletsMirror(shape);
    bound.push_back(RoomOf(shape, names));
  }
  if (!has_static_pods) absl::c_copy(of_group.static_pods, std::back_inserter(bound));
  absl::c_sort(bound, [](const PodShape& a, const PodShape& b) { return a.fingerprint < b.fingerprint; });
  return bound;
}

NodeModel ModelOf(const ClusterState& cluster, Slot slot, const NodeModel& of_group,
                  const StartupTaints& startup_taints, const ResourceNames& names) {
  const NodeShape& own = cluster.node_shape(slot);
  NodeModel model = of_group;
  model.shape = Retainted(own, LastingTaints(own.taints, startup_taints), /*unschedulable=*/false);
  NodeShape& shape = model.shape;
  for (const Label& label : of_group.shape.labels) {
    if (shape.labels.Find(label.key) == nullptr) shape.labels.Set(label.key, label.value);
  }
  for (const auto& [resource, amount] : of_group.shape.allocatable) {
    if (shape.allocatable.Get(resource) <= 0) shape.allocatable[resource] = amount;
  }
  if (shape.declared_features.empty()) shape.declared_features = of_group.shape.declared_features;
  shape.csi_node = of_group.shape.csi_node;
  shape.volume_limits = of_group.shape.volume_limits;
  shape = CompleteNodeShape(std::move(shape), names);
  model.static_pods = BoundPods(cluster, slot, of_group, names);
  return model;
}

}  // namespace

StrongVector<GroupIndex, std::vector<StartingNodes>> FindStartingNodes(const ClusterState& cluster,
                                                                       const GroupsOfNodes& starting,
                                                                       NodeGroupSpan groups,
                                                                       const StartupTaints& startup_taints,
                                                                       const ResourceNames& names) {
  StrongVector<GroupIndex, std::vector<StartingNodes>> found(groups.size());
  for (const auto [slot, group] : starting) {
    if (!cluster.Occupied(slot) || !groups[group].model.has_value()) continue;
    const NodeModel& of_group = *groups[group].model;
    NodeModel model = ModelOf(cluster, slot, of_group, startup_taints, names);
    if (model.Fingerprint() == of_group.Fingerprint()) continue;
    std::vector<StartingNodes>& kinds = found[group];
    const auto same = absl::c_find_if(
        kinds, [&](const StartingNodes& kind) { return kind.model.Fingerprint() == model.Fingerprint(); });
    if (same != kinds.end()) {
      ++same->nodes;
    } else if (kinds.size() < kMostStartingKinds) {
      kinds.push_back({std::move(model), 1});
    }
  }
  return found;
}

}  // namespace loadline
