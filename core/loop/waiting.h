// Tells which pods wait for a node, and which running pods are expendable: as good as not there.
#ifndef LOADLINE_CORE_LOOP_WAITING_H_
#define LOADLINE_CORE_LOOP_WAITING_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/drain/drain_state.h"
#include "core/expand/estimate.h"

namespace loadline {

// Pods of a lower priority are as if they were not there: --expendable-pods-priority-cutoff of Cluster
// Autoscaler, by its default.
inline constexpr int32_t kExpendablePriority = -10;

// Whether a pod leaves its room to any other: a placeholder of slack, or a pod with a priority below the
// cutoff.
bool IsExpendable(const PodTraits& traits);

// Takes the expendable pods off all nodes. Cost: O(pods).
void RemoveExpendablePods(Snapshot* snapshot);

// Pods on nodes being deleted, see NodesBeingDeleted(), whose replacements need another node, equal ones
// together; in the order of the nodes, then of their shapes. Pods that end with their node (of DaemonSets,
// mirror pods), that have finished or are terminating, and expendable ones need none.
std::vector<PendingPods> PodsOfNodesBeingDeleted(const ClusterState& cluster,
                                                 std::span<const DeletingNode> deleting, int64_t now_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_WAITING_H_
