// Pods without a node that find room on nodes as they are: growth is for others, and the nodes keep the room.
#ifndef LOADLINE_CORE_LOOP_EXPECTED_PODS_H_
#define LOADLINE_CORE_LOOP_EXPECTED_PODS_H_

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

// Has nodes that are being deleted take no pods, whatever these tolerate: they would be evicted from there at
// once. Cost: O(nodes).
void CloseNodesBeingDeleted(const DrainProblem& drain, std::span<const DeletingNode> deleting,
                            Snapshot* snapshot);

// Returns the places of pods that wait on nodes of the snapshot, as a plan of growth finds them where no
// group may grow. The snapshot is as before when the call returns. Cost: that of PlanScaleUp() without
// groups.
std::vector<ExpectedPlace> PlacesOnNodes(const std::vector<PendingPods>& waiting, const DrainProblem& drain,
                                         const FitOptions& fit, Snapshot* snapshot, WorkBudget* budget);

// Adds pods that are expected on nodes of the cluster to the question of a drain, as placeholders: they keep
// their node as bound pods do. Places on nodes that are on their way are not read. If the budget has no
// memory for all of them, no node is removed.
void KeepExpected(const std::vector<PendingPods>& waiting, std::span<const ExpectedPlace> expected,
                  const Snapshot& snapshot, WorkBudget* budget, DrainProblem* drain);

// Has pods that wait keep the nodes of the cluster on which they find room, for a question about drains or
// moves alone; a loop does so with what it has planned.
void ExpectOnNodes(std::vector<PendingPods> waiting, const FitOptions& fit, Snapshot* snapshot,
                   WorkBudget* budget, DrainProblem* drain);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_EXPECTED_PODS_H_
