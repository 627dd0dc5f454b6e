#include "core/score/hourly_score.h"

#include <algorithm>

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
                             : TruncatingTerm(terms[r], columns.limits(slot, r, hour), counted);
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

// The weighted sum of a node in its worst hour, in fixed point. It equals the lowest of SumInHour().sum, and
// looks only at hours that may be the worst: the pod takes at most its peak off each.
class WorstSum {
 public:
  WorstSum(const LimitColumns* columns, std::span<const PodTerm> pod) : columns_(*columns), pod_(pod) {
    for (const PodTerm& term : pod) {
      if (term.peak == kMaxAmount) continue;
      const auto peak = std::find(term.at_most.begin(), term.at_most.end(), term.peak);
      peak_hour_ = static_cast<size_t>(peak - term.at_most.begin());
      break;
    }
  }

  NodeSum Of(Slot slot) const {
    NodeSum node;
    const std::span<const LimitTerm> terms = columns_.terms(slot);
    int64_t most_taken = 0;
    for (size_t r = 0; r < pod_.size(); ++r) {
      if (terms[r].allocatable == 0) {
        node.lacks_limited = node.lacks_limited || pod_[r].limit.limited;
        continue;
      }
      const int64_t most = std::min(CountedAmount(pod_[r], terms[r].allocatable), pod_[r].peak);
      most_taken += ShareOf(terms[r], most) * pod_[r].weight;
      node.counted += pod_[r].weight;
    }
    const std::span<const int64_t, kHoursOfDay> sums = columns_.hour_sums(slot);
    const size_t worst = columns_.worst_hour(slot);
    node.sum = std::min(SumIn(terms, sums, worst), SumIn(terms, sums, peak_hour_));
    if (sums[worst] - most_taken >= node.sum) return node;
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      if (sums[hour] - most_taken < node.sum) node.sum = std::min(node.sum, SumIn(terms, sums, hour));
    }
    return node;
  }

 private:
  int64_t SumIn(std::span<const LimitTerm> terms, std::span<const int64_t, kHoursOfDay> sums,
                size_t hour) const {
    int64_t sum = sums[hour];
    for (size_t r = 0; r < pod_.size(); ++r) {
      if (terms[r].allocatable == 0) continue;
      sum -= ShareOf(terms[r], CountedInHour(pod_[r], terms[r].allocatable, hour)) * pod_[r].weight;
    }
    return sum;
  }

  const LimitColumns& columns_;
  const std::span<const PodTerm> pod_;
  size_t peak_hour_ = 0;
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
  const WorstSum worst(&columns, pod);
  for (size_t i = 0; i < candidates.size(); ++i) {
    values[i] = Combine<kArithmetic>(policy, worst.Of(candidates[i]), all_weights);
  }
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
