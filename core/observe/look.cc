#include "core/observe/look.h"

#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/texts.h"
#include "core/observe/cluster_health.h"
#include "core/observe/count_machines.h"
#include "core/observe/follow_machines.h"
#include "core/observe/give_up.h"
#include "core/observe/outcomes.h"
#include "core/observe/settle_requests.h"

namespace loadline {
namespace {

// Groups that are not listed are forgotten, but for failures and delays that still count: a cloud may leave a
// group out for a moment.
void ForgetGroups(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms,
                  FleetState* state) {
  absl::btree_set<uint64_t> listed;
  for (const FleetGroup& group : observation.groups) listed.insert(FleetKey(group.name));
  size_t kept = listed.size();
  for (auto it = state->groups.begin(); it != state->groups.end();) {
    GroupMemory& memory = it->second;
    if (memory.back_off.has_value() && IsForgotten(*memory.back_off, now_ms, options.back_off)) {
      memory.back_off.reset();
    }
    const bool counts = memory.back_off.has_value() || CoolsDownUntil(memory, options, now_ms).has_value();
    if (listed.contains(it->first)) {
      ++it;
    } else if (counts && kept < kMostStateGroups) {
      memory = {.back_off = memory.back_off, .grown_ms = memory.grown_ms, .deleted_ms = memory.deleted_ms};
      ++kept;
      ++it;
    } else {
      it = state->groups.erase(it);
    }
  }
}

void AddBackOff(const FleetState& state, int64_t now_ms, FleetGroupView* view) {
  const auto memory = state.groups.find(FleetKey(view->name));
  if (memory == state.groups.end() || !BacksOff(memory->second.back_off, now_ms)) return;
  view->back_off = memory->second.back_off;
  const int64_t seconds = (view->back_off->until_ms - now_ms + 500) / 1000;
  view->held = absl::StrCat("backs off for ", DurationText(seconds * 1000), ": ", view->back_off->text);
}

void Observe(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms,
             FleetState* state, FleetView* view) {
  NoteGrowth(observation, options, now_ms, state);
  const std::vector<std::vector<MachineMemory>> machines =
      FollowMachines(observation, options, now_ms, state, view);
  ForgetGroups(observation, options, now_ms, state);
  for (size_t i = 0; i < observation.groups.size(); ++i) {
    const FleetGroup& group = observation.groups[i];
    view->groups.push_back(CountMachines(group, machines[i], options, now_ms, state));
    GroupMemory& memory = state->groups[FleetKey(group.name)];
    SettleRequest(group, view->groups.back(), options, now_ms, &memory, view);
    view->groups.back().cools_down_until_ms = CoolsDownUntil(memory, options, now_ms);
  }
  GiveUpMachines(observation.groups, options, *state, &view->groups);
  for (size_t i = 0; i < observation.other_nodes.size(); ++i) {
    if (IsStarting(observation.other_nodes[i], {}, options.startup_ms, now_ms)) {
      view->other_not_started.push_back(static_cast<int32_t>(i));
    }
  }
  view->unhealthy = WhyUnhealthy(observation, options, now_ms);
}

}  // namespace

FleetView LookAtFleet(const FleetObservation* observation, const FleetOutcomes& outcomes,
                      const FleetOptions& options, int64_t now_ms, FleetState* state) {
  ForgetFuture(now_ms, options.back_off, state);
  FleetView view;
  TakeOutcomes(outcomes, options, now_ms, state, &view);
  if (observation != nullptr) {
    Observe(*observation, options, now_ms, state, &view);
  } else {
    absl::btree_set<std::string> names;
    for (const IncreaseOutcome& increase : outcomes.increases) names.insert(increase.group);
    for (const std::string& name : names) view.groups.emplace_back().name = name;
  }
  for (FleetGroupView& group : view.groups) AddBackOff(*state, now_ms, &group);
  for (const auto& [key, memory] : state->groups) view.backs_off |= BacksOff(memory.back_off, now_ms);
  view.cools_down = CoolsDown(*state, options, now_ms);
  return view;
}

}  // namespace loadline
