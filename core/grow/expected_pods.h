// Pods without a node that find room on nodes as they are: growth is for others, and the nodes keep the room.
#ifndef LOADLINE_CORE_GROW_EXPECTED_PODS_H_
#define LOADLINE_CORE_GROW_EXPECTED_PODS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/drain/drain_question.h"
#include "core/expand/estimate.h"

namespace loadline {

// The place where pods that wait are expected.
struct ExpectedPlace {
  int32_t pods = 0;  // position in `waiting`
  int64_t count = 0;
  NodeIndex node{-1};  // of the snapshot, below its end as it came; -1: a node that is on its way
  std::optional<GroupIndex> group;  // of a node on its way
  friend bool operator==(const ExpectedPlace&, const ExpectedPlace&) = default;
};

// The pods of nodes that are being deleted: kWait if they are among those that look for a node.
enum class PodsOfDeleting { kStay, kWait };

// Has nodes that are being deleted take no pods, whatever these tolerate: they would be evicted from there at
// once. `deleting`: see NodesBeingDeleted(). Pods that wait for another node are no longer there, see
// Vacate(). Cost: O(nodes + their pods).
void CloseNodesBeingDeleted(const ClusterState& cluster, std::span<const Slot> deleting, PodsOfDeleting pods,
                            Snapshot* snapshot);

// Adds pods that are expected on nodes of the cluster to the question of a drain, as placeholders: they keep
// their node as bound pods do. Places on nodes that are on their way are not read. If the budget has no
// memory for all of them, no node is removed.
void KeepExpected(const std::vector<PendingPods>& waiting, std::span<const ExpectedPlace> expected,
                  const Snapshot& snapshot, WorkBudget* budget, DrainProblem* drain);

// Has pods that wait keep the nodes of the cluster on which they find room, as a plan of growth finds it
// where no group may grow: for a question about drains or moves alone. A loop does so with what it has
// planned. `pods`: of nodes being deleted. The snapshot is as before when the call returns. Cost: that of
// PlanScaleUp() without groups.
void ExpectOnNodes(std::vector<PendingPods> waiting, PodsOfDeleting pods, const FitOptions& fit,
                   Snapshot* snapshot, WorkBudget* budget, DrainProblem* drain);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_EXPECTED_PODS_H_
