// Tells which pods give way to others: those that plans treat as if they were not there.
#ifndef LOADLINE_CORE_CLUSTER_POD_ROLE_H_
#define LOADLINE_CORE_CLUSTER_POD_ROLE_H_

#include <cstdint>
#include <span>

#include "core/cluster/pod_traits.h"
#include "core/cluster/snapshot.h"

namespace loadline {

// Pods of a lower priority are as if they were not there: --expendable-pods-priority-cutoff of Cluster
// Autoscaler, by its default.
inline constexpr int32_t kExpendablePriority = -10;

// Returns whether the pod has a priority below the cutoff and is no placeholder of slack. No node is added
// for such a pod, it keeps no node, its requests fill none, and a pod that moves may take its room. Source:
// cluster-autoscaler/core/utils/expendable.go drops these pods before anything is planned.
inline bool IsExpendable(int32_t priority, bool placeholder) {
  return priority < kExpendablePriority && !placeholder;
}
inline bool IsExpendable(const PodTraits& traits) {
  return IsExpendable(traits.priority, traits.placeholder);
}

// Returns whether the pod leaves its room to any pod that waits: it is expendable, or a placeholder.
inline bool GivesWay(const PodTraits& traits) { return traits.placeholder || IsExpendable(traits); }

// Take the expendable pods off all nodes, off the nodes in `slots` that there are, and all pods that give way
// off all nodes. Cost: O(pods there); O(1) where no shape has such a priority.
void RemoveExpendablePods(Snapshot* snapshot);
void RemoveExpendablePods(std::span<const Slot> slots, Snapshot* snapshot);
void RemovePodsThatGiveWay(Snapshot* snapshot);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_POD_ROLE_H_
