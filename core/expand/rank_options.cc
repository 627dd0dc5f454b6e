#include "core/expand/rank_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/expand/joint_spending.h"
#include "core/price/rank_terms.h"

namespace loadline {
namespace {

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  const absl::int128 product = absl::int128(a) * b;
  return product > kMaxAmount ? kMaxAmount : static_cast<int64_t>(product);
}

// Adds up the pods. Returns whether one of them asks for a GPU.
bool AddPods(const RankQuestion& question, std::span<const double> pod_prices, const ExpansionOption& option,
             RankedOption* ranked) {
  bool any_gpu = false;
  for (const PodRun& run : option.pods) {
    if (run.count == 0) continue;
    const PodRequests& pod = question.pods[run.pod];
    ranked->theoretical_cost = AddRepeatedly(ranked->theoretical_cost, pod_prices[run.pod], run.count);
    ranked->pods += run.count;
    ranked->requested_milli_cpu =
        SaturatingAdd(ranked->requested_milli_cpu, SaturatingMultiply(pod.milli_cpu, run.count));
    ranked->requested_memory_bytes =
        SaturatingAdd(ranked->requested_memory_bytes, SaturatingMultiply(pod.memory_bytes, run.count));
    any_gpu = any_gpu || pod.gpus > 0;
  }
  return any_gpu;
}

double SuppressedUnfitness(const RankQuestion& question, const ExpansionOption& option,
                           RankedOption* ranked) {
  const RankPolicy& policy = question.policy;
  auto nodes = static_cast<double>(option.node_count);
  if (question.preferred.has_value()) {
    const NodeCapacity node = {option.node.milli_cpu, option.node.memory_bytes};
    ranked->unfitness = Unfitness(*question.preferred, node, policy.unfitness_resources);
    if (policy.count_preferred_nodes) {
      // One node that is smaller than the preferred one counts as one: suppression does not amplify.
      nodes = std::max(1.0, nodes * (static_cast<double>(node.milli_cpu) /
                                     static_cast<double>(question.preferred->milli_cpu)));
    }
  }
  const bool gpu_counts = policy.gpu_unfitness > 0 && option.has_gpu &&
                          (ranked->gpu_unneeded || !policy.gpu_unfitness_if_unneeded);
  if (gpu_counts) return policy.gpu_unfitness;
  return Suppress(ranked->unfitness, nodes, policy.suppression_divisor);
}

RankOutcome OutcomeOf(const ExpansionOption& option, const RankedOption& ranked) {
  if (ranked.node_price.source == PriceSource::kNone) return RankOutcome::kNoPrice;
  if (!option.node.has_template) return RankOutcome::kNoTemplate;
  return std::isnan(ranked.score) ? RankOutcome::kUndefinedScore : RankOutcome::kScored;
}

// The key by which a strategy orders: `rank`, then `value` by CompareScores(), then `number`. Lower is
// better.
struct Key {
  int rank = 0;
  double value = 0;
  int64_t number = 0;
};

Key KeyOf(RankStrategy strategy, const RankQuestion& question, const RankedOption& ranked) {
  const ExpansionOption& option = question.options[ranked.option];
  switch (strategy) {
    case RankStrategy::kPrice: {
      // CompareScores() knows where 0 / 0 belongs.
      const bool scored =
          ranked.outcome == RankOutcome::kScored || ranked.outcome == RankOutcome::kUndefinedScore;
      return {.rank = scored ? 0 : static_cast<int>(ranked.outcome), .value = scored ? ranked.score : 0};
    }
    case RankStrategy::kLeastWaste:
      return {.rank = ranked.waste.has_value() ? 0 : 1, .value = ranked.waste.value_or(0)};
    case RankStrategy::kMostPods:
      return {.number = -ranked.pods};
    case RankStrategy::kLeastNodes:
      return {.number = option.node_count};
    case RankStrategy::kPriority:
      // ~ turns the order round, also of the smallest number.
      return {.rank = option.priority.has_value() ? 0 : 1, .number = ~option.priority.value_or(0)};
    case RankStrategy::kJoint:
      return {.value = -ranked.joint_usd.value_or(0)};
  }
  return {};  // reached only by a cast from outside the enum
}

int Compare(const Key& a, const Key& b) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  if (const int order = CompareScores(a.value, b.value); order != 0) return order;
  return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
}

// All that an option is ordered by, but for name and index.
struct SortKey {
  bool helps_no_pod = false;
  std::vector<Key> strategies;
  bool gpu_unneeded = false;
  size_t at = 0;
};

}  // namespace

double ClusterAutoscalerDamper(const ResourceRates& rates) {
  return PodPrice(rates, {.milli_cpu = 500, .memory_bytes = int64_t{500} << 20});
}

double ProposalDamper(const ResourceRates& rates) { return PodPrice(rates, {.milli_cpu = 500}); }

RankPolicy ClusterAutoscalerRanking() {
  RankPolicy policy;
  policy.damper = ClusterAutoscalerDamper(policy.pod_rates);
  return policy;
}

RankPolicy ProposalRanking() {
  RankPolicy policy;
  policy.pod_rates.ephemeral_gib = 0;
  policy.pod_rates.ephemeral_flat = 0.01;
  policy.damper = ProposalDamper(policy.pod_rates);
  policy.gpu_unfitness = 0;
  policy.creation_factor = 1;
  policy.preferred_table = PreferredTable::kProposal;
  return policy;
}

std::vector<double> PricePods(const RankPolicy& policy, std::span<const PodRequests> pods) {
  std::vector<double> prices;
  prices.reserve(pods.size());
  for (const PodRequests& pod : pods) prices.push_back(PodPrice(policy.pod_rates, pod));
  return prices;
}

RankedOption ScoreOption(const RankQuestion& question, std::span<const double> pod_prices, size_t at) {
  const ExpansionOption& option = question.options[at];
  RankedOption ranked;
  ranked.option = at;
  const bool any_gpu = AddPods(question, pod_prices, option, &ranked);
  ranked.gpu_unneeded = option.has_gpu && !any_gpu;
  ranked.node_price = PriceNode(question.prices, option.node);
  if (option.node.has_template) {
    ranked.suppressed_unfitness = SuppressedUnfitness(question, option, &ranked);
    const double waste = Waste({.nodes = option.node_count,
                                .node_milli_cpu = option.node.milli_cpu,
                                .node_memory_bytes = option.node.memory_bytes,
                                .requested_milli_cpu = ranked.requested_milli_cpu,
                                .requested_memory_bytes = ranked.requested_memory_bytes});
    if (std::isfinite(waste)) ranked.waste = waste;
  }
  ranked.committed = CommittedPrice(question.prices, option.node, ranked.node_price, option.node_count);
  // Rounding may leave a little less than nothing of what is all committed.
  ranked.cost =
      std::max(0.0, ranked.node_price.price * static_cast<double>(option.node_count) - ranked.committed);
  ranked.creation_factor = option.to_be_created ? question.policy.creation_factor : 1;
  const ScoreTerms terms = {.suppressed_unfitness = ranked.suppressed_unfitness,
                            .cost = ranked.cost,
                            .theoretical_cost = ranked.theoretical_cost,
                            .damper = question.policy.damper,
                            .creation_factor = ranked.creation_factor};
  ranked.cost_ratio = CostRatio(terms);
  ranked.score = Score(terms);
  ranked.outcome = OutcomeOf(option, ranked);
  return ranked;
}

std::vector<RankedOption> RankOptions(const RankQuestion& question) {
  const std::vector<double> pod_prices = PricePods(question.policy, question.pods);
  std::vector<RankedOption> scored;
  std::vector<SortKey> keys;
  scored.reserve(question.options.size());
  keys.reserve(question.options.size());
  const std::vector<RankStrategy>& strategies = question.policy.strategies;
  std::vector<double> joint;
  if (std::find(strategies.begin(), strategies.end(), RankStrategy::kJoint) != strategies.end()) {
    joint = SpendJointly(question);
  }
  for (size_t i = 0; i < question.options.size(); ++i) {
    RankedOption& ranked = scored.emplace_back(ScoreOption(question, pod_prices, i));
    if (!joint.empty()) ranked.joint_usd = joint[i];
    SortKey& key = keys.emplace_back();
    key.helps_no_pod = question.options[i].node_count == 0 || ranked.pods == 0;
    if (key.helps_no_pod) ranked.outcome = RankOutcome::kHelpsNoPod;
    for (const RankStrategy strategy : strategies) {
      key.strategies.push_back(KeyOf(strategy, question, ranked));
    }
    key.gpu_unneeded = ranked.gpu_unneeded;
    key.at = i;
  }
  std::sort(keys.begin(), keys.end(), [&](const SortKey& a, const SortKey& b) {
    if (a.helps_no_pod != b.helps_no_pod) return b.helps_no_pod;
    for (size_t s = 0; s < a.strategies.size(); ++s) {
      if (const int order = Compare(a.strategies[s], b.strategies[s]); order != 0) return order < 0;
    }
    if (a.gpu_unneeded != b.gpu_unneeded) return b.gpu_unneeded;
    const int names = question.options[a.at].node_group.compare(question.options[b.at].node_group);
    return names != 0 ? names < 0 : a.at < b.at;
  });
  std::vector<RankedOption> order;
  order.reserve(keys.size());
  for (const SortKey& key : keys) order.push_back(std::move(scored[key.at]));
  return order;
}

}  // namespace loadline
