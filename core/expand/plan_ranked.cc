#include "core/expand/plan_ranked.h"

#include <cstddef>
#include <utility>

#include "core/expand/node_limits.h"
#include "core/expand/plan_nodes.h"
#include "core/expand/share_growth.h"

namespace loadline {
namespace {

constexpr size_t kBytesOfOption = sizeof(int64_t) + 2 * sizeof(PodCount);
constexpr size_t kPodsPerUnit = 4;

ExpansionOption OptionOf(const NodeGroup& group, const NodeEstimate& estimate) {
  ExpansionOption option;
  option.node_group = group.name;
  // One that has all of its nodes or none is bought as a whole.
  option.node_count = group.atomic && estimate.nodes > 0 ? group.max_nodes - group.target : estimate.nodes;
  option.node = group.priced;
  option.has_gpu = group.has_gpu;
  option.priority = group.priority;
  for (size_t pods = 0; pods < estimate.placed.size(); ++pods) {
    if (estimate.placed[pods] > 0) option.pods.push_back({pods, estimate.placed[pods]});
  }
  return option;
}

void Take(GrowableIndex group, double usd_per_hour, NodeEstimate estimate, ScaleUpPlan* plan) {
  for (NodeRun& run : estimate.runs) plan->nodes.push_back({group, run.nodes, std::move(run.pods)});
  plan->existing.insert(plan->existing.end(), estimate.existing.begin(), estimate.existing.end());
  for (size_t pods = 0; pods < estimate.placed.size(); ++pods) plan->unplaced[pods] -= estimate.placed[pods];
  plan->cost = usd_per_hour * static_cast<double>(estimate.nodes);
  plan->best_single = {group, estimate.nodes, estimate.pods, plan->cost};
}

// Ranks the options, and takes the best one if it helps any pod.
void Choose(const GrowableGroups& groups, const Ranking& ranking, const std::vector<PodRequests>& requests,
            StrongVector<GrowableIndex, NodeEstimate> estimates, RankedScaleUp* result) {
  std::vector<ExpansionOption> options;
  for (const GrowableIndex group : groups.indices())
    options.push_back(OptionOf(groups[group], estimates[group]));
  result->preferred_node =
      ranking.preferred_node.has_value()
          ? ranking.preferred_node
          : ChoosePreferredNode(ranking.policy.preferred_table, ranking.cluster, requests, options);
  result->options = RankOptions({requests, options, ranking.prices, ranking.policy, result->preferred_node});
  if (result->options.empty() || result->options.front().outcome == RankOutcome::kHelpsNoPod) return;
  const GrowableIndex best = IndexAt<GrowableIndex>(result->options.front().option);
  Take(best, UsdOf(groups[best]), std::move(estimates[best]), &result->plan);
}

// Shares the nodes of the option among groups that balance with its own, where they then take the same pods.
void Share(const GrowableGroups& groups, Estimator* estimator, Snapshot* snapshot, WorkBudget* budget,
           ScaleUpPlan* plan) {
  if (plan->nodes.empty() || !groups[plan->nodes.front().group].balance_set.has_value()) return;
  std::vector<int64_t> waiting(plan->unplaced.size(), 0);
  for (const PlannedNodes& run : plan->nodes) {
    for (const PodCount& entry : run.pods) {
      waiting[static_cast<size_t>(entry.pods)] += run.nodes * entry.count;
    }
  }
  snapshot->Fork();
  PlanNodes nodes(estimator, snapshot, groups, waiting, std::nullopt, budget);
  nodes.Place(ShareGrowth(plan->nodes, groups, estimator, snapshot, budget));
  if (nodes.pods_waiting() == 0 && nodes.node_count() <= plan->best_single.nodes &&
      nodes.existing().empty()) {
    plan->nodes = nodes.Nodes();
    plan->cost = nodes.cost();
  }
  snapshot->Revert();
}

}  // namespace

RankedScaleUp PlanRankedScaleUp(Snapshot* snapshot, const FitOptions* fit, std::vector<PendingPods> pods,
                                const std::vector<PodRequests>& requests, std::vector<IncomingPod> daemons,
                                const GrowableGroups& groups, const Ranking& ranking, NodeLimit max_new_nodes,
                                WorkBudget* budget) {
  RankedScaleUp result;
  ScaleUpPlan& plan = result.plan;
  StrongVector<GrowableIndex, NodeEstimate> estimates;
  // By group: how many pods of each kind its nodes take, and a list of those.
  const ReservedMemory memory(budget, static_cast<int64_t>(groups.size() * pods.size() * kBytesOfOption));
  snapshot->Fork();
  {
    Estimator estimator(snapshot, fit, std::move(pods), std::move(daemons), budget);
    plan.cut_short_by = estimator.cut_short_by();
    plan.cut_off = estimator.cut_off();
    plan.existing = estimator.UseExistingRoom(budget);
    for (const PendingPods& waiting : estimator.pods()) plan.unplaced.push_back(waiting.count);
    for (const NodeGroup& group : groups) {
      const NodeThreshold limits[] = {{.max_nodes = GroupNodeLimit(group, {})}, {.max_nodes = max_new_nodes}};
      estimates.push_back(estimator.Estimate(group, NodeLimiter(limits), budget));
    }
    // Options are ranked by what is in them.
    budget->Spend(static_cast<int64_t>(groups.size() * (1 + plan.unplaced.size() / kPodsPerUnit)));
    if (budget->ended()) {
      plan.cut_short_by = budget->end();
      plan.cut_off.clear();
    }
    plan.cut_short = plan.cut_short_by != BudgetEnd::kNotEnded;
    const size_t by_themselves = plan.existing.size();
    Choose(groups, ranking, requests, std::move(estimates), &result);
    // Pods that only come to fit on existing nodes beside the new ones want these where they are.
    if (plan.existing.size() == by_themselves) Share(groups, &estimator, snapshot, budget, &plan);
  }
  snapshot->Revert();
  return result;
}

}  // namespace loadline
