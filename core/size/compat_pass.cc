// Escalator's pass as shipped: atlassian/escalator 043bb1b, pkg/controller/controller.go.
#include <algorithm>

#include "core/size/size_pass.h"

namespace loadline::size_internal {

// Strict on both sides: exactly at a threshold is within.
int64_t Pass::CompatThresholds(SizeReason* reason) const {
  const Usage& usage = decision_.usage;
  const bool from_zero = usage.kind == UsageKind::kFromZero;
  const double highest = from_zero ? std::numeric_limits<double>::max() : std::max(usage.cpu, usage.memory);
  if (highest < options_.taint_lower_percent) {
    *reason = SizeReason::kBelowTaintLower;
    return -options_.fast_rate;
  }
  if (highest < options_.taint_upper_percent) {
    *reason = SizeReason::kBelowTaintUpper;
    return -options_.slow_rate;
  }
  if (highest > options_.scale_up_percent) {
    *reason = from_zero ? SizeReason::kFromZero : SizeReason::kAboveScaleUp;
    return ShippedDelta(usage, decision_.untainted, decision_.requests, options_.scale_up_percent,
                        decision_.next.cached_node);
  }
  return 0;
}

int64_t Pass::CompatAdjusted(int64_t delta, SizeReason* reason) const {
  if (options_.scale_on_starve && decision_.untainted < options_.max_nodes && facts_.starved && delta < 1) {
    *reason = SizeReason::kStarved;
    delta = 1;
  }
  if (TooOld() && delta < 1) {
    *reason = SizeReason::kNodeTooOld;
    delta = 1;
  }
  if (decision_.untainted > options_.max_nodes && delta > options_.max_nodes - decision_.untainted) {
    *reason = SizeReason::kAboveMaximum;
    delta = options_.max_nodes - decision_.untainted;
  }
  return delta;
}

void Pass::CompatTaint(int64_t wanted) {
  const std::optional<int64_t> count =
      TaintCount(decision_.untainted, wanted, options_.min_nodes, options_.cloud_min, target_);
  if (count.has_value()) decision_.taint = OldestFirst(facts_.nodes, untainted_, *count);
}

SizeDecision Pass::DecideCompat() {
  const int64_t nodes = static_cast<int64_t>(facts_.nodes.size());
  if (nodes > 0) decision_.next.cached_node = facts_.nodes[0].allocatable;
  TaintUnhealthy();
  Measure();
  if (nodes == 0 && facts_.pods == 0) return Finish(SizeAction::kNothing, SizeReason::kEmpty, 0);
  if (nodes < options_.min_nodes) return Finish(SizeAction::kNothing, SizeReason::kFewerThanMinimum, 0);
  if (decision_.untainted < options_.min_nodes) {
    decision_.wanted = options_.min_nodes - decision_.untainted;
    const int64_t achieved = Grow(decision_.wanted);
    return Finish(SizeAction::kScaleUp, SizeReason::kBelowMinimum, achieved);
  }
  if (decision_.usage.kind == UsageKind::kNoCapacity) {
    return Finish(SizeAction::kNothing, SizeReason::kNoCapacity, 0);
  }
  if (Locked()) {
    SizeDecision locked = Finish(SizeAction::kNothing, SizeReason::kLocked, 0);
    locked.delta = decision_.next.requested;
    return locked;
  }
  SizeReason reason = SizeReason::kWithinThresholds;
  int64_t delta = CompatAdjusted(CompatThresholds(&reason), &reason);
  DeleteForceTainted();
  const bool healthy = IsHealthy(facts_.nodes, options_.health, now_ms_);
  if (!healthy) {
    reason = SizeReason::kUnhealthy;
    delta = 0;
  }
  decision_.wanted = delta;
  if (delta > 0) {
    Grow(delta);
    return Finish(SizeAction::kScaleUp, reason, delta);
  }
  DeleteTainted(healthy);
  if (delta == 0) return Finish(SizeAction::kNothing, reason, 0);
  CompatTaint(-delta);
  const bool slow = reason == SizeReason::kBelowTaintUpper;
  return Finish(slow ? SizeAction::kRemoveSlowly : SizeAction::kRemoveFast, reason, delta);
}

}  // namespace loadline::size_internal
