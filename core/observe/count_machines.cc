#include "core/observe/count_machines.h"

#include "core/observe/devices.h"
#include "core/observe/follow_machines.h"

namespace loadline {
namespace {

bool HasBeen(const std::optional<int64_t>& since_ms, int64_t period_ms, int64_t now_ms) {
  return since_ms.has_value() && now_ms - *since_ms >= period_ms;
}

// A machine without a node.
void CountMissing(const FleetMachine& machine, int32_t position, const MachineMemory& memory,
                  int64_t provision_ms, int64_t now_ms, FleetGroupView* view) {
  const bool late = HasBeen(memory.missing_since_ms, provision_ms, now_ms);
  if (!memory.had_node && machine.fault.has_value()) {
    view->failed.push_back(position);
  } else if (memory.had_node && (machine.fault.has_value() || late)) {
    ++view->lost;
  } else if (late) {
    view->late.push_back(position);
  } else {
    ++view->coming;
  }
}

}  // namespace

bool IsStarting(const FleetNode& node, const std::vector<uint64_t>& devices, int64_t startup_ms,
                int64_t now_ms) {
  return (!node.ready || LacksDevices(node, devices)) && IsYoung(node.created_ms, startup_ms, now_ms);
}

FleetGroupView CountMachines(const FleetGroup& group, std::span<const MachineMemory> known,
                             const FleetOptions& options, int64_t now_ms, FleetState* state) {
  FleetGroupView view;
  view.name = group.name;
  GroupMemory& memory = state->groups[FleetKey(group.name)];
  memory.devices = DevicesOfGroup(memory.devices, group, options, now_ms);
  const int64_t provision_ms = group.provision_ms.value_or(options.provision_ms);
  const int64_t startup_ms = group.startup_ms.value_or(options.startup_ms);
  int64_t undecided = 0;  // the cloud may be deleting them: if it is not, they are part of its target
  for (size_t i = 0; i < group.machines.size(); ++i) {
    const FleetMachine& machine = group.machines[i];
    const int32_t position = static_cast<int32_t>(i);
    const bool starting =
        machine.node.has_value() && IsStarting(*machine.node, memory.devices, startup_ms, now_ms);
    if (starting) view.not_started.push_back(position);
    if (machine.node.has_value() && LacksDevices(*machine.node, memory.devices)) {
      view.lacking.push_back(position);
    }
    if (IsBeingDeleted(machine, known[i], options, now_ms)) {
      undecided += machine.state == MachineState::kDeleting ? 0 : 1;
      continue;
    }
    ++view.live;
    if (!machine.node.has_value()) {
      CountMissing(machine, position, known[i], provision_ms, now_ms, &view);
    } else if (machine.node->leaving) {
      continue;
    } else if (starting) {
      ++view.starting;
    } else {
      view.started.push_back(position);
    }
  }
  const int64_t missing = group.target - view.live - undecided;
  if (missing <= 0) return view;
  if (HasBeen(memory.short_since_ms, provision_ms, now_ms)) {
    view.not_begun = missing;
  } else {
    view.coming += missing;
    view.unbegun = missing;
  }
  return view;
}

}  // namespace loadline
