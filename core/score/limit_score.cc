#include "core/score/limit_score.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

// Bits of the fraction of a normalized score: less than one unit below an integer counts as that integer.
constexpr int kScoreBits = 16;
constexpr int64_t kMaxScore = 100;

// One resource of the incoming pod, ready for the loop over nodes.
struct PodTerm {
  PodLimit limit;
  int64_t weight;
  // On a node it counts as min(amount, ratio * allocatable); ratio 0: as amount.
  int64_t amount;
  int64_t ratio;
  int64_t largest_factor;  // of ratio that stays within 2^62
};

std::vector<PodTerm> PodTerms(const LimitPolicy& policy, const ClusterState& cluster, const PodShape& pod) {
  std::vector<PodTerm> terms;
  for (const ScoredResource& resource : policy.resources) {
    PodTerm term;
    term.limit =
        PodLimitOf(policy, resource, cluster.resource_names().Find(resource.name), pod, PodRole::kIncoming);
    term.weight = resource.weight;
    term.amount = term.limit.allocatable ? kMaxAmount : term.limit.amount;
    term.ratio = term.limit.allocatable ? 1 : policy.max_limit_ratio;
    term.largest_factor = kMaxAmount / std::max<int64_t>(term.ratio, 1);
    terms.push_back(term);
  }
  return terms;
}

int64_t SumOfWeights(const LimitPolicy& policy) {
  int64_t sum = 0;
  for (const ScoredResource& resource : policy.resources) sum += resource.weight;
  return sum;
}

// What the pod counts as on a node that offers the resource; equal to CountOnNode().
int64_t CountedAmount(const PodTerm& pod, int64_t allocatable) {
  if (pod.ratio == 0) return pod.amount;
  const int64_t bound = allocatable > pod.largest_factor ? kMaxAmount : allocatable * pod.ratio;
  return std::min(pod.amount, bound);
}

// 100 * (allocatable - limits there - pod) / allocatable in fixed point.
int64_t FixedPointTerm(const LimitTerm& node, const PodTerm& pod) {
  const uint64_t amount = static_cast<uint64_t>(CountedAmount(pod, node.allocatable));
  // amount <= 2^62 and reciprocal < 2^63: the product fits.
  const absl::uint128 share = (absl::uint128(amount) * node.reciprocal) >> node.shift;
  const int64_t taken =
      share > absl::uint128(kMaxRawScore) ? kMaxRawScore : static_cast<int64_t>(absl::Uint128Low64(share));
  return std::max(node.raw_without_pod - taken, -kMaxRawScore);
}

// The same in whole numbers, truncated towards 0.
int64_t TruncatingTerm(const LimitTerm& node, int64_t node_limits, const PodTerm& pod) {
  const absl::int128 free =
      absl::int128(node.allocatable) - node_limits - CountedAmount(pod, node.allocatable);
  const absl::int128 raw = free * 100 / node.allocatable;
  return static_cast<int64_t>(std::clamp(raw, absl::int128(-kMaxRawScore), absl::int128(kMaxRawScore)));
}

// Adds up the resources of one node as the policy says.
class Aggregator {
 public:
  explicit Aggregator(const LimitPolicy& policy) : policy_(policy), all_weights_(SumOfWeights(policy)) {}

  int64_t all_weights() const { return all_weights_; }

  void Start() { sum_ = 0, counted_ = 0, worst_ = kMaxRawScore; }
  void Add(int64_t term, int64_t weight) {
    sum_ += term * weight;
    counted_ += weight;
    worst_ = std::min(worst_, term);
  }
  // kNoRawScore when nothing was added.
  int64_t Finish() const {
    if (counted_ == 0) return kNoRawScore;
    switch (policy_.aggregate) {
      case Aggregate::kWorst:
        return worst_;
      case Aggregate::kWeightedSum:
        return sum_;
      case Aggregate::kWeightedMean:
        break;
    }
    const bool add_nothing = policy_.absent_resource == AbsentResource::kAddNothing;
    const int64_t weights = add_nothing ? all_weights_ : counted_;
    if (policy_.arithmetic == Arithmetic::kTruncating) return sum_ / weights;
    if (weights == all_weights_) return sum_;
    return static_cast<int64_t>(absl::int128(sum_) * all_weights_ / weights);
  }

 private:
  const LimitPolicy& policy_;
  int64_t all_weights_;
  int64_t sum_ = 0;  // |term| <= 2^52, times at most 16 weights of 100
  int64_t counted_ = 0;
  int64_t worst_ = 0;
};

ScoreOutcome OutcomeOf(const LimitPolicy& policy, std::span<const LimitTerm> node,
                       std::span<const PodTerm> pod) {
  bool counted = false;
  for (size_t r = 0; r < node.size(); ++r) {
    if (node[r].allocatable > 0) {
      counted = true;
    } else if (pod[r].limit.limited && policy.absent_resource == AbsentResource::kExclude) {
      return ScoreOutcome::kLacksLimitedResource;
    }
  }
  return counted ? ScoreOutcome::kScored : ScoreOutcome::kNothingCounted;
}

// floor(numerator / denominator), where less than 2^-16 below an integer counts as that integer.
int32_t RoundDown(uint64_t numerator, uint64_t denominator) {
  const absl::uint128 scaled = (absl::uint128(numerator) << kScoreBits) + (denominator - 1);
  return static_cast<int32_t>(absl::Uint128Low64(scaled / denominator) >> kScoreBits);
}

struct Range {
  int64_t lowest = INT64_MAX;
  int64_t highest = INT64_MIN;
};

Range RangeOf(const std::vector<int64_t>& values) {
  Range range;
  for (const int64_t value : values) {
    if (value == kNoRawScore) continue;
    range.lowest = std::min(range.lowest, value);
    range.highest = std::max(range.highest, value);
  }
  return range;
}

void NormalizeMinMaxFixedPoint(const RawScores& raw, std::vector<int32_t>* scores) {
  const Range range = RangeOf(raw.values);
  const uint64_t width = static_cast<uint64_t>(range.highest) - static_cast<uint64_t>(range.lowest);
  if (range.lowest > range.highest || width < static_cast<uint64_t>(raw.one >> 20)) return;
  // One division for all nodes: value / width = (value << up) * reciprocal / 2^127, at most 2^-62 too low.
  const int up = std::countl_zero(width);
  const uint64_t reciprocal = absl::Uint128Low64((absl::Uint128Max() >> 1) / (width << up));
  constexpr uint64_t kUnits = uint64_t{kMaxScore} << kScoreBits;
  constexpr uint64_t kRoundUp = (uint64_t{1} << 63) - 1;
  for (size_t i = 0; i < raw.values.size(); ++i) {
    if (raw.values[i] == kNoRawScore) continue;
    const uint64_t value = static_cast<uint64_t>(raw.values[i]) - static_cast<uint64_t>(range.lowest);
    const uint64_t share = absl::Uint128High64(absl::uint128(value << up) * reciprocal);  // of 2^63
    const absl::uint128 units = (absl::uint128(share) * kUnits + kRoundUp) >> 63;
    (*scores)[i] = static_cast<int32_t>(absl::Uint128Low64(units) >> kScoreBits);
  }
}

void NormalizeMinMaxTruncating(const RawScores& raw, std::vector<int32_t>* scores) {
  const Range range = RangeOf(raw.values);
  if (range.lowest >= range.highest) return;
  const absl::int128 width = absl::int128(range.highest) - range.lowest;
  for (size_t i = 0; i < raw.values.size(); ++i) {
    if (raw.values[i] == kNoRawScore) continue;
    (*scores)[i] = static_cast<int32_t>((absl::int128(raw.values[i]) - range.lowest) * kMaxScore / width);
  }
}

// 100 / (1 + ratio) with ratio = 1 - raw / 100: 10000 / (200 - raw), where raw <= 100.
void NormalizeAbsolute(const RawScores& raw, std::vector<int32_t>* scores) {
  const uint64_t numerator = 10'000 * static_cast<uint64_t>(raw.mean_one);
  for (size_t i = 0; i < raw.values.size(); ++i) {
    if (raw.values[i] == kNoRawScore) continue;
    // 200 * one <= 2^51 and |value| < 2^62.7: within 63 bits.
    (*scores)[i] = RoundDown(numerator, static_cast<uint64_t>(200 * raw.mean_one - raw.values[i]));
  }
}

ResourceExplanation ExplainResource(const LimitColumns& columns, const ClusterState& cluster, Slot slot,
                                    size_t r, const PodTerm& pod) {
  const LimitPolicy& policy = columns.policy();
  const ScoredResource& resource = policy.resources[r];
  const LimitTerm& node = columns.terms(slot)[r];
  ResourceExplanation result;
  result.pod = CountOnNode(policy, pod.limit, node.allocatable);
  result.pod_rule = pod.limit.rule;
  if (node.allocatable == 0) return result;
  result.allocatable = node.allocatable;
  result.node_limits = columns.limits(slot)[r];
  result.ratio = (static_cast<double>(result.node_limits) + static_cast<double>(result.pod.amount)) /
                 static_cast<double>(node.allocatable);
  const bool fixed_point = policy.arithmetic == Arithmetic::kFixedPoint;
  const int64_t raw = fixed_point ? FixedPointTerm(node, pod) : TruncatingTerm(node, result.node_limits, pod);
  result.raw_score =
      static_cast<double>(raw) / (fixed_point ? static_cast<double>(int64_t{1} << kRawScoreBits) : 1);
  result.saturated = raw == -kMaxRawScore;
  const std::optional<ResourceId> id = cluster.resource_names().Find(resource.name);
  for (const NodePods::Pod& there : cluster.pods(slot).pods()) {
    const PodShape& shape = cluster.pod_shapes()[there.shape];
    if (shape.finished) continue;
    const PodLimit limit = PodLimitOf(policy, resource, id, shape, PodRole::kExisting);
    const CountedLimit counted = CountOnNode(policy, limit, node.allocatable);
    result.node_missing_limits += counted.missing ? 1 : 0;
    result.node_clamped += counted.clamped ? 1 : 0;
  }
  return result;
}

}  // namespace

RawScores ScoreRaw(const LimitColumns& columns, const ClusterState& cluster, const PodShape& pod,
                   std::span<const Slot> candidates) {
  const LimitPolicy& policy = columns.policy();
  const std::vector<PodTerm> pod_terms = PodTerms(policy, cluster, pod);
  const bool exclude = policy.absent_resource == AbsentResource::kExclude;
  const bool fixed_point = policy.arithmetic == Arithmetic::kFixedPoint;
  Aggregator aggregator(policy);
  RawScores raw;
  raw.values.reserve(candidates.size());
  for (const Slot slot : candidates) {
    const std::span<const LimitTerm> node = columns.terms(slot);
    bool lacks_limited = false;
    aggregator.Start();
    for (size_t r = 0; r < node.size(); ++r) {
      if (node[r].allocatable == 0) {
        lacks_limited = lacks_limited || (exclude && pod_terms[r].limit.limited);
        continue;
      }
      aggregator.Add(fixed_point ? FixedPointTerm(node[r], pod_terms[r])
                                 : TruncatingTerm(node[r], columns.limits(slot)[r], pod_terms[r]),
                     pod_terms[r].weight);
    }
    raw.values.push_back(lacks_limited ? kNoRawScore : aggregator.Finish());
  }
  const int64_t unit = fixed_point ? int64_t{1} << kRawScoreBits : 1;
  const bool mean_is_scaled = fixed_point && policy.aggregate == Aggregate::kWeightedMean;
  raw.one = mean_is_scaled ? unit * aggregator.all_weights() : unit;
  raw.mean_one = policy.aggregate == Aggregate::kWeightedSum ? unit * aggregator.all_weights() : raw.one;
  return raw;
}

void Normalize(const LimitPolicy& policy, const RawScores& raw, std::vector<int32_t>* scores) {
  scores->assign(raw.values.size(), 0);
  switch (policy.normalization) {
    case Normalization::kAbsolute:
      return NormalizeAbsolute(raw, scores);
    case Normalization::kMinMax:
      break;
  }
  return policy.arithmetic == Arithmetic::kFixedPoint ? NormalizeMinMaxFixedPoint(raw, scores)
                                                      : NormalizeMinMaxTruncating(raw, scores);
}

void ScoreNodes(const LimitColumns& columns, const ClusterState& cluster, const PodShape& pod,
                std::span<const Slot> candidates, std::vector<int32_t>* scores) {
  Normalize(columns.policy(), ScoreRaw(columns, cluster, pod, candidates), scores);
}

std::vector<NodeExplanation> ExplainNodes(const LimitColumns& columns, const ClusterState& cluster,
                                          const PodShape& pod, std::span<const Slot> candidates,
                                          std::span<const size_t> explained) {
  const std::vector<PodTerm> pod_terms = PodTerms(columns.policy(), cluster, pod);
  const RawScores raw = ScoreRaw(columns, cluster, pod, candidates);
  std::vector<int32_t> scores;
  Normalize(columns.policy(), raw, &scores);
  std::vector<NodeExplanation> result;
  result.reserve(explained.size());
  for (const size_t i : explained) {
    NodeExplanation& node = result.emplace_back();
    node.slot = candidates[i];
    node.outcome = OutcomeOf(columns.policy(), columns.terms(node.slot), pod_terms);
    node.score = scores[i];
    if (node.outcome == ScoreOutcome::kScored) {
      node.raw_score = static_cast<double>(raw.values[i]) / static_cast<double>(raw.one);
    }
    for (size_t r = 0; r < pod_terms.size(); ++r) {
      node.resources.push_back(ExplainResource(columns, cluster, node.slot, r, pod_terms[r]));
    }
  }
  return result;
}

}  // namespace loadline
