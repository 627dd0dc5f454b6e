// Our pass: Escalator's laws without what makes a group at rest go up and down.
#include <algorithm>

#include "core/size/size_pass.h"

namespace loadline::size_internal {

// A node as the group makes them.
std::optional<CpuMemory> Pass::NewNode() const {
  if (decision_.next.cached_node.has_value() || options_.mode == SizeMode::kCompat) {
    return decision_.next.cached_node;
  }
  return facts_.new_node;
}

// nullopt: there is no number of nodes that would do.
std::optional<Pass::Growth> Pass::DefaultGrowth() const {
  Growth growth;
  const auto raise = [&](int64_t nodes, SizeReason reason) {
    if (nodes > growth.nodes) growth = {nodes, reason};
  };
  raise(options_.min_nodes - decision_.untainted, SizeReason::kBelowMinimum);
  const bool from_zero = decision_.untainted == 0;
  if (from_zero ? facts_.requests != CpuMemory{}
                : IsAbove(facts_.requests, decision_.capacity, options_.scale_up_percent)) {
    const auto delta = [&](const std::optional<CpuMemory>& node) {
      return ExactDelta(facts_.requests, decision_.capacity, decision_.untainted, options_.scale_up_percent,
                        node);
    };
    std::optional<int64_t> nodes = delta(NewNode());
    if (!nodes.has_value() && !from_zero) nodes = delta(std::nullopt);  // as those that are there
    if (!nodes.has_value()) return std::nullopt;
    raise(*nodes, from_zero ? SizeReason::kFromZero : SizeReason::kAboveScaleUp);
  } else if (from_zero && facts_.pods > 0) {
    raise(1, SizeReason::kFromZero);  // pods that request nothing need a node as well
  }
  if (options_.scale_on_starve && facts_.starved) raise(1, SizeReason::kStarved);
  if (TooOld()) raise(1, SizeReason::kNodeTooOld);
  return growth;
}

SizeDecision Pass::DefaultGrow(const Growth& growth) {
  decision_.wanted = growth.nodes;
  const int64_t coming = std::max<int64_t>(0, target_ - static_cast<int64_t>(facts_.nodes.size()));
  const int64_t lacking = growth.nodes - coming;
  if (lacking <= 0) return Finish(SizeAction::kNothing, SizeReason::kWaiting, 0);
  const int64_t room = options_.max_nodes - decision_.untainted - coming;
  const int64_t won = Grow(std::max<int64_t>(0, std::min(lacking, room)));
  if (won == 0) {
    DeleteTainted(/*group_is_healthy=*/true);
    return Finish(SizeAction::kNothing, SizeReason::kAtMaximum, 0);
  }
  return Finish(SizeAction::kScaleUp, growth.reason, won);
}

// At most `count` of the oldest nodes, as many as the group need not win back.
std::vector<size_t> Pass::Removable(int64_t count) const {
  std::vector<size_t> oldest = OldestFirst(facts_.nodes, untainted_, count);
  CpuMemory left = decision_.capacity;
  size_t taken = 0;
  for (; taken < oldest.size(); ++taken) {
    left = Minus(left, Net(facts_.nodes[oldest[taken]]));
    const bool last = taken + 1 == untainted_.size();
    if ((last && facts_.pods > 0) || IsAbove(facts_.requests, left, options_.scale_up_percent)) break;
  }
  oldest.resize(taken);
  return oldest;
}

SizeDecision Pass::DefaultShrink() {
  if (untainted_.empty()) return Finish(SizeAction::kNothing, SizeReason::kWithinThresholds, 0);
  SizeReason reason = SizeReason::kWithinThresholds;
  int64_t rate = 0;
  if (IsBelow(facts_.requests, decision_.capacity, options_.taint_lower_percent)) {
    reason = SizeReason::kBelowTaintLower;
    rate = options_.fast_rate;
  } else if (IsBelow(facts_.requests, decision_.capacity, options_.taint_upper_percent)) {
    reason = SizeReason::kBelowTaintUpper;
    rate = options_.slow_rate;
  }
  decision_.wanted = -rate;
  const int64_t excess = decision_.untainted - options_.max_nodes;
  const bool waits = options_.scale_on_starve && facts_.pending_pods > 0;
  const int64_t allowed =
      TaintCount(decision_.untainted, rate, options_.min_nodes, options_.cloud_min, target_).value_or(0);
  if (!waits) decision_.taint = Removable(allowed);
  if (excess > static_cast<int64_t>(decision_.taint.size())) {
    // The maximum is a promise, whatever the utilisation is then.
    decision_.wanted = -excess;
    decision_.taint = OldestFirst(facts_.nodes, untainted_, excess);
    return Finish(SizeAction::kRemoveFast, SizeReason::kAboveMaximum, -excess);
  }
  const int64_t count = static_cast<int64_t>(decision_.taint.size());
  if (count > 0) {
    const bool slow = reason == SizeReason::kBelowTaintUpper;
    return Finish(slow ? SizeAction::kRemoveSlowly : SizeAction::kRemoveFast, reason, -count);
  }
  if (rate > 0) {
    reason = waits ? SizeReason::kPodsPending
                   : (allowed == 0 ? SizeReason::kAtMinimum : SizeReason::kWouldGrowBack);
  }
  return Finish(SizeAction::kNothing, reason, 0);
}

SizeDecision Pass::DecideDefault() {
  TaintUnhealthy();
  Measure();
  if (!untainted_.empty()) {
    const size_t newest = NewestFirst(facts_.nodes, untainted_, 1)[0];
    decision_.next.cached_node = Net(facts_.nodes[newest]);
  }
  if (decision_.usage.kind == UsageKind::kNoCapacity) {
    return Finish(SizeAction::kNothing, SizeReason::kNoCapacity, 0);
  }
  DeleteForceTainted();
  if (Locked()) return Finish(SizeAction::kNothing, SizeReason::kLocked, 0);
  if (!IsHealthy(facts_.nodes, options_.health, now_ms_)) {
    DeleteTainted(/*group_is_healthy=*/false);
    return Finish(SizeAction::kNothing, SizeReason::kUnhealthy, 0);
  }
  const bool too_many = decision_.untainted > options_.max_nodes;
  const std::optional<Growth> growth = too_many ? Growth{} : DefaultGrowth();
  if (!growth.has_value()) return Finish(SizeAction::kNothing, SizeReason::kNodeTooSmall, 0);
  if (growth->nodes > 0) return DefaultGrow(*growth);
  DeleteTainted(/*group_is_healthy=*/true);
  if (facts_.nodes.empty() && facts_.pods == 0) return Finish(SizeAction::kNothing, SizeReason::kEmpty, 0);
  return DefaultShrink();
}

}  // namespace loadline::size_internal
