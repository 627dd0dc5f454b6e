#include "core/drain/disruption_budgets.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace loadline {
namespace {

// What the eviction API does not ask budgets about.
bool GoesWithoutBudget(const PodShape& shape) {
  const PodTraits& traits = TraitsOf(shape);
  return shape.finished || traits.deleted_s.has_value() || traits.placeholder;
}

bool IsDisrupted(const DisruptionBudget& budget, absl::string_view pod_name) {
  const auto found = std::lower_bound(
      budget.disrupted_pods.begin(), budget.disrupted_pods.end(), pod_name,
      [](const DisruptionBudget::DisruptedPod& pod, absl::string_view name) { return pod.name < name; });
  return found != budget.disrupted_pods.end() && found->name == pod_name;
}

}  // namespace

absl::string_view Name(BudgetRefusal refusal) {
  switch (refusal) {
    case BudgetRefusal::kNone:
      return "None";
    case BudgetRefusal::kExhausted:
      return "Exhausted";
    case BudgetRefusal::kStale:
      return "StaleStatus";
    case BudgetRefusal::kUnhealthy:
      return "UnhealthyPod";
    case BudgetRefusal::kSeveralBudgets:
      return "SeveralBudgets";
    case BudgetRefusal::kInvalidSelector:
      return "InvalidSelector";
  }
  return "invalid refusal";
}

DisruptionBudgets::DisruptionBudgets(const ClusterState& state, std::span<const AcceptedEviction> evictions) {
  for (const auto& [key, object] : state.objects().of(ObjectKind::kDisruptionBudget)) {
    const auto* const budget = std::get_if<DisruptionBudget>(&object.content);
    budgets_.push_back({key, budget, budget->observed_generation < budget->generation, 0});
  }
  if (budgets_.empty()) return;
  const std::vector<int64_t> seen = ReadyPodsSeen(state);
  for (size_t i = 0; i < budgets_.size(); ++i) {
    Budget& budget = budgets_[i];
    if (budget.stale) continue;
    const DisruptionBudget& object = *budget.object;
    budget.left =
        std::min<int64_t>(object.disruptions_allowed, seen[i] - std::max<int64_t>(object.desired_healthy, 0));
  }
  for (const AcceptedEviction& eviction : evictions) {
    const BudgetUse use = Find(eviction.shape);
    if (!use.takes) continue;
    Budget& budget = budgets_[static_cast<size_t>(use.budget)];
    if (!IsDisrupted(*budget.object, eviction.pod_name)) --budget.left;
  }
}

// Also works out uses_: both need the budgets of each shape.
std::vector<int64_t> DisruptionBudgets::ReadyPodsSeen(const ClusterState& state) {
  std::vector<int64_t> seen(budgets_.size(), 0);
  std::vector<std::vector<int32_t>> matching;  // by shape
  std::vector<bool> known;
  for (int32_t slot = 0; slot < state.slot_end(); ++slot) {
    if (!state.Occupied(Slot{slot})) continue;
    const NodePods& pods = state.pods(Slot{slot});
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      const int32_t id = pods.pods()[i].shape;
      const size_t at = static_cast<size_t>(id);
      if (at >= known.size()) {
        known.resize(at + 1);
        matching.resize(at + 1);
        uses_.resize(at + 1);
      }
      const PodShape& shape = state.pod_shapes()[id];
      if (!known[at]) {
        known[at] = true;
        matching[at] = Matching(shape);
        uses_[at] = UseBy(shape, matching[at]);
      }
      if (matching[at].empty() || !TraitsOf(shape).ready || GoesWithoutBudget(shape)) continue;
      for (const int32_t budget : matching[at]) {
        const DisruptionBudget& object = *budgets_[static_cast<size_t>(budget)].object;
        if (!IsDisrupted(object, pods.name(i))) ++seen[static_cast<size_t>(budget)];
      }
    }
  }
  return seen;
}

std::vector<int32_t> DisruptionBudgets::Matching(const PodShape& shape) const {
  std::vector<int32_t> matching;
  const auto first = std::lower_bound(
      budgets_.begin(), budgets_.end(), shape.namespace_name,
      [](const Budget& budget, const std::string& name) { return budget.key.namespace_name < name; });
  for (auto budget = first; budget != budgets_.end() && budget->key.namespace_name == shape.namespace_name;
       ++budget) {
    if (!budget->object->selector_error.empty() || budget->object->selector.Matches(shape.labels)) {
      matching.push_back(static_cast<int32_t>(budget - budgets_.begin()));
    }
  }
  return matching;
}

BudgetUse DisruptionBudgets::UseBy(const PodShape& shape, std::span<const int32_t> matching) const {
  BudgetUse use;
  if (matching.empty() || GoesWithoutBudget(shape)) return use;
  use.budget = matching.front();
  for (const int32_t budget : matching) {
    if (budgets_[static_cast<size_t>(budget)].object->selector_error.empty()) continue;
    return {.budget = budget, .refusal = BudgetRefusal::kInvalidSelector};
  }
  if (matching.size() > 1) {
    use.refusal = BudgetRefusal::kSeveralBudgets;
    return use;
  }
  const Budget& budget = budgets_[static_cast<size_t>(use.budget)];
  const DisruptionBudget& object = *budget.object;
  if (!TraitsOf(shape).ready) {
    if (object.unhealthy_policy == DisruptionBudget::UnhealthyPolicy::kAlwaysAllow) return use;
    if (budget.stale) {
      use.refusal = BudgetRefusal::kStale;
      return use;
    }
    if (object.current_healthy < object.desired_healthy) {
      use.refusal = BudgetRefusal::kUnhealthy;
      return use;
    }
    if (object.desired_healthy > 0) return use;
  }
  use.takes = true;
  if (budget.stale) use.refusal = BudgetRefusal::kStale;
  return use;
}

BudgetUse DisruptionBudgets::Find(const PodShape& shape) const { return UseBy(shape, Matching(shape)); }

bool DisruptionBudgets::Covers(const PodShape& shape) const { return !Matching(shape).empty(); }

BudgetRefusal DisruptionBudgets::Refuses(const BudgetUse& use) const {
  if (use.refusal != BudgetRefusal::kNone) return use.refusal;
  return use.takes && left(use.budget) < 1 ? BudgetRefusal::kExhausted : BudgetRefusal::kNone;
}

DisruptionBudgets::Answer DisruptionBudgets::Ask(std::span<const BudgetUse> uses) const {
  Answer answer;
  absl::flat_hash_map<int32_t, int64_t> taken;
  for (size_t i = 0; i < uses.size(); ++i) {
    const BudgetRefusal refusal = Refuses(uses[i]);
    if (refusal != BudgetRefusal::kNone) return {.refused = i, .refusal = refusal};
    if (uses[i].takes && ++taken[uses[i].budget] > left(uses[i].budget)) answer.risky = true;
  }
  return answer;
}

}  // namespace loadline
