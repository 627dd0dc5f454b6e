// The options of limit-aware scoring, and the two bundles of them that have a name.
#ifndef LOADLINE_CORE_SCORE_LIMIT_POLICY_H_
#define LOADLINE_CORE_SCORE_LIMIT_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/cluster/counted_limits.h"
#include "core/cluster/expected_use.h"

namespace loadline {

// How a raw score is calculated.
enum class Arithmetic {
  kFixedPoint,  // 32 fractional bits, one rounding at the end
  kTruncating,  // whole numbers, each quotient truncated towards 0 after multiplying
};

// How the resources of a node become one raw score.
enum class Aggregate { kWeightedMean, kWeightedSum, kWorst };

// A node that offers none of a resource.
enum class AbsentResource {
  kExclude,     // skip it with its weight; a node that lacks what the pod limits scores 0, apart
  kAddNothing,  // it adds nothing to the sum
};

// How raw scores become [0, 100].
enum class Normalization {
  kMinMax,    // 100 * (raw - lowest) / (highest - lowest) over the candidate set; all equal: all 0
  kAbsolute,  // 100 / (1 + ratio), ratio = 1 - raw / 100
};

// One resource that counts.
struct ScoredResource {
  std::string name;
  int32_t weight = 1;            // [1, 100]
  MissingLimitRule best_effort;  // for pods of QoS class BestEffort
  MissingLimitRule others;       // for all other pods
  friend bool operator==(const ScoredResource&, const ScoredResource&) = default;
};

// A way to score. See message ScorePolicy.
struct LimitPolicy {
  std::vector<ScoredResource> resources;  // 1 to kMaxScoredResources, each once
  Arithmetic arithmetic = Arithmetic::kFixedPoint;
  PodLimits pod_limits = PodLimits::kEffective;
  int32_t max_limit_ratio = 1;  // [1, 1000]; 0: no bound
  Aggregate aggregate = Aggregate::kWeightedMean;
  AbsentResource absent_resource = AbsentResource::kExclude;
  MissingLimitScope missing_limit_scope = MissingLimitScope::kAllPods;
  Normalization normalization = Normalization::kMinMax;
  // Counts pods by their expected use in each hour; the raw score is the lowest of the hours.
  ExpectedUseOptions expected_use = {};
  // The points of the raw score, of a mean, that a node loses for a pod which blocks drains if no pod there
  // does: such pods then come together, and more of the other nodes can go. [0, kMostBlockersTogether].
  int32_t blockers_together = 0;
  friend bool operator==(const LimitPolicy&, const LimitPolicy&) = default;
};

// With 16 resources of weight 100 a weighted sum of fixed-point scores stays within 63 bits.
inline constexpr size_t kMaxScoredResources = 16;
inline constexpr int32_t kMaxResourceWeight = 100;
inline constexpr int32_t kMaxLimitRatio = 1000;
// Limits alone decide between nodes whose limits differ by more than half of their allocatable.
inline constexpr int32_t kMostBlockersTogether = 50;

// Name and weight of a resource that counts.
struct ResourceWeight {
  std::string name;
  int32_t weight;
};

// The careful reading, the default: effective limits on both sides, exact arithmetic, no pod counts for more
// than the node has.
LimitPolicy StrictPolicy(const std::vector<ResourceWeight>& resources);

// The letter of the proposal (KEP 217), with its truncation and its two different pod-limit functions.
LimitPolicy Kep217Policy(const std::vector<ResourceWeight>& resources);

// kInvalidArgument with the field and its value when `policy` breaks a range above.
absl::Status CheckLimitPolicy(const LimitPolicy& policy);

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_LIMIT_POLICY_H_
