#include "core/score/limit_columns.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

// Returns 100 * value / allocatable in fixed point, rounded down and kept within its range.
int64_t RawInFixedPoint(int64_t value, int64_t allocatable) {
  // |value| <= 2^62, so the product stays below 2^62 * 2^7 * 2^32 = 2^101.
  const absl::int128 product = absl::int128(value) * (100 * (int64_t{1} << kRawScoreBits));
  absl::int128 quotient = product / allocatable;
  if (product % allocatable < 0) quotient -= 1;
  return static_cast<int64_t>(std::clamp(quotient, absl::int128(-kMaxRawScore), absl::int128(kMaxRawScore)));
}

void SetReciprocal(LimitTerm* term) {
  term->up = std::countl_zero(static_cast<uint64_t>(term->allocatable));
  const absl::uint128 dividend = absl::uint128(100 * (uint64_t{1} << kRawScoreBits)) << 64;
  term->reciprocal = absl::Uint128Low64(dividend / (static_cast<uint64_t>(term->allocatable) << term->up));
  term->share =
      static_cast<float>(100 * (int64_t{1} << kRawScoreBits)) / static_cast<float>(term->allocatable);
}

// Says whether an amount of a resource that is scored could not be read. Without that resource the node could
// look better than all others, so that it has no score.
bool HidesScoredResource(const LimitPolicy& policy, const ClusterState& cluster, Slot slot) {
  if (cluster.traits(slot).unreadable.empty()) return false;
  return std::any_of(policy.resources.begin(), policy.resources.end(), [&](const ScoredResource& resource) {
    const std::optional<ResourceId> id = cluster.resource_names().Find(resource.name);
    return !id.has_value() || cluster.node_shape(slot).allocatable.Get(*id) == 0;
  });
}

}  // namespace

PodLimit PodLimitOf(const LimitPolicy& policy, const ScoredResource& resource, std::optional<ResourceId> id,
                    const PodShape& shape, PodRole role) {
  return PodLimitOf({policy.pod_limits, policy.missing_limit_scope, policy.max_limit_ratio},
                    {resource.best_effort, resource.others}, id, shape, role);
}

CountedLimit CountOnNode(const LimitPolicy& policy, const PodLimit& limit, int64_t allocatable) {
  return CountOnNode(policy.max_limit_ratio, limit, allocatable);
}

HourlyAmounts ScoredAtMost(const ExpectedUse& expected, const PodShape& shape, ResourceId id,
                           const PodLimit& limit) {
  const int64_t request = shape.requests.Get(id);
  HourlyAmounts at_most;
  if (const HourlyAmounts* const profile = expected.Find(shape, id); profile != nullptr) {
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) at_most[hour] = expected.AtMost(profile, hour, request);
  } else {
    const bool has_limit = limit.limited && !limit.missing;
    at_most.fill(has_limit ? expected.AtMostUnknown(id, limit.amount, request) : kMaxAmount);
  }
  return at_most;
}

LimitColumns::LimitColumns(LimitPolicy policy)
    : policy_(std::move(policy)), width_(policy_.resources.size()) {}

void LimitColumns::CatchUp(const ClusterState& cluster, std::shared_ptr<const ExpectedUse> expected,
                           std::shared_ptr<const DrainBlockers> blockers) {
  if (expected != nullptr && expected->empty()) expected = nullptr;
  if (policy_.blockers_together == 0) blockers = nullptr;
  const bool same_profiles = expected == expected_;
  const bool same_blockers = blockers == blockers_;
  expected_ = std::move(expected);
  blockers_ = std::move(blockers);
  const std::optional<std::span<const Slot>> changes = cluster.changes(next_change_);
  next_change_ = cluster.change_count();
  if (!changes.has_value() || !same_profiles) {
    Resize(cluster, /*anew=*/true);
    for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) UpdateNode(cluster, Slot{slot});
    return;
  }
  Resize(cluster, /*anew=*/false);
  for (const Slot slot : *changes) UpdateNode(cluster, slot);
  if (same_blockers || blockers_ == nullptr) return;
  for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) UpdateBlocker(cluster, Slot{slot});
}

bool LimitColumns::IsUpToDate(const ClusterState& cluster, const ExpectedUse* expected,
                              const DrainBlockers* blockers) const {
  if (expected != nullptr && expected->empty()) expected = nullptr;
  if (policy_.blockers_together == 0) blockers = nullptr;
  return next_change_ == cluster.change_count() && expected_.get() == expected && blockers_.get() == blockers;
}

// Has a cell for each slot, for no hour without profiles, and no flag without a rule.
void LimitColumns::Resize(const ClusterState& cluster, bool anew) {
  const auto resize = [&](auto* column, size_t width) {
    const size_t size = static_cast<size_t>(cluster.slot_end()) * width;
    if (anew) column->clear();
    column->resize(std::max(size, column->size()));
  };
  resize(&terms_, width_);
  resize(&limits_, width_);
  const size_t hours = expected_ == nullptr ? 0 : kHoursOfDay;
  resize(&hour_limits_, width_ * hours);
  resize(&discounts_, expected_ == nullptr ? 0 : width_);
  resize(&hour_raw_, width_ * hours);
  resize(&hour_sums_, hours);
  resize(&rough_sums_, hours);
  resize(&worst_hours_, expected_ == nullptr ? 0 : 1);
  resize(&has_blocker_, blockers_ == nullptr ? 0 : 1);
}

void LimitColumns::UpdateNode(const ClusterState& cluster, Slot slot) {
  const bool counts = cluster.Occupied(slot) && !HidesScoredResource(policy_, cluster, slot);
  for (size_t r = 0; r < width_; ++r) {
    const ScoredResource& resource = policy_.resources[r];
    LimitTerm& term = terms_[IndexOf(slot) * width_ + r];
    int64_t& limits = limits_[IndexOf(slot) * width_ + r];
    term = LimitTerm{};
    limits = 0;
    if (!counts) continue;
    const std::optional<ResourceId> id = cluster.resource_names().Find(resource.name);
    if (!id.has_value()) continue;
    term.allocatable = cluster.node_shape(slot).allocatable.Get(*id);
    if (term.allocatable == 0) continue;
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      const PodLimit limit = PodLimitOf(policy_, resource, id, shape, PodRole::kExisting);
      limits = SaturatingAdd(limits, CountOnNode(policy_, limit, term.allocatable).amount);
    }
    term.raw_without_pod = RawInFixedPoint(term.allocatable - limits, term.allocatable);
    SetReciprocal(&term);
  }
  if (expected_ != nullptr) UpdateHours(cluster, slot);
  if (blockers_ != nullptr) UpdateBlocker(cluster, slot);
}

void LimitColumns::UpdateBlocker(const ClusterState& cluster, Slot slot) {
  uint8_t& has_blocker = has_blocker_[IndexOf(slot)];
  has_blocker = 0;
  if (!cluster.Occupied(slot)) return;
  const std::span<const NodePods::Pod> pods = cluster.pods(slot).pods();
  const auto blocks = [&](const NodePods::Pod& pod) {
    return blockers_->Blocks(cluster.pod_shapes()[pod.shape]);
  };
  has_blocker = std::any_of(pods.begin(), pods.end(), blocks) ? 1 : 0;
}

// The same for each hour, of a node whose terms are up to date.
void LimitColumns::UpdateHours(const ClusterState& cluster, Slot slot) {
  int64_t* const sums = hour_sums_.data() + IndexOf(slot) * kHoursOfDay;
  std::fill(sums, sums + kHoursOfDay, 0);
  for (size_t r = 0; r < width_; ++r) {
    const ScoredResource& resource = policy_.resources[r];
    const size_t first = (IndexOf(slot) * width_ + r) * kHoursOfDay;
    std::fill_n(hour_limits_.begin() + static_cast<std::ptrdiff_t>(first), kHoursOfDay, 0);
    std::fill_n(hour_raw_.begin() + static_cast<std::ptrdiff_t>(first), kHoursOfDay, 0);
    int64_t& discount = discounts_[IndexOf(slot) * width_ + r];
    discount = 0;
    const LimitTerm& term = terms_[IndexOf(slot) * width_ + r];
    if (term.allocatable == 0) continue;
    const ResourceId id = *cluster.resource_names().Find(resource.name);
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      const PodLimit limit = PodLimitOf(policy_, resource, id, shape, PodRole::kExisting);
      const int64_t counted = CountOnNode(policy_, limit, term.allocatable).amount;
      if (counted == 0) continue;
      const HourlyAmounts at_most = ScoredAtMost(*expected_, shape, id, limit);
      const bool known = expected_->Find(shape, id) != nullptr;
      if (!known) discount = SaturatingAdd(discount, counted - std::min(counted, at_most[0]));
      for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
        int64_t& limits = hour_limits_[first + hour];
        limits = SaturatingAdd(limits, known ? std::min(counted, at_most[hour]) : counted);
      }
    }
    for (size_t hour = 0; hour < kHoursOfDay; ++hour) {
      const int64_t limits = hour_limits_[first + hour] - discount;
      const int64_t raw = RawInFixedPoint(term.allocatable - limits, term.allocatable);
      hour_raw_[first + hour] = raw;
      sums[hour] += raw * resource.weight;
    }
  }
  std::transform(sums, sums + kHoursOfDay, rough_sums_.begin() + (sums - hour_sums_.data()),
                 [](int64_t sum) { return static_cast<float>(sum); });
  worst_hours_[IndexOf(slot)] = static_cast<uint8_t>(std::min_element(sums, sums + kHoursOfDay) - sums);
}

}  // namespace loadline
