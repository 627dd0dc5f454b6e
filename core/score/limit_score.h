// Limit-aware node scoring (KEP 217): nodes whose pods are allowed less, in proportion, score higher.
#ifndef LOADLINE_CORE_SCORE_LIMIT_SCORE_H_
#define LOADLINE_CORE_SCORE_LIMIT_SCORE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/score/limit_columns.h"
#include "core/score/limit_policy.h"

namespace loadline {

// Scores candidate nodes for one pod:
//
//   raw        = sum over r of w_r * 100 * (allocatable_r - limits_r) / allocatable_r, over sum of w_r
//   normalized = 100 * (raw - lowest) / (highest - lowest)
//
// or what the policy of `columns` says instead; limits_r is what the pods there and `pod` count as. With
// profiles of expected use that is another amount in each hour of the day, and raw the lowest of the hours.
// With LimitPolicy::blockers_together raw is less for a pod that blocks drains where no pod there does.
//
// Inputs:  `columns` has caught up with `cluster`; `candidates` are occupied slots, each once; `pod` was made
//          with PodRole::kIncoming; `pod_names` are the names that its ids refer to where it has more than
//          the cluster: a pod may limit what no node has ever offered.
// Result:  one score per candidate in their order, [0, 100], higher is better. Replaces `scores`.
// Order:   permuting candidates permutes scores; other nodes play no part.
// Ties:    with kMinMax in fixed point, if no two raw scores differ by 2^-20 or more, all score 0.
// Cost:    O(candidates * resources), times 24 with profiles; integers only: the same on every machine. Any
//          thread.
// Source:  the proposal; where the policy leaves its letter is said in limit_policy.h.
void ScoreNodes(const LimitColumns& columns, const ClusterState& cluster, const PodShape& pod,
                std::span<const Slot> candidates, std::vector<int32_t>* scores,
                const ResourceNames* pod_names = nullptr);

// The outcome for a candidate.
enum class ScoreOutcome {
  kScored,
  kLacksLimitedResource,  // lacks a resource that the pod limits: 0, apart from normalization
  kNothingCounted,        // offers nothing that counts: 0, apart from normalization
};

// One resource of one candidate.
struct ResourceExplanation {
  int64_t allocatable = 0;
  int64_t node_limits = 0;                      // what the pods there count as
  CountedLimit pod;                             // what the incoming pod counts as
  MissingLimit pod_rule = MissingLimit::kZero;  // with pod.missing
  double ratio = 0;                 // (node_limits + pod.amount) / allocatable; 0 without allocatable
  double raw_score = 0;             // of this resource alone
  int32_t node_missing_limits = 0;  // pods there that count by a rule
  int32_t node_clamped = 0;         // pods there that were clamped
  bool saturated = false;           // it is at a bound: see kMaxRawScore
  // The incoming pod counts as it is expected to use, less than by its limit; or it has no profile, and
  // counts as the share of its limit that other workloads are expected to use.
  bool pod_by_profile = false;
  bool pod_by_share = false;
};

// How one score came about.
struct NodeExplanation {
  Slot slot;
  ScoreOutcome outcome = ScoreOutcome::kScored;
  int32_t score = 0;
  double raw_score = 0;
  // The points that it has lost because the pod blocks drains, and no pod on the node does.
  double lost_apart = 0;
  // With profiles: the hour of the day that the raw score is of. The resources are those of this hour.
  std::optional<size_t> hour;
  std::vector<ResourceExplanation> resources;  // in the policy's order
};

// Scores as ScoreNodes() does, and explains those at the positions `explained` of `candidates`.
// Cost: that of ScoreNodes(), and O(pods of the nodes explained).
std::vector<NodeExplanation> ExplainNodes(const LimitColumns& columns, const ClusterState& cluster,
                                          const PodShape& pod, std::span<const Slot> candidates,
                                          std::span<const size_t> explained,
                                          const ResourceNames* pod_names = nullptr);

// The steps, for those who look at one of them.

inline constexpr int64_t kNoRawScore = INT64_MIN;

// Raw scores of a candidate set as integers. In fixed point a weighted mean is multiplied by the sum of
// all weights, which spares a division and changes no order.
struct RawScores {
  std::vector<int64_t> values;  // per candidate; kNoRawScore where the outcome is not kScored
  int64_t one = 1;              // the integer for a raw score of 1
  int64_t mean_one = 1;         // the same where a weighted sum is to be read as a mean
};
RawScores ScoreRaw(const LimitColumns& columns, const ClusterState& cluster, const PodShape& pod,
                   std::span<const Slot> candidates, const ResourceNames* pod_names = nullptr);

// Raw scores whose lowest and highest differ by less are equal to kMinMax: all score 0. At least 1.
int64_t EqualBelow(const LimitPolicy& policy, const RawScores& raw);

// [0, 100] for each raw score; kNoRawScore gives 0.
void Normalize(const LimitPolicy& policy, const RawScores& raw, std::vector<int32_t>* scores);

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_LIMIT_SCORE_H_
