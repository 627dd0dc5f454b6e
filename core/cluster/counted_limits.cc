#include "core/cluster/counted_limits.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

// Counts a pod whose limits are decided container by container.
void CountContainers(const PartialLimit& parts, const MissingLimitRule& rule, PodLimit* limit) {
  limit->amount = std::max(parts.with_gap, parts.whole);
  if (parts.bounded) return;
  switch (rule.rule) {
    case MissingLimit::kZero:
      break;
    case MissingLimit::kRequest:
      limit->amount = parts.by_request;
      break;
    case MissingLimit::kAllocatable:
      limit->allocatable = true;
      break;
    case MissingLimit::kFixed:
      limit->amount = std::max(SaturatingAdd(parts.with_gap, rule.fixed), parts.whole);
      break;
  }
}

// Counts a pod without any limit where it is decided for the whole pod.
void CountWhole(int64_t request, const MissingLimitRule& rule, PodLimit* limit) {
  switch (rule.rule) {
    case MissingLimit::kZero:
      break;
    case MissingLimit::kRequest:
      limit->amount = request;
      break;
    case MissingLimit::kAllocatable:
      limit->allocatable = true;
      break;
    case MissingLimit::kFixed:
      limit->amount = rule.fixed;
      break;
  }
}

// Returns the amount that a pod counts as by what it states, whatever kind of pod it is.
PodLimit StatedLimitOf(const LimitCounting& counting, const LimitRules& rules, std::optional<ResourceId> id,
                       const PodShape& shape, PodRole role) {
  const bool effective = counting.pod_limits == PodLimits::kEffective;
  const PartialLimit parts = id.has_value() ? LimitOf(shape, *id) : PartialLimit();
  PodLimit limit;
  if (id.has_value()) limit.amount = (effective ? shape.limits : shape.proposal_limits).Get(*id);
  // The proposal adds the overhead to what is no limit as well.
  limit.limited = limit.amount > 0 && (effective || parts.stated);
  limit.missing = !(effective ? parts.bounded : limit.limited);
  if (shape.finished) return limit;
  if (counting.missing_limit_scope == MissingLimitScope::kIncomingPod && role != PodRole::kIncoming) {
    return limit;
  }
  const MissingLimitRule& rule = shape.best_effort ? rules.best_effort : rules.others;
  limit.rule = rule.rule;
  if (effective) {
    CountContainers(parts, rule, &limit);
  } else if (limit.missing) {
    CountWhole(id.has_value() ? shape.requests.Get(*id) : 0, rule, &limit);
  }
  return limit;
}

}  // namespace

PodLimit PodLimitOf(const LimitCounting& counting, const LimitRules& rules, std::optional<ResourceId> id,
                    const PodShape& shape, PodRole role) {
  PodLimit limit = StatedLimitOf(counting, rules, id, shape, role);
  if (!TraitsOf(shape).placeholder) return limit;
  // Its container does nothing, so that it never uses more than what is kept free.
  const int64_t requests = id.has_value() ? shape.requests.Get(*id) : 0;
  if (!limit.allocatable && !limit.missing && limit.amount <= requests) return limit;
  limit.missing = limit.allocatable = false;
  limit.amount = requests;
  return limit;
}

CountedLimit CountOnNode(int32_t max_limit_ratio, const PodLimit& limit, int64_t allocatable) {
  CountedLimit counted;
  counted.missing = limit.missing;
  if (allocatable == 0) return counted;
  counted.amount = limit.allocatable ? allocatable : limit.amount;
  if (max_limit_ratio == 0) {
    counted.amount = std::min(counted.amount, limit.at_most);
    return counted;
  }
  const absl::int128 bound = absl::int128(allocatable) * max_limit_ratio;
  if (counted.amount > bound) {
    counted.amount = static_cast<int64_t>(bound);
    counted.clamped = true;
  }
  counted.amount = std::min(counted.amount, limit.at_most);
  return counted;
}

}  // namespace loadline
