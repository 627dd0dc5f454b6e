#include "core/replace/busy.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/cluster/scoped_fork.h"
#include "core/fit/trial_memory.h"
#include "core/grow/empty_room.h"

namespace loadline {
namespace {

// Returns the pods for which no existing node has room, each kind once, without those that have waited for
// longer than kLongestWantedMs and that growth has tried in vain.
std::vector<PendingPods> PodsWithoutNode(const LoopProblem& problem, const LoopPlan& plan) {
  std::vector<bool> without(plan.waiting.size(), false);
  const std::vector<int64_t>& unplaced = plan.scale_up.unplaced;
  for (size_t i = 0; i < unplaced.size(); ++i) {
    const bool is_tried = i < problem.pending.size() && !plan.scale_up.cut_short;
    const bool waits_for_good = is_tried && problem.batch.AgesOf(i).first_ms > kLongestWantedMs;
    without[i] = unplaced[i] > 0 && !waits_for_good;
  }
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    for (const PodCount& pods : nodes.pods) without[static_cast<size_t>(pods.pods)] = true;
  }
  for (const ExpectedPlace& place : plan.expected) {
    if (place.group.has_value()) without[static_cast<size_t>(place.pods)] = true;
  }
  std::vector<PendingPods> pods;
  for (size_t i = 0; i < without.size(); ++i) {
    if (without[i]) pods.push_back(plan.waiting[i]);
  }
  return pods;
}

}  // namespace

bool BusyObjects::any() const {
  const auto is_set = [](bool busy) { return busy; };
  return absl::c_any_of(groups, is_set) || !leaving.empty();
}

BusyObjects FindBusyObjects(const DrainProblem& drain, const GrowthLedger& ledger, const LoopPlan& plan,
                            const Snapshot& snapshot) {
  const CountsOfGroups& counts = ledger.counts;
  BusyObjects busy;
  busy.groups.assign(counts.size(), false);
  busy.shrinking.assign(counts.size(), false);
  for (const GroupIndex group : counts.indices()) busy.groups[group] = counts[group].upcoming > 0;
  for (const LoopGrowth& growth : ledger.growth) busy.groups[growth.group] = true;
  for (const PlannedNodes& nodes : plan.scale_up.nodes) busy.groups[plan.grown[nodes.group]] = true;
  for (const TakeBack& back : ledger.take_back) busy.groups[back.group] = true;
  busy.leaving = ledger.facts->leaving;
  for (const Slot slot : busy.leaving) {
    for (const std::optional<GroupIndex> group : {drain.group_of[slot], drain.going_group_of[slot]}) {
      if (group.has_value()) busy.shrinking[*group] = true;
    }
  }
  for (const ExpectedPlace& place : plan.expected) {
    const bool of_leaving_node = static_cast<size_t>(place.pods) >= ledger.facts->asked_pods;
    if (of_leaving_node && !place.group.has_value()) busy.expecting.insert(snapshot.slot(place.node));
  }
  return busy;
}

void MarkWanted(const LoopProblem& problem, const LoopPlan& plan, Snapshot* snapshot, WorkBudget* budget,
                BusyObjects* busy) {
  std::vector<PendingPods> pods = PodsWithoutNode(problem, plan);
  const size_t kinds = pods.size();
  if (kinds == 0) return;
  const ScopedFork fork(snapshot);
  Estimator nodes(snapshot, &problem.scale_down.fit, std::move(pods), problem.daemons, budget);
  TrialMemory memory(budget);
  for (const GroupIndex group : busy->groups.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (!of.model.has_value()) busy->groups[group] = true;
    if (busy->groups[group] || !memory.Node(*snapshot)) continue;
    const NodeIndex node = nodes.AddCopy(TemplateOf(of, "/wanted"), &memory);
    for (size_t i = 0; i < kinds && !busy->groups[group]; ++i) {
      PodFit& fit = nodes.fit(i);
      fit.Refresh(budget);
      if (!budget->Spend(fit.UnitsPerNode())) break;
      busy->groups[group] = fit.Fits(node);
    }
  }
  if (budget->ended() || nodes.cut_short_by() != BudgetEnd::kNotEnded)
    busy->groups.assign(busy->groups.size(), true);
}

}  // namespace loadline
