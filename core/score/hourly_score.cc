#include "core/score/hourly_score.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/base/attributes.h"

namespace loadline {
namespace {

int64_t CountedInHour(const PodTerm& pod, int64_t allocatable, size_t hour) {
  return std::min(CountedAmount(pod, allocatable), pod.at_most[hour]);
}

// The sum over the resources of one node in one hour; see SumOfTerms().
template <Arithmetic kArithmetic>
NodeSum SumInHour(const LimitColumns& columns, Slot slot, std::span<const PodTerm> pod, size_t hour) {
  NodeSum node;
  const std::span<const LimitTerm> terms = columns.terms(slot);
  for (size_t r = 0; r < pod.size(); ++r) {
    if (terms[r].allocatable == 0) {
      node.lacks_limited = node.lacks_limited || pod[r].limit.limited;
      continue;
    }
    const int64_t counted = CountedInHour(pod[r], terms[r].allocatable, hour);
    const int64_t term = kArithmetic == Arithmetic::kFixedPoint
                             ? columns.hour_raw(slot, r)[hour] - ShareOf(terms[r], counted)
                             : TruncatingTerm(terms[r], columns.scored_limits(slot, r, hour), counted);
    node.sum += term * pod[r].weight;
    node.counted += pod[r].weight;
    node.worst = std::min(node.worst, term);
  }
  return node;
}

// The hours one by one.
template <Arithmetic kArithmetic>
int64_t LowestOfHours(const LimitColumns& columns, std::span<const PodTerm> pod, int64_t all_weights,
                      Slot slot) {
  int64_t lowest = INT64_MAX;
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    const NodeSum node = SumInHour<kArithmetic>(columns, slot, pod, hour);
    lowest = std::min(lowest, Combine<kArithmetic>(columns.policy(), node, all_weights));
  }
  return lowest;
}

// Four numbers that every processor handles in one step.
using Lanes = float __attribute__((vector_size(16)));
using LaneMask = int32_t __attribute__((vector_size(16)));
constexpr size_t kWidth = sizeof(Lanes) / sizeof(float);
constexpr size_t kSteps = kHoursOfDay / kWidth;
static_assert(kSteps == 6, "the loops over RoughHours are unrolled six times");
using RoughHours = std::array<Lanes, kSteps>;

// Returns the hours, one bit each, in which the number is at most `margin` above the lowest.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline uint32_t HoursNearLowest(const RoughHours& hours, float margin) {
  Lanes lowest = hours[0];
#pragma GCC unroll 6
  for (size_t i = 1; i < kSteps; ++i) lowest = hours[i] < lowest ? hours[i] : lowest;
  const float most = std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3])) + margin;
  const Lanes all_most = {most, most, most, most};
  const LaneMask bits = {1, 2, 4, 8};
  LaneMask near = {};
#pragma GCC unroll 6
  for (size_t i = 0; i < kSteps; ++i) {
    near |= (hours[i] <= all_most) & (bits << static_cast<int32_t>(i * kWidth));
  }
  return static_cast<uint32_t>(near[0] | near[1] | near[2] | near[3]);
}

// The lowest of the weighted sums of the hours, in fixed point. Rough sums tell which hours may have it: most
// often one, whose sum is then exact.
class LowestSum {
 public:
  LowestSum(const LimitColumns* columns, std::span<const PodTerm> pod, int64_t all_weights)
      : columns_(*columns), pod_(pod), all_weights_(all_weights) {
    for (size_t r = 0; r < pod.size(); ++r) {
      const PodTerm& term = pod[r];
      const int64_t least = *std::min_element(term.at_most.begin(), term.at_most.end());
      if (term.amount <= least || term.peak == least) {
        constant_.push_back(r);
        continue;
      }
      Varying& varying = varying_.emplace_back();
      varying.resource = r;
      varying.weight = term.weight;
      varying.peak = std::min(term.amount, term.peak);
      for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
        varying.amounts[hour] = std::min(term.amount, term.at_most[hour]);
        varying.rough[hour / kWidth][hour % kWidth] =
            static_cast<float>(varying.amounts[hour]) * static_cast<float>(term.weight);
      }
    }
  }

  // Returns the raw score of a node.
  int64_t RawScoreOf(Slot slot) const {
    const LimitTerm* const terms = columns_.terms(slot).data();
    NodeSum node;
    for (const Varying& varying : varying_) {
      if (varying.peak > terms[varying.resource].allocatable) {  // the node bounds what the pod counts as
        return LowestOfHours<Arithmetic::kFixedPoint>(columns_, pod_, all_weights_, slot);
      }
      node.counted += varying.weight;
    }
    for (const size_t r : constant_) {
      if (terms[r].allocatable == 0) {
        node.lacks_limited = node.lacks_limited || pod_[r].limit.limited;
        continue;
      }
      node.counted += pod_[r].weight;
      node.sum -= ShareOf(terms[r], CountedInHour(pod_[r], terms[r].allocatable, 0)) * pod_[r].weight;
    }
    const int64_t* const sums = columns_.hour_sums(slot).data();
    const int64_t lowest = sums[columns_.worst_hour(slot)];
    node.sum += varying_.empty() ? lowest : Lowest(slot, terms, lowest, node.counted);
    return Combine<Arithmetic::kFixedPoint>(columns_.policy(), node, all_weights_);
  }

 private:
  // A resource of which the pod does not count as the same amount in all hours.
  struct Varying {
    RoughHours rough = {};  // the amounts, times the weight
    HourlyAmounts amounts = {};
    int64_t peak = 0;
    int64_t weight = 0;
    size_t resource = 0;
  };

  // Returns the lowest sum of a node that offers all varying resources, with what the pod takes of these.
  // `lowest` is that without the pod.
  ABSL_ATTRIBUTE_ALWAYS_INLINE int64_t Lowest(Slot slot, const LimitTerm* terms, int64_t lowest,
                                              int64_t counted_weights) const {
    RoughHours rough;
    std::memcpy(&rough, columns_.rough_sums(slot), sizeof(rough));
    float most_taken = 0;
    for (const Varying& varying : varying_) {
      const float share = terms[varying.resource].share;
      const Lanes shares = {share, share, share, share};
#pragma GCC unroll 6
      for (size_t i = 0; i < kSteps; ++i) rough[i] -= varying.rough[i] * shares;
      most_taken += static_cast<float>(varying.peak) * static_cast<float>(varying.weight) * share;
    }
    // No sum without the pod is farther from 0 than this. A rough one deviates by at most 22 roundings, of up
    // to 2^-24 each, of that and what the pod takes: one of the sum, five of a share, and 16 subtractions.
    const float largest =
        std::max(static_cast<float>(counted_weights * (100 * (int64_t{1} << kRawScoreBits))),
                 -static_cast<float>(lowest));
    constexpr float kDeviation = 1.0F / (1 << 19);
    uint32_t hours = HoursNearLowest(rough, 2 * kDeviation * (largest + most_taken));
    const int64_t* const sums = columns_.hour_sums(slot).data();
    int64_t exact = INT64_MAX;
    for (; hours != 0; hours &= hours - 1) {
      const size_t hour = static_cast<size_t>(std::countr_zero(hours));
      int64_t sum = sums[hour];
      for (const Varying& varying : varying_) {
        sum -= ShareOf(terms[varying.resource], varying.amounts[hour]) * varying.weight;
      }
      exact = std::min(exact, sum);
    }
    return exact;
  }

  const LimitColumns& columns_;
  const std::span<const PodTerm> pod_;
  const int64_t all_weights_;
  std::vector<Varying> varying_;
  std::vector<size_t> constant_;  // the other resources
};

}  // namespace

template <Arithmetic kArithmetic>
std::vector<int64_t> HourlyRawValues(const LimitColumns& columns, std::span<const PodTerm> pod,
                                     int64_t all_weights, std::span<const Slot> candidates) {
  std::vector<int64_t> values(candidates.size());
  const LimitPolicy& policy = columns.policy();
  if (kArithmetic == Arithmetic::kTruncating || policy.aggregate == Aggregate::kWorst) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      values[i] = LowestOfHours<kArithmetic>(columns, pod, all_weights, candidates[i]);
    }
    return values;
  }
  const LowestSum lowest(&columns, pod, all_weights);
  for (size_t i = 0; i < candidates.size(); ++i) values[i] = lowest.RawScoreOf(candidates[i]);
  return values;
}

template std::vector<int64_t> HourlyRawValues<Arithmetic::kFixedPoint>(const LimitColumns&,
                                                                       std::span<const PodTerm>, int64_t,
                                                                       std::span<const Slot>);
template std::vector<int64_t> HourlyRawValues<Arithmetic::kTruncating>(const LimitColumns&,
                                                                       std::span<const PodTerm>, int64_t,
                                                                       std::span<const Slot>);

size_t WorstHour(const LimitColumns& columns, std::span<const PodTerm> pod, Slot slot) {
  const bool fixed_point = columns.policy().arithmetic == Arithmetic::kFixedPoint;
  size_t worst = 0;
  int64_t lowest = INT64_MAX;
  for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
    const NodeSum node = fixed_point ? SumInHour<Arithmetic::kFixedPoint>(columns, slot, pod, hour)
                                     : SumInHour<Arithmetic::kTruncating>(columns, slot, pod, hour);
    const int64_t value = columns.policy().aggregate == Aggregate::kWorst ? node.worst : node.sum;
    if (value >= lowest) continue;
    lowest = value;
    worst = hour;
  }
  return worst;
}

}  // namespace loadline
