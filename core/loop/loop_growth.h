// Plans which groups grow: for pending pods, and for slack on top of that.
#ifndef LOADLINE_CORE_LOOP_LOOP_GROWTH_H_
#define LOADLINE_CORE_LOOP_LOOP_GROWTH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/loop/plan_loop.h"

namespace loadline {

// Nodes of a group in the cluster, and those that its target has beyond them.
struct GroupCounts {
  int64_t registered = 0;
  int64_t upcoming = 0;
};
using CountsOfGroups = StrongVector<GroupIndex, GroupCounts>;
CountsOfGroups CountNodes(const LoopProblem& problem);

// How far a group grows by a plan, in which it gets its place.
LoopGrowth& GrowthOf(GroupIndex group, LoopPlan* plan);

// Returns how many nodes of the group that are not begun the plan leaves on their way.
int64_t NotBegunLeft(const LoopProblem& problem, const LoopPlan& plan, GroupIndex group);
// Takes so many nodes of a group back, as far as the provider has not begun to make them and the plan leaves
// them. A plan has one entry for each group: a target is lowered once, by the sum.
void TakeBackNodes(const LoopProblem& problem, GroupIndex group, int64_t nodes, LoopPlan* plan);

// Growth for the pods that wait: places them on nodes that are there or on their way, and plans new nodes for
// the rest. Fills in `waiting`, `expected`, `scale_up`, `grown` and `growth` of the plan, and the room that
// nodes on their way and new ones have left, by group.
//
// A group that has all of its nodes or none grows to its maximum. Where the limit of all groups together does
// not permit that beside the others, the plan is made again without such groups; where the groups together
// would exceed LoopPlan::room, it is made again within what each may have of it.
//
// Several ways compete (growth_attempt.h): nodes on their way are also packed anew with the pods that were
// planned for them, where that costs less; and where a scheduler would leave more than a few pods over, new
// nodes are planned with some room left free, as little as suffices, and only where that costs no more than a
// node for each of these pods. Growth with further pods in mind competes only where it leaves a tenth of each
// maximum of its groups.
//
// The snapshot is as before when the call returns. Cost: that of PlanScaleUp(), up to eight times.
struct GroupRooms {
  // A node of each group that runs nothing but its DaemonSet pods.
  StrongVector<GroupIndex, EmptyNode> empty;
  // Each node on its way, and each new one; at most kMostUpcomingNodes new ones of a group.
  StrongVector<GroupIndex, std::vector<EmptyNode>> coming;
  // All nodes on their way are among them. Else the budget ended before, nothing grows for pods, and nothing
  // may grow for slack either, which would ask for nodes that are on their way.
  bool complete = true;
  // Nodes on their way that take pods.
  StrongVector<GroupIndex, int64_t> used;
};
GroupRooms GrowForPods(const LoopProblem& problem, const CountsOfGroups& counts, Snapshot* snapshot,
                       WorkBudget* budget, LoopPlan* plan);

// Moves into a plan what GrowForPods() has filled in of another one.
void TakeGrowth(LoopPlan&& from, LoopPlan* plan);

// Pods for which the plan of growth has no place.
int64_t CountUnplaced(const LoopPlan& plan);

// Returns whether the group may grow for pods, whatever its size.
bool MayGrow(const LoopProblem& problem, GroupIndex group);

// Nodes that the group may have beyond those that it has, those that are on their way, and what the plan
// adds.
int64_t RoomOfGroup(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
                    GroupIndex group);

// Returns the rest of what all groups may grow by together, as PlanOptions::max_new_nodes has it.
NodeLimit NewNodesLeft(const LoopProblem& problem, const LoopPlan& plan);

// Returns what the group may still win after all that the plan gives: within its own maximum, those of the
// cluster, and what all groups may grow by together. 0 where it does not grow, and where it can only grow as
// a whole and may not.
int64_t MayAdd(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
               GroupIndex group);

// The same for a group that may grow, whatever else is known of it.
int64_t NodesWithinLimits(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
                          GroupIndex group);

// Growth for the placeholders that fit nowhere: the nodes that slack asks for of each group, within MayAdd(),
// so that slack only gets what pods and sizes leave. `positions`: of the groups of the slack question, in
// LoopProblem::groups.
void GrowForSlack(const LoopProblem& problem, const CountsOfGroups& counts,
                  const StrongVector<SlackGroupIndex, GroupIndex>& positions, LoopPlan* plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_LOOP_GROWTH_H_
