#include "core/score/limit_columns.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

// What of 100 * value / allocatable fits in fixed point, rounded down.
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

LimitColumns::LimitColumns(LimitPolicy policy)
    : policy_(std::move(policy)), width_(policy_.resources.size()) {}

void LimitColumns::CatchUp(const ClusterState& cluster) {
  const size_t size = static_cast<size_t>(cluster.slot_end()) * width_;
  const std::optional<std::span<const Slot>> changes = cluster.changes(next_change_);
  next_change_ = cluster.change_count();
  if (!changes.has_value()) {
    terms_.assign(size, LimitTerm{});
    limits_.assign(size, 0);
    for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) UpdateNode(cluster, Slot{slot});
    return;
  }
  terms_.resize(std::max(size, terms_.size()));
  limits_.resize(std::max(size, limits_.size()));
  for (const Slot slot : *changes) UpdateNode(cluster, slot);
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
}

}  // namespace loadline
