#include "core/grow/growth_turn.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// The most parts into which namespaces are divided. Chosen: with so many parts a namespace waits for some
// hours, at a loop every ten seconds.
constexpr int32_t kMostParts = 1'024;

uint64_t Draw(const GrowthTurn& turn, absl::string_view namespace_name) {
  FingerprintBuilder builder;
  builder.Add(turn.round);
  builder.Add(namespace_name);
  return builder.Finish();
}

// Returns about how much of a plan these pods take: their kind, its rules, and each pod that has any.
int64_t Weight(const PendingPods& pods) {
  if (pods.count == 0) return 0;
  const PodRules* const rules = pods.pod.shape.rules.get();
  const int64_t terms = rules == nullptr ? 0 : static_cast<int64_t>(rules->CountTerms());
  return 1 + terms + (terms > 0 ? pods.count : 0);
}

// Returns the lightest namespaces, which take part whatever is drawn: together they weigh at most half of the
// share of a turn.
absl::flat_hash_set<absl::string_view> Lightest(const GrowthTurn& turn,
                                                const std::vector<PendingPods>& waiting) {
  absl::btree_map<absl::string_view, int64_t> weights;
  int64_t left = 0;
  for (const PendingPods& pods : waiting) {
    const int64_t weight = Weight(pods);
    if (weight == 0) continue;
    weights[pods.pod.shape.namespace_name] += weight;
    left += weight;
  }
  left /= 2 * turn.parts;
  std::vector<std::tuple<int64_t, uint64_t, absl::string_view>> order;
  for (const auto& [name, weight] : weights) order.emplace_back(weight, Draw(turn, name), name);
  std::sort(order.begin(), order.end());
  absl::flat_hash_set<absl::string_view> lightest;
  for (const auto& [weight, draw, name] : order) {
    left -= weight;
    if (left < 0) break;
    lightest.insert(name);
  }
  return lightest;
}

// Returns whether one namespace alone had pods that took too much, so that nobody else lacks anything.
bool OneAloneTookTooMuch(const std::vector<PendingPods>& waiting, const ScaleUpPlan& plan) {
  return !plan.cut_off.empty() && std::all_of(plan.cut_off.begin(), plan.cut_off.end(), [&](size_t position) {
    return waiting[position].pod.shape.namespace_name ==
           waiting[plan.cut_off.front()].pod.shape.namespace_name;
  });
}

}  // namespace

DeferredPods TakeOutOfTurn(const GrowthTurn& turn, std::vector<PendingPods>* waiting) {
  DeferredPods held;
  if (turn.parts <= 1) return held;
  const uint64_t parts = static_cast<uint64_t>(turn.parts);
  const absl::flat_hash_set<absl::string_view> lightest = Lightest(turn, *waiting);
  std::pair<bool, uint64_t> first{true, ~uint64_t{0}};  // it is out of turn, and its draw: the least of all
  for (const PendingPods& pods : *waiting) {
    const uint64_t draw = Draw(turn, pods.pod.shape.namespace_name);
    if (pods.count > 0) first = std::min(first, std::pair{draw % parts != 0, draw});
  }
  for (size_t i = 0; i < waiting->size(); ++i) {
    PendingPods& pods = (*waiting)[i];
    const uint64_t draw = Draw(turn, pods.pod.shape.namespace_name);
    if (pods.count == 0 || draw % parts == 0 || draw == first.second) continue;
    if (lightest.contains(pods.pod.shape.namespace_name))
      continue;  // not moved: `lightest` refers to its name
    PendingPods nothing;
    nothing.pod.names = pods.pod.names;
    nothing.count = 0;
    held.emplace_back(i, std::exchange(pods, std::move(nothing)));
  }
  return held;
}

GrowthTurn NextTurn(const GrowthTurn& turn, const std::vector<PendingPods>& waiting,
                    const ScaleUpPlan& plan) {
  absl::btree_set<absl::string_view> namespaces;
  bool left = false;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].count == 0) continue;
    namespaces.insert(waiting[i].pod.shape.namespace_name);
    left = left || (i < plan.unplaced.size() && plan.unplaced[i] > 0);
  }
  GrowthTurn next = turn;
  ++next.round;
  if (plan.cut_short_by != BudgetEnd::kNotEnded && left && !OneAloneTookTooMuch(waiting, plan)) {
    // One alone that is cut short keeps its turn, beside as many others as take part now.
    if (namespaces.size() > 1) next.parts = std::min(kMostParts, 2 * turn.parts);
    if (next.parts > 1) next.cut_short_by = plan.cut_short_by;
  } else {
    next.parts = std::max(1, turn.parts / 2);
  }
  if (next.parts == 1) next.cut_short_by = BudgetEnd::kNotEnded;
  if (next.parts == 1 && turn.parts == 1) next.round = turn.round;
  return next;
}

void PutBack(const GrowthTurn& turn, DeferredPods&& held, std::vector<PendingPods>* waiting,
             ScaleUpPlan* plan) {
  if (held.empty()) return;
  plan->unplaced.resize(waiting->size(), 0);
  for (auto& [position, pods] : held) {
    plan->unplaced[position] = pods.count;
    (*waiting)[position] = std::move(pods);
  }
  plan->cut_short = true;
  if (plan->cut_short_by == BudgetEnd::kNotEnded) plan->cut_short_by = turn.cut_short_by;
}

}  // namespace loadline
