// Plans which groups grow: to their minimum (--enforce-node-group-min-size), for pods that wait, and for
// slack on top of that.
#ifndef LOADLINE_CORE_GROW_LOOP_GROWTH_H_
#define LOADLINE_CORE_GROW_LOOP_GROWTH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/growth_ledger.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// The question that all plans of growth for pods answer.
struct GrowthQuestion {
  const LoopProblem& problem;
  const std::vector<PendingPods>& waiting;  // see LoopPlan::waiting
  std::span<const Slot> untainted;          // nodes that lose the taint of their size
  Snapshot* snapshot;
  WorkBudget* budget;
};

// The room of nodes on their way and new ones: where slack is decided, which alone asks for it.
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

// Growth for the pods that wait: places them on nodes that are there or on their way, and plans new nodes for
// the rest. Adds them to the ledger. Returns the room that nodes on their way and new ones have left.
//
// A group that has all of its nodes or none grows to its maximum. Where the limit of all groups together does
// not permit that beside the others, the plan is made again without such groups; where the groups together
// would exceed the maxima of the cluster, it is made again within what each may have of them.
//
// Several ways compete (growth_attempt.h): nodes on their way are also packed anew with the pods that were
// planned for them, where that costs less; and where a scheduler would leave more than a few pods over, new
// nodes are planned with some room left free, as little as suffices, and only where that costs no more than a
// node for each of these pods. Growth with further pods in mind competes only where it leaves a tenth of each
// maximum of its groups.
//
// The snapshot is as before when the call returns. Cost: that of PlanScaleUp(), up to eight times.
GroupRooms GrowForPods(const GrowthQuestion& question, GrowthLedger* ledger, WaitingPodsPlan* plan);

// Pods for which the plan of growth has no place.
int64_t CountUnplaced(const ScaleUpPlan& plan);

// Growth for the placeholders that fit nowhere: the nodes that slack asks for of each group, within
// MayAddForSlack(), so that slack only gets what pods and sizes leave. `positions`: of the groups of the
// slack question, in LoopProblem::groups.
void GrowForSlack(std::span<const SlackDemand> demands,
                  const StrongVector<SlackGroupIndex, GroupIndex>& positions, GrowthLedger* ledger);

// Adds what groups lack of their minimum to those on their way, and to the growth; in the order of the
// groups, as far as all limits permit. Groups that are sized keep their minimum by themselves. A group needs
// a template and must not be blocked; it needs no price. One that has all of its nodes or none gets all, or
// none. Source: ScaleUpToNodeGroupMinSize() of Cluster Autoscaler.
void GrowToMinima(GrowthLedger* ledger);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_GROWTH_H_
