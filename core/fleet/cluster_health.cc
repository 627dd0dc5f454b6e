#include "core/fleet/cluster_health.h"

#include "absl/strings/str_cat.h"
#include "core/fleet/devices.h"

namespace loadline {

std::string WhyUnhealthy(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms) {
  int64_t all = 0, unready = 0;
  const auto count = [&](const FleetNode& node) {
    ++all;
    if (!node.ready && !IsYoung(node, options.startup_ms, now_ms)) ++unready;
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

void NoteGrowth(const FleetObservation& observation, int64_t now_ms, FleetState* state) {
  for (const FleetGroup& group : observation.groups) {
    if (!group.readable) continue;
    std::optional<int64_t>& target = state->groups[FleetKey(group.name)].target;
    if (target.has_value() && group.target > *target) state->grown_ms = now_ms;
    target = group.target;
  }
}

bool CoolsDown(const FleetState& state, const FleetOptions& options, int64_t now_ms) {
  const auto within = [now_ms](const std::optional<int64_t>& since_ms, int64_t period_ms) {
    return since_ms.has_value() && now_ms - *since_ms < period_ms;
  };
  return within(state.grown_ms, options.after_add_ms) || within(state.deleted_ms, options.after_delete_ms) ||
         within(state.taint_failed_ms, options.after_failure_ms);
}

}  // namespace loadline
