#include "core/size/size_group.h"

#include <algorithm>

#include "core/size/size_pass.h"

namespace loadline {

absl::string_view Name(SizeAction action) {
  switch (action) {
    case SizeAction::kNothing:
      return "nothing";
    case SizeAction::kScaleUp:
      return "scale up";
    case SizeAction::kRemoveSlowly:
      return "remove slowly";
    case SizeAction::kRemoveFast:
      return "remove fast";
  }
  return "invalid action";
}

absl::string_view Name(SizeReason reason) {
  switch (reason) {
    case SizeReason::kWithinThresholds:
      return "within thresholds";
    case SizeReason::kAboveScaleUp:
      return "above the scale-up threshold";
    case SizeReason::kFromZero:
      return "pods and no node";
    case SizeReason::kStarved:
      return "a pending pod fits on no node";
    case SizeReason::kNodeTooOld:
      return "a node is too old";
    case SizeReason::kBelowMinimum:
      return "below the minimum";
    case SizeReason::kBelowTaintUpper:
      return "below the upper taint threshold";
    case SizeReason::kBelowTaintLower:
      return "below the lower taint threshold";
    case SizeReason::kAboveMaximum:
      return "above the maximum";
    case SizeReason::kAtMaximum:
      return "at the maximum";
    case SizeReason::kAtMinimum:
      return "at the minimum";
    case SizeReason::kWouldGrowBack:
      return "without a node it would be above the scale-up threshold";
    case SizeReason::kWaiting:
      return "the nodes that it lacks are on their way";
    case SizeReason::kLocked:
      return "scaled up a short time ago";
    case SizeReason::kUnhealthy:
      return "too many nodes are not ready";
    case SizeReason::kPodsPending:
      return "pods wait for a node";
    case SizeReason::kEmpty:
      return "neither nodes nor pods";
    case SizeReason::kNoCapacity:
      return "the nodes offer no cpu or no memory";
    case SizeReason::kFewerThanMinimum:
      return "fewer nodes than the minimum";
    case SizeReason::kNodeTooSmall:
      return "a new node would offer none of what is lacking";
  }
  return "invalid reason";
}

int64_t CloudIncrease(int64_t wanted, int64_t cloud_target, int64_t cloud_max) {
  return std::max<int64_t>(0, std::min(wanted, cloud_max - cloud_target));
}

std::optional<int64_t> TaintCount(int64_t untainted, int64_t wanted, int64_t min_nodes, int64_t cloud_min,
                                  int64_t cloud_target) {
  int64_t count = wanted;
  if (untainted - count < min_nodes) count = untainted - min_nodes;
  if (count < 0) return std::nullopt;
  if (cloud_target - count < cloud_min && cloud_target >= cloud_min) count = cloud_target - cloud_min;
  return count;
}

SizeDecision SizeGroup(const SizeOptions& options, const GroupFacts& facts, const GroupState& state,
                       int64_t now_ms) {
  size_internal::Pass pass(options, facts, state, now_ms);
  return options.mode == SizeMode::kCompat ? pass.DecideCompat() : pass.DecideDefault();
}

}  // namespace loadline
