// Chooses the one node group that grows for pending pods: the option that ranks best.
#ifndef LOADLINE_CORE_EXPAND_PLAN_RANKED_H_
#define LOADLINE_CORE_EXPAND_PLAN_RANKED_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/expand/preferred_choice.h"
#include "core/expand/rank_options.h"

namespace loadline {

// How options are ranked.
struct Ranking {
  const RankPolicy& policy;
  const PriceModel& prices;
  // In place of the policy's table.
  std::optional<NodeCapacity> preferred_node;
  GrowingCluster cluster;
};

// A plan that grows the best-ranked group only.
struct RankedScaleUp {
  // Without a lower bound. best_single is the option that was taken, and what it takes is all that grows.
  ScaleUpPlan plan;
  std::vector<RankedOption> options;  // best first, by position in the groups
  std::optional<NodeCapacity> preferred_node;
};

// Places what fits on nodes that are there, asks for each group how many of its nodes would take the others,
// and grows the group whose option is first in the order of RankOptions(), if it takes any pod.
//
// `groups`: see PlanScaleUp(); their prices decide nothing, and are only added up for the answer.
// `requests`: by position of the pods. `max_new_nodes`: see PlanOptions. The snapshot is as before when the
// call returns. Deterministic. Cost: that of Estimator::Estimate() per group.
// Source: core/scaleup/orchestrator of Cluster Autoscaler, with exact estimates.
RankedScaleUp PlanRankedScaleUp(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                                const std::vector<PodRequests>& requests, std::vector<IncomingPod> daemons,
                                const GrowableGroups& groups, const Ranking& ranking, NodeLimit max_new_nodes,
                                WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_PLAN_RANKED_H_
