#include "core/drain/disruption_budgets.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace loadline {
namespace {

// Returns whether the eviction API asks no budget about the pod.
bool LeavesWithoutBudget(const PodShape& shape) {
  const PodTraits& traits = TraitsOf(shape);
  return shape.finished || traits.phase == PodPhase::kPending || traits.deleted_s.has_value() ||
         traits.placeholder;
}

bool IsDisrupted(const DisruptionBudget& budget, absl::string_view pod_name) {
  const auto found = std::lower_bound(
      budget.disrupted_pods.begin(), budget.disrupted_pods.end(), pod_name,
      [](const DisruptionBudget::DisruptedPod& pod, absl::string_view name) { return pod.name < name; });
  return found != budget.disrupted_pods.end() && found->name == pod_name;
}

bool AllowsOnceHealthy(const DisruptionBudget& budget) {
  return budget.expected_pods > budget.desired_healthy;
}

bool IsStale(const DisruptionBudget& budget) { return budget.observed_generation < budget.generation; }

// The cost of holding labels against a selector, in units of a WorkBudget: measured, one requirement takes
// 100 ns.
int64_t CostOf(const LabelSelector& selector) {
  constexpr int kStepsPerUnit = 4;  // of a binary search among the values
  int64_t cost = 1;
  for (const Requirement& requirement : selector.requirements) {
    cost += 1 + std::bit_width(requirement.values.size()) / kStepsPerUnit;
  }
  return cost;
}

}  // namespace

absl::string_view Name(BudgetRefusal refusal) {
  switch (refusal) {
    case BudgetRefusal::kNone:
      return "None";
    case BudgetRefusal::kExhausted:
      return "Exhausted";
    case BudgetRefusal::kNeverAllows:
      return "NeverAllows";
    case BudgetRefusal::kStale:
      return "StaleStatus";
    case BudgetRefusal::kUnhealthy:
      return "UnhealthyPod";
    case BudgetRefusal::kSeveralBudgets:
      return "SeveralBudgets";
    case BudgetRefusal::kInvalidSelector:
      return "InvalidSelector";
    case BudgetRefusal::kTooCostly:
      return "TooCostly";
  }
  return "invalid refusal";
}

bool NeverAllows(const DisruptionBudget& budget) { return !IsStale(budget) && !AllowsOnceHealthy(budget); }

DisruptionBudgets::DisruptionBudgets(const ClusterObjects& objects) {
  for (const auto& [key, object] : objects.of(ObjectKind::kDisruptionBudget)) {
    const auto* const budget = std::get_if<DisruptionBudget>(&object.content);
    IndexBudget(key.namespace_name, *budget);
    budgets_.push_back({key, budget, IsStale(*budget), 0, 0});
  }
}

DisruptionBudgets::DisruptionBudgets(const ClusterState& state, std::span<const AcceptedEviction> evictions,
                                     WorkBudget* work)
    : DisruptionBudgets(state.objects()) {
  if (budgets_.empty()) return;
  const StrongVector<BudgetIndex, int64_t> seen = ReadyPodsSeen(state, MatchAll(state, work));
  for (const BudgetIndex i : budgets_.indices()) {
    Budget& budget = budgets_[i];
    if (budget.stale) continue;
    const DisruptionBudget& object = *budget.object;
    budget.left =
        std::min<int64_t>(object.disruptions_allowed, seen[i] - std::max<int64_t>(object.desired_healthy, 0));
  }
  for (const AcceptedEviction& eviction : evictions) {
    const BudgetUse use = Find(eviction.shape);
    if (!use.takes) continue;
    Budget& budget = budgets_[*use.budget];
    if (!IsDisrupted(*budget.object, eviction.pod_name)) --budget.left;
  }
}

void DisruptionBudgets::IndexBudget(absl::string_view namespace_name, const DisruptionBudget& budget) {
  ByLabel& of = index_[namespace_name];
  Candidates* among = &of.others;
  if (budget.selector_error.empty()) {
    for (const Requirement& requirement : budget.selector.requirements) {
      if (requirement.op != SelectorOperator::kIn || requirement.values.size() != 1) continue;
      among = &of.with_label[{requirement.key, requirement.values.front()}];
      break;
    }
  }
  among->budgets.push_back(budgets_.end_index());
  among->cost += CostOf(budget.selector);
  if (!of.first.has_value()) of.first = budgets_.end_index();
}

std::vector<const DisruptionBudgets::Candidates*> DisruptionBudgets::CandidatesFor(const PodShape& shape,
                                                                                   const ByLabel& of,
                                                                                   int64_t* cost) {
  constexpr size_t kLabelsPerUnit = 4;
  std::vector<const Candidates*> all = {&of.others};
  *cost = of.others.cost + 1;
  if (of.with_label.empty()) return all;
  *cost += static_cast<int64_t>(shape.labels.size() / kLabelsPerUnit);
  for (const auto& [key, value] : shape.labels) {
    const auto found = of.with_label.find({key, value});
    if (found == of.with_label.end()) continue;
    all.push_back(&found->second);
    *cost += found->second.cost;
  }
  return all;
}

int64_t DisruptionBudgets::MatchNamespace(const ClusterState& state, std::span<const int32_t> shapes,
                                          int64_t most, ByLabel* of, MatchingByShape* matching) const {
  int64_t spent = 0;
  for (const int32_t shape : shapes) {
    const PodShape& pod = state.pod_shapes()[shape];
    int64_t cost = 0;
    const std::vector<const Candidates*> all = CandidatesFor(pod, *of, &cost);
    if (cost > most - spent) {
      of->too_costly = true;
      return spent;
    }
    spent += cost;
    (*matching)[static_cast<size_t>(shape)] = MatchingAmong(pod, all);
  }
  return spent;
}

// The namespaces that seem cheap come first, so that none is given up because of another one.
DisruptionBudgets::MatchingByShape DisruptionBudgets::MatchAll(const ClusterState& state, WorkBudget* work) {
  // Chosen: about 0.8 s. 50,000 shapes with ten labels each, of which a budget asks for one, take 0.2
  // million.
  constexpr int64_t kMostWork = 8'000'000;
  struct OneNamespace {
    int64_t cost = 0;  // at least, and about
    absl::string_view name;
    std::vector<int32_t> shapes;
  };
  absl::flat_hash_map<absl::string_view, OneNamespace> by_name;
  const std::span<const int64_t> pods = state.pods_of_shape();
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == 0) continue;
    const PodShape& shape = state.pod_shapes()[static_cast<int32_t>(i)];
    const auto of = index_.find(shape.namespace_name);
    if (of == index_.end() || LeavesWithoutBudget(shape)) continue;
    OneNamespace& one = by_name[of->first];
    one.name = of->first;
    one.cost += of->second.others.cost + 1;
    one.shapes.push_back(static_cast<int32_t>(i));
  }
  std::vector<const OneNamespace*> order;
  order.reserve(by_name.size());
  for (const auto& [name, one] : by_name) order.push_back(&one);
  std::sort(order.begin(), order.end(), [](const OneNamespace* a, const OneNamespace* b) {
    return std::tie(a->cost, a->name) < std::tie(b->cost, b->name);
  });
  MatchingByShape matching(pods.size());
  int64_t left = kMostWork;
  for (const OneNamespace* const one : order) {
    const int64_t spent = MatchNamespace(state, one->shapes, left / 2, &index_[one->name], &matching);
    left -= spent;
    if (work != nullptr) work->Spend(spent);
  }
  return matching;
}

// Also works out uses_: both need the budgets of each shape.
StrongVector<BudgetIndex, int64_t> DisruptionBudgets::ReadyPodsSeen(const ClusterState& state,
                                                                    const MatchingByShape& all_matching) {
  StrongVector<BudgetIndex, int64_t> seen(budgets_.size(), 0);
  const std::span<const int64_t> pods = state.pods_of_shape();
  uses_.resize(pods.size());
  ByName by_name;
  for (size_t i = 0; i < pods.size(); ++i) {
    if (pods[i] == 0) continue;
    const PodShape& shape = state.pod_shapes()[static_cast<int32_t>(i)];
    if (LeavesWithoutBudget(shape)) continue;
    const std::vector<BudgetIndex>& matching = all_matching[i];
    uses_[i] = UseBy(shape, matching);
    if (!TraitsOf(shape).ready) continue;
    for (const BudgetIndex budget : matching) {
      if (budgets_[budget].object->disrupted_pods.empty()) {
        seen[budget] += pods[i];
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
                                    StrongVector<BudgetIndex, int64_t>* seen) const {
  for (int32_t slot = 0; slot < state.slot_end(); ++slot) {
    if (!state.Occupied(Slot{slot})) continue;
    const NodePods& pods = state.pods(Slot{slot});
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      for (const BudgetIndex budget : by_name[static_cast<size_t>(pods.pods()[i].shape)]) {
        const DisruptionBudget& object = *budgets_[budget].object;
        if (!IsDisrupted(object, pods.name(i))) ++(*seen)[budget];
      }
    }
  }
}

std::vector<BudgetIndex> DisruptionBudgets::Matching(const PodShape& shape) const {
  const auto found = index_.find(shape.namespace_name);
  if (found == index_.end()) return {};
  if (found->second.too_costly) return {*found->second.first};
  int64_t cost = 0;
  return MatchingAmong(shape, CandidatesFor(shape, found->second, &cost));
}

std::vector<BudgetIndex> DisruptionBudgets::MatchingAmong(const PodShape& shape,
                                                          std::span<const Candidates* const> all) const {
  std::vector<BudgetIndex> matching;
  for (const Candidates* const candidates : all) {
    for (const BudgetIndex number : candidates->budgets) {
      const DisruptionBudget& object = *budgets_[number].object;
      if (!object.selector_error.empty() || object.selector.Matches(shape.labels)) matching.push_back(number);
    }
  }
  std::sort(matching.begin(), matching.end());
  return matching;
}

BudgetUse DisruptionBudgets::UseBy(const PodShape& shape, std::span<const BudgetIndex> matching) const {
  BudgetUse use;
  if (LeavesWithoutBudget(shape)) return use;
  const auto of = index_.find(shape.namespace_name);
  if (of != index_.end() && of->second.too_costly) {
    return {.budget = *of->second.first, .refusal = BudgetRefusal::kTooCostly};
  }
  if (matching.empty()) return use;
  use.budget = matching.front();
  for (const BudgetIndex budget : matching) {
    if (budgets_[budget].object->selector_error.empty()) continue;
    return {.budget = budget, .refusal = BudgetRefusal::kInvalidSelector};
  }
  if (matching.size() > 1) {
    use.refusal = BudgetRefusal::kSeveralBudgets;
    return use;
  }
  const Budget& budget = budgets_[*use.budget];
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

bool DisruptionBudgets::NeverAllow(const PodShape& shape) const {
  constexpr int64_t kMostWorkOfPod = 200;  // chosen: about 20 us
  const auto found = index_.find(shape.namespace_name);
  if (found == index_.end() || LeavesWithoutBudget(shape)) return false;
  int64_t cost = 0;
  const std::vector<const Candidates*> candidates = CandidatesFor(shape, found->second, &cost);
  if (found->second.too_costly || cost > kMostWorkOfPod) return true;
  const std::vector<BudgetIndex> matching = MatchingAmong(shape, candidates);
  if (matching.size() != 1) return matching.size() > 1;
  const DisruptionBudget& budget = *budgets_[matching.front()].object;
  return !budget.selector_error.empty() || NeverAllows(budget);
}

std::vector<ObjectKey> DisruptionBudgets::TooCostly() const {
  std::vector<BudgetIndex> first;
  for (const auto& [name, of] : index_) {
    if (of.too_costly) first.push_back(*of.first);
  }
  std::sort(first.begin(), first.end());
  std::vector<ObjectKey> keys;
  for (const BudgetIndex budget : first) keys.push_back(key(budget));
  return keys;
}

BudgetRefusal DisruptionBudgets::Refuses(const BudgetUse& use) const {
  if (use.refusal != BudgetRefusal::kNone) return use.refusal;
  if (!use.takes || left(*use.budget) >= 1) return BudgetRefusal::kNone;
  const DisruptionBudget& budget = *budgets_[*use.budget].object;
  const bool never = budget.disruptions_allowed < 1 && NeverAllows(budget);
  return never ? BudgetRefusal::kNeverAllows : BudgetRefusal::kExhausted;
}

bool DisruptionBudgets::WouldBeLeft(const BudgetUse& use) const {
  return use.takes && left(*use.budget) + budgets_[*use.budget].taken > 0;
}

bool DisruptionBudgets::MayBeLeftLater(const BudgetUse& use) const {
  if (!use.takes) return false;
  return AllowsOnceHealthy(*budgets_[*use.budget].object);
}

DisruptionBudgets::Answer DisruptionBudgets::Ask(std::span<const BudgetUse> uses) const {
  Answer answer;
  absl::flat_hash_map<BudgetIndex, int64_t> taken;
  for (size_t i = 0; i < uses.size(); ++i) {
    const BudgetRefusal refusal = Refuses(uses[i]);
    if (refusal != BudgetRefusal::kNone) return {.refused = i, .refusal = refusal};
    if (uses[i].takes && ++taken[*uses[i].budget] > left(*uses[i].budget)) answer.risky = true;
  }
  return answer;
}

}  // namespace loadline
