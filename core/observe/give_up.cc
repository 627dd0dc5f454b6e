#include "core/observe/give_up.h"

#include <algorithm>

namespace loadline {
namespace {

// The first of `machines`, as far as the group and all groups together may lose some.
std::vector<int32_t> TakeMachines(const std::vector<int32_t>& machines, int64_t min_nodes, int64_t* target,
                                  int64_t* deletions) {
  const int64_t most = std::min({static_cast<int64_t>(machines.size()), *target - min_nodes, *deletions});
  if (most <= 0) return {};
  *target -= most;
  *deletions -= most;
  return {machines.begin(), machines.begin() + most};
}

std::vector<int32_t> CertainlyLate(const FleetGroup& group, const FleetGroupView& view,
                                   const FleetState& state) {
  if (!view.started.empty() || view.starting > 0) return view.late;
  std::vector<int32_t> certain;
  for (const int32_t position : view.late) {
    const auto memory = state.machines.find(FleetKey(group.machines[static_cast<size_t>(position)].id));
    if (memory == state.machines.end() || !memory->second.inherited) certain.push_back(position);
  }
  return certain;
}

}  // namespace

void GiveUpMachines(const std::vector<FleetGroup>& groups, const FleetOptions& options,
                    const FleetState& state, std::vector<FleetGroupView>* views) {
  int64_t deletions = options.max_deletions;
  for (size_t i = 0; i < groups.size(); ++i) {
    const FleetGroup& group = groups[i];
    FleetGroupView& view = (*views)[i];
    if (!group.readable) continue;  // it may have to go as a whole
    int64_t target = group.target;
    view.delete_failed = TakeMachines(view.failed, group.min_nodes, &target, &deletions);
    view.delete_late = TakeMachines(CertainlyLate(group, view, state), group.min_nodes, &target, &deletions);
    view.take_back = std::max<int64_t>(0, std::min(view.not_begun, target - group.min_nodes));
  }
}

}  // namespace loadline
