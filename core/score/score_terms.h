// The terms of a raw score: of a node, of the incoming pod, and what they come to.
#ifndef LOADLINE_CORE_SCORE_SCORE_TERMS_H_
#define LOADLINE_CORE_SCORE_SCORE_TERMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/numeric/int128.h"
#include "core/base/amount.h"
#include "core/score/limit_columns.h"
#include "core/score/limit_policy.h"
#include "core/score/limit_score.h"

namespace loadline {

// One resource of the incoming pod, ready for the loop over nodes.
struct PodTerm {
  PodLimit limit;
  int64_t weight;
  // On a node it counts as min(amount, ratio * allocatable); ratio 0: as amount.
  int64_t amount;
  int64_t ratio;
  int64_t largest_factor;  // of ratio that stays within 2^62
  // With profiles: the most that it counts as in each hour, and in any.
  HourlyAmounts at_most;
  int64_t peak;
  bool has_profile;  // of its own; else `at_most` is by the share of other workloads
};

// Returns the amount that the pod counts as on a node that offers the resource; equal to CountOnNode().
inline int64_t CountedAmount(const PodTerm& pod, int64_t allocatable) {
  if (pod.ratio == 1) return std::min(pod.amount, allocatable);
  if (pod.ratio == 0) return pod.amount;
  const int64_t bound = allocatable > pod.largest_factor ? kMaxAmount : allocatable * pod.ratio;
  return std::min(pod.amount, bound);
}

// 100 * (allocatable - limits there - pod) / allocatable in fixed point, down to -2 * kMaxRawScore.
inline int64_t FixedPointTerm(const LimitTerm& node, const PodTerm& pod) {
  return node.raw_without_pod - ShareOf(node, CountedAmount(pod, node.allocatable));
}

// The same in whole numbers, truncated towards 0.
inline int64_t TruncatingTerm(const LimitTerm& node, int64_t node_limits, int64_t pod) {
  const absl::int128 free = absl::int128(node.allocatable) - node_limits - pod;
  const absl::int128 raw = free * 100 / node.allocatable;
  return static_cast<int64_t>(std::clamp(raw, absl::int128(-kMaxRawScore), absl::int128(kMaxRawScore)));
}

// The sum over the resources of one node.
struct NodeSum {
  int64_t sum = 0;      // |term| <= 2^52, times at most 16 weights of 100
  int64_t counted = 0;  // weights
  int64_t worst = INT64_MAX;
  bool lacks_limited = false;
};

template <Arithmetic kArithmetic>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline NodeSum SumOfTerms(const LimitColumns& columns, Slot slot,
                                                       std::span<const PodTerm> pod) {
  NodeSum node;
  const std::span<const LimitTerm> terms = columns.terms(slot);
  for (size_t r = 0; r < pod.size(); ++r) {
    if (terms[r].allocatable == 0) {
      node.lacks_limited = node.lacks_limited || pod[r].limit.limited;
      continue;
    }
    const int64_t term =
        kArithmetic == Arithmetic::kFixedPoint
            ? FixedPointTerm(terms[r], pod[r])
            : TruncatingTerm(terms[r], columns.limits(slot)[r], CountedAmount(pod[r], terms[r].allocatable));
    node.sum += term * pod[r].weight;
    node.counted += pod[r].weight;
    node.worst = std::min(node.worst, term);
  }
  return node;
}

// Returns the raw score that a node's resources come to; see RawScores. Two sources use it, so that the
// compiler would call it for each node: that costs a tenth of a score of 5,000 nodes.
template <Arithmetic kArithmetic>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline int64_t Combine(const LimitPolicy& policy, const NodeSum& node,
                                                    int64_t all_weights) {
  const bool exclude = policy.absent_resource == AbsentResource::kExclude;
  if (node.counted == 0 || (exclude && node.lacks_limited)) return kNoRawScore;
  switch (policy.aggregate) {
    case Aggregate::kWorst:
      return node.worst;
    case Aggregate::kWeightedSum:
      return node.sum;
    case Aggregate::kWeightedMean:
      break;
  }
  const int64_t weights = exclude ? node.counted : all_weights;
  if (kArithmetic == Arithmetic::kTruncating) return node.sum / weights;
  if (weights == all_weights) return node.sum;
  return static_cast<int64_t>(absl::int128(node.sum) * all_weights / weights);
}

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_SCORE_TERMS_H_
