// The choice of groups for pods: one for pods that wait and for copies that slack keeps.
#ifndef LOADLINE_CORE_GROW_PLAN_GROWTH_H_
#define LOADLINE_CORE_GROW_PLAN_GROWTH_H_

#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/plan.h"
#include "core/expand/rank_options.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Pods that need room, and the groups that may grow for them.
struct GrowthForPods {
  std::vector<PendingPods> pods;
  std::vector<IncomingPod> daemons;
  const GrowableGroups& groups;
  NodeLimit max_new_nodes;
  FurtherPods further = {};  // see PlanOptions
};

// The plan; with a ranking also what it says.
struct PlannedGrowth {
  ScaleUpPlan plan;
  std::vector<RankedOption> ranked;
  std::optional<NodeCapacity> preferred_node;
};

// Asks PlanScaleUp(), or with LoopProblem::ranking PlanRankedScaleUp(). Cost: that of these.
PlannedGrowth PlanGrowthOf(const LoopProblem& problem, GrowthForPods question, Snapshot* snapshot,
                           WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_PLAN_GROWTH_H_
