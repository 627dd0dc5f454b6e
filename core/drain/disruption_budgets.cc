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
    IndexBudget(key.namespace_name, *budget);
    budgets_.push_back({key, budget, budget->observed_generation < budget->generation, 0, 0});
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

void DisruptionBudgets::IndexBudget(absl::string_view namespace_name, const DisruptionBudget& budget) {
  const int32_t number = size();
  ByLabel& of = index_[namespace_name];
  if (budget.selector_error.empty()) {
    for (const Requirement& requirement : budget.selector.requirements) {
      if (requirement.op != SelectorOperator::kIn || requirement.values.size() != 1) continue;
      of.budgets[{requirement.key, requirement.values.front()}].push_back(number);
      return;
    }
  }
  of.others.push_back(number);
}

// Also works out uses_: both need the budgets of each shape.
std::vector<int64_t> DisruptionBudgets::ReadyPodsSeen(const ClusterState& state) {
  std::vector<int64_t> seen(budgets_.size(), 0);
  const std::span<const int64_t> pods = state.pods_of_shape();
  uses_.resize(pods.size());
  ByName by_name;
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == 0) continue;
    const PodShape& shape = state.pod_shapes()[static_cast<int32_t>(i)];
    if (GoesWithoutBudget(shape)) continue;
    const std::vector<int32_t> matching = Matching(shape);
    uses_[i] = UseBy(shape, matching);
    if (!TraitsOf(shape).ready) continue;
    for (const int32_t budget : matching) {
      if (budgets_[static_cast<size_t>(budget)].object->disrupted_pods.empty()) {
        seen[static_cast<size_t>(budget)] += pods[i];
      } else {
        by_name.resize(pods.size());
        by_name[i].push_back(budget);
      }
    }
  }
  if (!by_name.empty()) CountByName(state, by_name, &seen);
  return seen;
}

// Disrupted pods are known by their names.
void DisruptionBudgets::CountByName(const ClusterState& state, const ByName& by_name,
                                    std::vector<int64_t>* seen) const {
  for (int32_t slot = 0; slot < state.slot_end(); ++slot) {
    if (!state.Occupied(Slot{slot})) continue;
    const NodePods& pods = state.pods(Slot{slot});
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      for (const int32_t budget : by_name[static_cast<size_t>(pods.pods()[i].shape)]) {
        const DisruptionBudget& object = *budgets_[static_cast<size_t>(budget)].object;
        if (!IsDisrupted(object, pods.name(i))) ++(*seen)[static_cast<size_t>(budget)];
      }
    }
  }
}

std::vector<int32_t> DisruptionBudgets::Matching(const PodShape& shape) const {
  std::vector<int32_t> matching;
  const auto found = index_.find(shape.namespace_name);
  if (found == index_.end()) return matching;
  const auto take = [&](const std::vector<int32_t>& budgets) {
    for (const int32_t number : budgets) {
      const DisruptionBudget& object = *budgets_[static_cast<size_t>(number)].object;
      if (!object.selector_error.empty() || object.selector.Matches(shape.labels)) matching.push_back(number);
    }
  };
  take(found->second.others);
  for (const auto& [key, value] : shape.labels) {
    const auto by_label = found->second.budgets.find({key, value});
    if (by_label != found->second.budgets.end()) take(by_label->second);
  }
  std::sort(matching.begin(), matching.end());
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

bool DisruptionBudgets::WouldBeLeft(const BudgetUse& use) const {
  return use.takes && left(use.budget) + budgets_[static_cast<size_t>(use.budget)].taken > 0;
}

bool DisruptionBudgets::MayBeLeftLater(const BudgetUse& use) const {
  if (!use.takes) return false;
  const DisruptionBudget& budget = *budgets_[static_cast<size_t>(use.budget)].object;
  return budget.expected_pods > budget.desired_healthy;
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
