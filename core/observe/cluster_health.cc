#include "core/observe/cluster_health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/observe/devices.h"

namespace loadline {

std::string WhyUnhealthy(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms) {
  int64_t all = 0, unready = 0;
  const auto count = [&](const FleetNode& node) {
    ++all;
    if (!node.ready && !IsYoung(node.created_ms, options.startup_ms, now_ms)) ++unready;
  };
  for (const FleetNode& node : observation.other_nodes) count(node);
  for (const FleetGroup& group : observation.groups) {
    for (const FleetMachine& machine : group.machines) {
      if (machine.node.has_value()) count(*machine.node);
    }
  }
  if (unready <= options.ok_unready_nodes || unready * 100 <= options.max_unready_percent * all) return "";
  return absl::StrCat("ClusterUnhealthy: ", unready, " of ", all, all == 1 ? " node" : " nodes",
                      unready == 1 ? " is not ready" : " are not ready");
}

void NoteGrowth(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms,
                FleetState* state) {
  for (const FleetGroup& group : observation.groups) {
    if (!group.readable) continue;
    GroupMemory& memory = state->groups[FleetKey(group.name)];
    if (memory.target.has_value() && group.target > *memory.target)
      NoteGrown(options, now_ms, &memory, state);
    memory.target = group.target;
  }
}

void NoteGrown(const FleetOptions& options, int64_t at_ms, GroupMemory* memory, FleetState* state) {
  if (!options.delays_by_group) {
    state->grown_ms = at_ms;
  } else if (memory != nullptr) {
    memory->grown_ms = at_ms;
  }
}

void NoteDeleted(const FleetOptions& options, int64_t at_ms, GroupMemory* memory, FleetState* state) {
  if (!options.delays_by_group) {
    state->deleted_ms = at_ms;
  } else if (memory != nullptr) {
    memory->deleted_ms = at_ms;
  }
}

bool CoolsDown(const FleetState& state, const FleetOptions& options, int64_t now_ms) {
  const auto within = [now_ms](const std::optional<int64_t>& since_ms, int64_t period_ms) {
    return since_ms.has_value() && now_ms - *since_ms < period_ms;
  };
  if (within(state.taint_failed_ms, options.after_failure_ms)) return true;
  if (options.delays_by_group) return false;
  return within(state.grown_ms, options.after_add_ms) || within(state.deleted_ms, options.after_delete_ms);
}

std::optional<int64_t> CoolsDownUntil(const GroupMemory& memory, const FleetOptions& options,
                                      int64_t now_ms) {
  if (!options.delays_by_group) return std::nullopt;
  int64_t until_ms = now_ms;
  const auto keep = [&until_ms](const std::optional<int64_t>& since_ms, int64_t period_ms) {
    if (since_ms.has_value()) until_ms = std::max(until_ms, *since_ms + period_ms);
  };
  keep(memory.grown_ms, options.after_add_ms);
  keep(memory.deleted_ms, options.after_delete_ms);
  return until_ms > now_ms ? std::optional(until_ms) : std::nullopt;
}

}  // namespace loadline
