#include "core/observe/outcomes.h"

#include <algorithm>

#include "core/observe/cluster_health.h"

namespace loadline {
namespace {

void TakeIncrease(const IncreaseOutcome& increase, const FleetOptions& options, int64_t now_ms,
                  FleetState* state, FleetView* view) {
  const uint64_t key = FleetKey(increase.group);
  if (state->groups.size() >= kMostStateGroups && !state->groups.contains(key)) return;
  GroupMemory& memory = state->groups[key];
  const int64_t at_ms = std::min(increase.at_ms.value_or(now_ms), now_ms);
  switch (increase.result) {
    case IncreaseOutcome::Result::kGranted:
      if (!memory.request.has_value()) memory.request = OpenRequest{.from = increase.from};
      memory.request->nodes += increase.nodes;
      memory.request->until_ms = at_ms + increase.provision_ms.value_or(options.provision_ms);
      NoteGrown(options, at_ms, &memory, state);
      return;
    case IncreaseOutcome::Result::kRefused:
      return;
    case IncreaseOutcome::Result::kFailed:
      FailGroup(increase.group, BackOffReason::kApiError, increase.error, options.back_off, at_ms, &memory,
                view);
      return;
  }
}

}  // namespace

void FailGroup(const std::string& name, BackOffReason reason, absl::string_view text,
               const BackOffOptions& options, int64_t now_ms, GroupMemory* memory, FleetView* view) {
  NoteFailure(reason, text, now_ms, options, &memory->back_off);
  view->failures.push_back({name, *memory->back_off});
}

void TakeOutcomes(const FleetOutcomes& outcomes, const FleetOptions& options, int64_t now_ms,
                  FleetState* state, FleetView* view) {
  for (const IncreaseOutcome& increase : outcomes.increases) {
    TakeIncrease(increase, options, now_ms, state, view);
  }
  for (const std::string& machine : outcomes.given_up) {
    state->machines[FleetKey(machine)].given_up_ms = now_ms;
  }
  for (const RemovalOutcome& removal : outcomes.removals) {
    if (const auto machine = state->machines.find(FleetKey(removal.machine));
        machine != state->machines.end()) {
      machine->second.had_node = false;
    }
    const auto group = state->groups.find(FleetKey(removal.group));
    GroupMemory* const memory = group != state->groups.end() ? &group->second : nullptr;
    NoteDeleted(options, now_ms, memory, state);
    // The target falls by one, which takes nothing back of what was asked for.
    if (memory != nullptr && memory->request.has_value()) --memory->request->from;
  }
  for (const TakenBackOutcome& back : outcomes.taken_back) {
    const auto group = state->groups.find(FleetKey(back.group));
    if (group == state->groups.end() || !group->second.request.has_value()) continue;
    std::optional<OpenRequest>& request = group->second.request;
    request->nodes -= back.nodes;
    if (request->nodes <= 0) request.reset();  // nothing of it is waited for, and nothing has failed
  }
  if (outcomes.tainting_failed) state->taint_failed_ms = now_ms;
}

}  // namespace loadline
