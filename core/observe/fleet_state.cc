#include "core/observe/fleet_state.h"

#include <algorithm>

#include "core/base/fingerprint.h"

namespace loadline {
namespace {

void AtMost(int64_t now_ms, std::optional<int64_t>* time_ms) {
  if (time_ms->has_value()) *time_ms = std::min(**time_ms, now_ms);
}

// A cool-down that has not begun is none: it must not begin because of a clock.
void NoneInFuture(int64_t now_ms, std::optional<int64_t>* time_ms) {
  if (time_ms->has_value() && **time_ms > now_ms) time_ms->reset();
}

}  // namespace

uint64_t FleetKey(absl::string_view name) {
  FingerprintBuilder builder;
  builder.Add(name);
  return builder.Finish();
}

void ForgetFuture(int64_t now_ms, const BackOffOptions& options, FleetState* state) {
  NoneInFuture(now_ms, &state->grown_ms);
  NoneInFuture(now_ms, &state->deleted_ms);
  NoneInFuture(now_ms, &state->taint_failed_ms);
  for (auto& [key, group] : state->groups) {
    AtMost(now_ms, &group.short_since_ms);
    NoneInFuture(now_ms, &group.grown_ms);
    NoneInFuture(now_ms, &group.deleted_ms);
    if (!group.back_off.has_value()) continue;
    BackOff& back_off = *group.back_off;
    back_off.since_ms = std::min(back_off.since_ms, now_ms);
    back_off.duration_ms = std::min(back_off.duration_ms, options.max_ms);
    back_off.until_ms = std::min(back_off.until_ms, now_ms + options.max_ms);
  }
  for (auto& [key, machine] : state->machines) {
    AtMost(now_ms, &machine.missing_since_ms);
    AtMost(now_ms, &machine.given_up_ms);
  }
}

}  // namespace loadline
