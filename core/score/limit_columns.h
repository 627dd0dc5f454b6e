// Per-node sums of what pods count as under one policy, kept up to date with the cluster.
#ifndef LOADLINE_CORE_SCORE_LIMIT_COLUMNS_H_
#define LOADLINE_CORE_SCORE_LIMIT_COLUMNS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/counted_limits.h"
#include "core/cluster/drain_blockers.h"
#include "core/score/limit_policy.h"

namespace loadline {

// A raw score of one resource in fixed point: 2^kRawScoreBits is 1.
inline constexpr int kRawScoreBits = 32;
// Limits there, and a pod, each take at most 2^19 off (5,000 times the allocatable), so that weighted sums
// stay within 63 bits.
inline constexpr int64_t kMaxRawScore = int64_t{1} << (kRawScoreBits + 19);

// The data that scoring needs of one resource of one node: 32 bytes, so that two resources are one cache
// line.
struct LimitTerm {
  int64_t allocatable = 0;  // 0: the node lacks the resource, and all below is 0
  // 100 * (allocatable - limits there) / allocatable in fixed point, rounded down.
  int64_t raw_without_pod = 0;
  // 100 * 2^64 / (allocatable << up) in fixed point, rounded down; up leaves no leading zero bit.
  uint64_t reciprocal = 0;
  int32_t up = 0;
  float share = 0;  // 100 / allocatable in fixed point, roughly
};

// 100 * amount / node.allocatable in fixed point, at most 2 units too low; saturates at kMaxRawScore.
// `amount` is in [0, 2^62]; the node offers the resource. Cost: one multiplication where amount <=
// allocatable.
inline int64_t ShareOf(const LimitTerm& node, int64_t amount) {
  if (amount <= node.allocatable) {
    return static_cast<int64_t>(
        absl::Uint128High64(absl::uint128(static_cast<uint64_t>(amount) << node.up) * node.reciprocal));
  }
  const absl::int128 share = absl::int128(amount) * (100 * (int64_t{1} << kRawScoreBits)) / node.allocatable;
  return share > kMaxRawScore ? kMaxRawScore : static_cast<int64_t>(share);
}

// Return the same as their namesakes of counted_limits.h, by the rules of a policy.
PodLimit PodLimitOf(const LimitPolicy& policy, const ScoredResource& resource, std::optional<ResourceId> id,
                    const PodShape& shape, PodRole role);
CountedLimit CountOnNode(const LimitPolicy& policy, const PodLimit& limit, int64_t allocatable);

// Returns the most that a pod counts as in the score in each hour: by its profile; where it has none but its
// containers all have limits, ExpectedUse::AtMostUnknown().
HourlyAmounts ScoredAtMost(const ExpectedUse& expected, const PodShape& shape, ResourceId id,
                           const PodLimit& limit);

// Holds no reference to the cluster. Not thread-safe; const members may run together.
class LimitColumns {
 public:
  // `policy` has passed CheckLimitPolicy().
  explicit LimitColumns(LimitPolicy policy);

  // Brings the sums up to date, with those of each hour where `expected` has profiles, and which nodes have a
  // pod that blocks drains, where the policy asks for that. Cost: O(pods of the nodes that changed since the
  // last call); after a full list, when the journal of changes does not reach back, or with another object
  // `expected` or `blockers`, O(pods).
  void CatchUp(const ClusterState& cluster, std::shared_ptr<const ExpectedUse> expected = nullptr,
               std::shared_ptr<const DrainBlockers> blockers = nullptr);
  // Returns whether CatchUp() would change nothing.
  bool IsUpToDate(const ClusterState& cluster, const ExpectedUse* expected,
                  const DrainBlockers* blockers = nullptr) const;

  const LimitPolicy& policy() const { return policy_; }
  // One per resource of the policy. CatchUp() was called, and `slot` is occupied.
  std::span<const LimitTerm> terms(Slot slot) const {
    return {terms_.data() + IndexOf(slot) * width_, width_};
  }
  // Returns the amounts that the pods on the node count as, one per resource of the policy.
  std::span<const int64_t> limits(Slot slot) const {
    return {limits_.data() + IndexOf(slot) * width_, width_};
  }

  // The rule by which pods block drains; nullptr: none does, or the policy does not ask.
  const DrainBlockers* blockers() const { return blockers_.get(); }
  // Returns whether a pod on the node blocks drains; only where there is such a rule.
  bool has_blocker(Slot slot) const { return has_blocker_[IndexOf(slot)] != 0; }

  // The profiles by which pods count; nullptr: there are none, and all hours are alike.
  const ExpectedUse* expected() const { return expected_.get(); }
  // The amount that the pods on the node count as in an hour, for the resource at this position: in load
  // lines, where pods without a profile count by their limits, and in the score.
  int64_t limits(Slot slot, size_t resource, size_t hour) const {
    if (expected_ == nullptr) return limits(slot)[resource];
    return hour_limits_[(IndexOf(slot) * width_ + resource) * kHoursOfDay + hour];
  }
  int64_t scored_limits(Slot slot, size_t resource, size_t hour) const {
    const int64_t in_line = limits(slot, resource, hour);
    return expected_ == nullptr ? in_line : in_line - discounts_[IndexOf(slot) * width_ + resource];
  }
  // The counterpart of LimitTerm::raw_without_pod in each hour of one resource; only where there are
  // profiles.
  std::span<const int64_t, kHoursOfDay> hour_raw(Slot slot, size_t resource) const {
    return std::span<const int64_t, kHoursOfDay>(
        hour_raw_.data() + (IndexOf(slot) * width_ + resource) * kHoursOfDay, kHoursOfDay);
  }
  // The weighted sum of the above over the resources that the node offers; and the hour in which it is
  // lowest.
  std::span<const int64_t, kHoursOfDay> hour_sums(Slot slot) const {
    return std::span<const int64_t, kHoursOfDay>(hour_sums_.data() + IndexOf(slot) * kHoursOfDay,
                                                 kHoursOfDay);
  }
  size_t worst_hour(Slot slot) const { return worst_hours_[IndexOf(slot)]; }
  // The sums, each rounded to a float: half of the memory, and four of them in one step.
  const float* rough_sums(Slot slot) const { return rough_sums_.data() + IndexOf(slot) * kHoursOfDay; }

 private:
  void Resize(const ClusterState& cluster, bool anew);
  void UpdateNode(const ClusterState& cluster, Slot slot);
  void UpdateHours(const ClusterState& cluster, Slot slot);
  void UpdateBlocker(const ClusterState& cluster, Slot slot);

  LimitPolicy policy_;
  size_t width_;                  // resources of the policy
  int64_t next_change_ = -1;      // position in the journal of changes
  std::vector<LimitTerm> terms_;  // slot * width_ + resource
  std::vector<int64_t> limits_;   // likewise
  std::shared_ptr<const ExpectedUse> expected_;
  // With profiles: (slot * width_ + resource) * kHoursOfDay + hour; and slot * kHoursOfDay + hour.
  std::vector<int64_t> hour_limits_;
  std::vector<int64_t>
      discounts_;  // slot * width_ + resource: by how much pods without a profile count for less
  std::vector<int64_t> hour_raw_;
  std::vector<int64_t> hour_sums_;
  std::vector<float> rough_sums_;
  std::vector<uint8_t> worst_hours_;  // by slot
  std::shared_ptr<const DrainBlockers> blockers_;
  std::vector<uint8_t> has_blocker_;  // by slot; empty without a rule
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_LIMIT_COLUMNS_H_
