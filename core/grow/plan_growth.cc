#include "core/grow/plan_growth.h"

#include <utility>

#include "core/expand/plan_ranked.h"

namespace loadline {
namespace {

PlannedGrowth PlanByRanking(const LoopProblem& problem, GrowthForPods question, Snapshot* snapshot,
                            WorkBudget* budget) {
  const LoopRanking& by = *problem.ranking;
  GrowingCluster size{problem.drain.cluster->node_count(), {}};
  if (by.policy.preferred_table == PreferredTable::kLearned)
    size.running = RunningDemand(*problem.drain.cluster);
  std::vector<PodRequests> requests;
  for (const PendingPods& pods : question.pods) requests.push_back(by.requests_of(pods.pod.shape));
  RankedScaleUp ranked = PlanRankedScaleUp(
      snapshot, &problem.scale_down.fit, std::move(question.pods), requests, std::move(question.daemons),
      question.groups, {by.policy, by.prices, by.preferred_node, size}, question.max_new_nodes, budget);
  return {std::move(ranked.plan), std::move(ranked.options), ranked.preferred_node};
}

}  // namespace

PlannedGrowth PlanGrowthOf(const LoopProblem& problem, GrowthForPods question, Snapshot* snapshot,
                           WorkBudget* budget) {
  if (problem.ranking.has_value()) return PlanByRanking(problem, std::move(question), snapshot, budget);
  PlanOptions options = problem.growth;
  options.max_new_nodes = question.max_new_nodes;
  options.further = question.further;
  return {PlanScaleUp(snapshot, &problem.scale_down.fit, std::move(question.pods),
                      std::move(question.daemons), question.groups, options, budget),
          {},
          std::nullopt};
}

}  // namespace loadline
