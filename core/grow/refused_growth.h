// The refusals of new nodes for pods that get no place.
#ifndef LOADLINE_CORE_GROW_REFUSED_GROWTH_H_
#define LOADLINE_CORE_GROW_REFUSED_GROWTH_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// The kinds of pods that are looked at, those that come first in the question. Chosen: people read a few.
inline constexpr size_t kMostRefusedKinds = 16;

// Pods without a place, of one kind.
struct RefusedPods {
  size_t pods = 0;  // their position in LoopPlan::waiting
  // By group: the refusal of one more node. nullopt: it takes the pods, or nobody knows what it is like.
  StrongVector<GroupIndex, std::optional<PodRefusal>> by_group;
};

// Asks one more node of each group about the pods of the question that `plan` leaves without a place, at most
// kMostRefusedKinds of them; none where the budget ends before all are asked. The snapshot is that of
// PlanLoop(), and as before when the call returns. Cost: O(kinds * groups) verdicts; at most a quarter of
// what the budget has left.
std::vector<RefusedPods> RefusedByNewNodes(const LoopProblem& problem, const LoopPlan& plan,
                                           Snapshot* snapshot, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_REFUSED_GROWTH_H_
