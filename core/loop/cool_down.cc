#include "core/loop/cool_down.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/drain/node_reason.h"
#include "core/drain/timers.h"

namespace loadline {
namespace {

// A time that no node waits: from 1970 on it ends in 2038, and for a timer that runs much later.
constexpr int64_t kBeyondAnyTimer = INT32_MAX;

// Returns the group of a node if it cools down.
std::optional<GroupIndex> CoolingGroup(const DrainProblem& drain, Slot slot) {
  const std::optional<GroupIndex> group = drain.group_of[slot];
  return group.has_value() && drain.groups[*group].stays_until_s.has_value() ? group : std::nullopt;
}

}  // namespace

void HoldNodesThatCoolDown(DrainProblem* drain) {
  for (NodeGroup& group : drain->groups) {
    if (group.stays_until_s.has_value()) group.unneeded_time_s = group.unready_time_s = kBeyondAnyTimer;
  }
  // Nodes that a size removes have no timer.
  std::erase_if(drain->chosen, [&](Slot slot) { return CoolingGroup(*drain, slot).has_value(); });
}

void TellEndOfDelays(NodeGroupSpan groups, const TimerOptions& timers, const DrainProblem& drain,
                     DrainPlan* plan) {
  for (DrainRemoval& removal : plan->remove) {
    const std::optional<GroupIndex> group = CoolingGroup(drain, removal.slot);
    if (!group.has_value() || drain.groups[*group].sized) continue;
    const bool ready = removal.waits != NodeReason::kNotUnreadyLongEnough;
    const int64_t wait_s = WaitTime(groups[*group], ready, timers);
    const int64_t since_s = removal.ready_at_s - kBeyondAnyTimer - 1;
    removal.ready_at_s = std::max(ReadyAt(since_s, wait_s), *drain.groups[*group].stays_until_s);
  }
}

}  // namespace loadline
