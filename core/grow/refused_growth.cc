#include "core/grow/refused_growth.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "core/grow/vain_growth.h"

namespace loadline {
namespace {

// The part of the rest of the budget that refusals may take. Chosen: they decide nothing, and the plan is
// complete.
constexpr double kForRefusals = 0.25;

}  // namespace

std::vector<RefusedPods> RefusedByNewNodes(const LoopProblem& problem, const LoopPlan& plan,
                                           Snapshot* snapshot, WorkBudget* budget) {
  std::vector<RefusedPods> refused;
  std::vector<PendingPods> pods;
  const size_t asked = std::min(plan.scale_up.unplaced.size(), problem.pending.size());
  for (size_t i = 0; i < asked && refused.size() < kMostRefusedKinds; ++i) {
    if (plan.scale_up.unplaced[i] == 0) continue;
    refused.push_back({i, StrongVector<GroupIndex, std::optional<PodRefusal>>(problem.groups.size())});
    pods.push_back({problem.pending[i].pod, 1});
  }
  if (refused.empty()) return refused;
  const WorkPhase phase(budget, kForRefusals);
  Estimator estimator(snapshot, &problem.scale_down.fit, std::move(pods), problem.daemons, budget);
  if (estimator.cut_short_by() != BudgetEnd::kNotEnded) return {};  // some pod was not looked at in full
  const std::vector<int64_t> nothing_placed(refused.size(), 0);
  for (const GroupIndex group : problem.groups.indices()) {
    if (!problem.groups[group].model.has_value()) continue;
    for (PodRefusal& refusal : estimator.Refusals(problem.groups[group], nothing_placed, budget)) {
      // A requirement of plans, which the pod itself does not state.
      if (absl::StrContains(refusal.unmet, kPlannedGroup)) {
        refusal.unmet = "nodes that came for such pods did not take them";
      }
      refused[refusal.pods].by_group[group] = std::move(refusal);
    }
  }
  if (budget->ended()) refused.clear();
  return refused;
}

}  // namespace loadline
