#include "core/score/limit_score.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/score/hourly_score.h"
#include "core/score/score_terms.h"

namespace loadline {
namespace {

// Bits of the fraction of a normalized score: less than one unit below an integer counts as that integer.
constexpr int kScoreBits = 16;
constexpr int64_t kMaxScore = 100;

// `expected` may be nullptr.
std::vector<PodTerm> PodTerms(const LimitPolicy& policy, const ResourceNames& names, const PodShape& pod,
                              const ExpectedUse* expected) {
  std::vector<PodTerm> terms;
  for (const ScoredResource& resource : policy.resources) {
    PodTerm term;
    const std::optional<ResourceId> id = names.Find(resource.name);
    term.limit = PodLimitOf(policy, resource, id, pod, PodRole::kIncoming);
    term.weight = resource.weight;
    term.amount = term.limit.allocatable ? kMaxAmount : term.limit.amount;
    term.ratio = term.limit.allocatable ? 1 : policy.max_limit_ratio;
    term.largest_factor = kMaxAmount / std::max<int64_t>(term.ratio, 1);
    term.at_most.fill(kMaxAmount);
    if (expected != nullptr && id.has_value()) {
      term.at_most = ScoredAtMost(*expected, pod, *id, term.limit);
      term.has_profile = expected->Find(pod, *id) != nullptr;
    }
    term.peak = *std::max_element(term.at_most.begin(), term.at_most.end());
    terms.push_back(term);
  }
  return terms;
}

int64_t SumOfWeights(const LimitPolicy& policy) {
  int64_t sum = 0;
  for (const ScoredResource& resource : policy.resources) sum += resource.weight;
  return sum;
}

template <Arithmetic kArithmetic>
std::vector<int64_t> RawValues(const LimitColumns& columns, std::span<const PodTerm> pod, int64_t all_weights,
                               std::span<const Slot> candidates) {
  if (columns.expected() != nullptr) {
    return HourlyRawValues<kArithmetic>(columns, pod, all_weights, candidates);
  }
  std::vector<int64_t> values(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const NodeSum node = SumOfTerms<kArithmetic>(columns, candidates[i], pod);
    values[i] = Combine<kArithmetic>(columns.policy(), node, all_weights);
  }
  return values;
}

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

void NormalizeMinMaxFixedPoint(const RawScores& raw, int64_t equal_below, std::vector<int32_t>* scores) {
  const Range range = RangeOf(raw.values);
  const uint64_t width = static_cast<uint64_t>(range.highest) - static_cast<uint64_t>(range.lowest);
  if (range.lowest > range.highest || width < static_cast<uint64_t>(equal_below)) return;
  // One division for all nodes; its rounding moves a score by less than 2^-39.
  constexpr int kFractionBits = 39;
  constexpr uint64_t kUnits = uint64_t{kMaxScore} << kScoreBits;
  constexpr uint64_t kRoundUp = (uint64_t{1} << kFractionBits) - 1;
  const int up = std::countl_zero(width);
  const uint64_t reciprocal =
      absl::Uint128Low64((absl::uint128(kUnits) << (64 + kFractionBits)) / (width << up));
  for (size_t i = 0; i < raw.values.size(); ++i) {
    if (raw.values[i] == kNoRawScore) continue;
    const uint64_t value = static_cast<uint64_t>(raw.values[i]) - static_cast<uint64_t>(range.lowest);
    const uint64_t units = absl::Uint128High64(absl::uint128(value << up) * reciprocal);
    (*scores)[i] = static_cast<int32_t>((units + kRoundUp) >> (kFractionBits + kScoreBits));
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
    // 200 * one <= 2^51 and |value| < 2^62.8: within 63 bits.
    (*scores)[i] = RoundDown(numerator, static_cast<uint64_t>(200 * raw.mean_one - raw.values[i]));
  }
}

// Returns the raw score that a node without a pod that blocks drains loses for `pod`; 0: it loses nothing.
int64_t LostApart(const LimitColumns& columns, const PodShape& pod, const RawScores& raw) {
  if (columns.blockers() == nullptr || !columns.blockers()->Blocks(pod)) return 0;
  return columns.policy().blockers_together * raw.mean_one;
}

ResourceExplanation ExplainResource(const LimitColumns& columns, const ClusterState& cluster, Slot slot,
                                    size_t r, const PodTerm& pod, std::optional<size_t> hour) {
  const LimitPolicy& policy = columns.policy();
  const ScoredResource& resource = policy.resources[r];
  const LimitTerm& node = columns.terms(slot)[r];
  ResourceExplanation result;
  result.pod = CountOnNode(policy, pod.limit, node.allocatable);
  result.pod_rule = pod.limit.rule;
  if (node.allocatable == 0) return result;
  result.allocatable = node.allocatable;
  result.node_limits = hour.has_value() ? columns.scored_limits(slot, r, *hour) : columns.limits(slot)[r];
  if (hour.has_value() && pod.at_most[*hour] < result.pod.amount) {
    result.pod.amount = pod.at_most[*hour];
    result.pod_by_profile = pod.has_profile;
    result.pod_by_share = !pod.has_profile;
  }
  result.ratio = (static_cast<double>(result.node_limits) + static_cast<double>(result.pod.amount)) /
                 static_cast<double>(node.allocatable);
  const bool fixed_point = policy.arithmetic == Arithmetic::kFixedPoint;
  const int64_t node_raw = hour.has_value() ? columns.hour_raw(slot, r)[*hour] : node.raw_without_pod;
  const int64_t raw = fixed_point ? node_raw - ShareOf(node, result.pod.amount)
                                  : TruncatingTerm(node, result.node_limits, result.pod.amount);
  result.raw_score =
      static_cast<double>(raw) / (fixed_point ? static_cast<double>(int64_t{1} << kRawScoreBits) : 1);
  result.saturated = raw <= -kMaxRawScore;
  if (fixed_point) {  // the term is the difference of two terms, and each of them can be saturated
    result.saturated |= node_raw <= -kMaxRawScore || node_raw - raw >= kMaxRawScore;
  }
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
                   std::span<const Slot> candidates, const ResourceNames* pod_names) {
  const LimitPolicy& policy = columns.policy();
  const std::vector<PodTerm> pod_terms =
      PodTerms(policy, pod_names == nullptr ? cluster.resource_names() : *pod_names, pod, columns.expected());
  const int64_t all_weights = SumOfWeights(policy);
  const bool fixed_point = policy.arithmetic == Arithmetic::kFixedPoint;
  RawScores raw;
  raw.values = fixed_point ? RawValues<Arithmetic::kFixedPoint>(columns, pod_terms, all_weights, candidates)
                           : RawValues<Arithmetic::kTruncating>(columns, pod_terms, all_weights, candidates);
  const int64_t unit = fixed_point ? int64_t{1} << kRawScoreBits : 1;
  const bool mean_is_scaled = fixed_point && policy.aggregate == Aggregate::kWeightedMean;
  raw.one = mean_is_scaled ? unit * all_weights : unit;
  raw.mean_one = policy.aggregate == Aggregate::kWeightedSum ? unit * all_weights : raw.one;
  // |value| < 2^62.7, and at most 50 * 2^32 * 1600 < 2^49 are lost: within 63 bits.
  if (const int64_t lost = LostApart(columns, pod, raw); lost > 0) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (raw.values[i] != kNoRawScore && !columns.has_blocker(candidates[i])) raw.values[i] -= lost;
    }
  }
  return raw;
}

int64_t EqualBelow(const LimitPolicy& policy, const RawScores& raw) {
  return policy.arithmetic == Arithmetic::kFixedPoint ? raw.one >> 20 : 1;
}

void Normalize(const LimitPolicy& policy, const RawScores& raw, std::vector<int32_t>* scores) {
  scores->assign(raw.values.size(), 0);
  switch (policy.normalization) {
    case Normalization::kAbsolute:
      return NormalizeAbsolute(raw, scores);
    case Normalization::kMinMax:
      break;
  }
  if (policy.arithmetic == Arithmetic::kTruncating) return NormalizeMinMaxTruncating(raw, scores);
  NormalizeMinMaxFixedPoint(raw, EqualBelow(policy, raw), scores);
}

void ScoreNodes(const LimitColumns& columns, const ClusterState& cluster, const PodShape& pod,
                std::span<const Slot> candidates, std::vector<int32_t>* scores,
                const ResourceNames* pod_names) {
  Normalize(columns.policy(), ScoreRaw(columns, cluster, pod, candidates, pod_names), scores);
}

std::vector<NodeExplanation> ExplainNodes(const LimitColumns& columns, const ClusterState& cluster,
                                          const PodShape& pod, std::span<const Slot> candidates,
                                          std::span<const size_t> explained, const ResourceNames* pod_names) {
  const std::vector<PodTerm> pod_terms =
      PodTerms(columns.policy(), pod_names == nullptr ? cluster.resource_names() : *pod_names, pod,
               columns.expected());
  const RawScores raw = ScoreRaw(columns, cluster, pod, candidates, pod_names);
  std::vector<int32_t> scores;
  Normalize(columns.policy(), raw, &scores);
  const double lost_apart = static_cast<double>(LostApart(columns, pod, raw)) / static_cast<double>(raw.one);
  std::vector<NodeExplanation> result;
  result.reserve(explained.size());
  for (const size_t i : explained) {
    NodeExplanation& node = result.emplace_back();
    node.slot = candidates[i];
    node.outcome = OutcomeOf(columns.policy(), columns.terms(node.slot), pod_terms);
    node.score = scores[i];
    if (node.outcome == ScoreOutcome::kScored) {
      node.raw_score = static_cast<double>(raw.values[i]) / static_cast<double>(raw.one);
      if (lost_apart > 0 && !columns.has_blocker(node.slot)) node.lost_apart = lost_apart;
    }
    if (columns.expected() != nullptr) node.hour = WorstHour(columns, pod_terms, node.slot);
    for (size_t r = 0; r < pod_terms.size(); ++r) {
      node.resources.push_back(ExplainResource(columns, cluster, node.slot, r, pod_terms[r], node.hour));
    }
  }
  return result;
}

}  // namespace loadline
