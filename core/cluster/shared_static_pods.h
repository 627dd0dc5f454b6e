// The static pods that kubelet runs on each node of a group.
#ifndef LOADLINE_CORE_CLUSTER_SHARED_STATIC_PODS_H_
#define LOADLINE_CORE_CLUSTER_SHARED_STATIC_PODS_H_

#include <span>
#include <vector>

#include "core/cluster/cluster_state.h"

namespace loadline {

// Returns the room of the static pods that more than half of the nodes have, each as often as they have it.
// Names do not count: kubelet ends each with the name of its node. Cost: O(pods of these nodes).
std::vector<PodShape> SharedStaticPods(const ClusterState& cluster, std::span<const Slot> nodes);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SHARED_STATIC_PODS_H_
