// Groups of machines in a line each, and looks at them.
#ifndef LOADLINE_TEST_CORE_OBSERVE_FLEET_WORLD_H_
#define LOADLINE_TEST_CORE_OBSERVE_FLEET_WORLD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/observe/look.h"

namespace loadline {

inline constexpr int64_t kFleetMinute = 60'000;
inline constexpr int64_t kFleetStart = 1'700'000'000'000;

// The defaults of the autoscaler.
inline FleetOptions DefaultFleetOptions() {
  FleetOptions options;
  options.provision_ms = 15 * kFleetMinute;
  options.startup_ms = 15 * kFleetMinute;
  options.back_off = {5 * kFleetMinute, 30 * kFleetMinute, 180 * kFleetMinute};
  options.deletion_patience_ms = 5 * kFleetMinute;
  options.max_deletions = 10;
  options.ok_unready_nodes = 3;
  options.max_unready_percent = 45;
  options.after_add_ms = 10 * kFleetMinute;
  options.after_delete_ms = 0;
  options.after_failure_ms = 3 * kFleetMinute;
  return options;
}

inline FleetMachine Machine(const std::string& id, MachineState state = MachineState::kCreating) {
  FleetMachine machine;
  machine.id = id;
  machine.state = state;
  return machine;
}

inline FleetMachine FaultyMachine(const std::string& id, bool out_of_resources = false) {
  FleetMachine machine = Machine(id);
  machine.fault = MachineFault{out_of_resources ? "STOCK_OUT" : "BROKEN", "no machine", out_of_resources};
  return machine;
}

inline FleetNode ReadyNode(int64_t created_ms = 1, std::vector<uint64_t> devices = {}) {
  return FleetNode{.created_ms = created_ms, .ready = true, .devices = std::move(devices)};
}

// A machine whose node is ready since long ago.
inline FleetMachine MachineWithNode(const std::string& id, const FleetNode& node = ReadyNode()) {
  FleetMachine machine = Machine(id, MachineState::kRunning);
  machine.node = node;
  return machine;
}

inline std::vector<FleetMachine> Machines(const std::string& prefix, int count,
                                          MachineState state = MachineState::kCreating) {
  std::vector<FleetMachine> machines;
  for (int i = 0; i < count; ++i) machines.push_back(Machine(absl::StrCat(prefix, i), state));
  return machines;
}

// A group whose target are its machines.
inline FleetGroup GroupOf(const std::string& name, std::vector<FleetMachine> machines) {
  FleetGroup group;
  group.name = name;
  group.target = static_cast<int64_t>(machines.size());
  group.machines = std::move(machines);
  return group;
}

// One group "g" that is looked at again and again.
class FleetWorld {
 public:
  FleetOptions options = DefaultFleetOptions();
  FleetState state;
  FleetGroup group = GroupOf("g", {});
  std::vector<FleetNode> other_nodes;

  FleetView LookAtAll(int64_t minute, const FleetOutcomes& outcomes = {}) {
    const FleetObservation observation{{group}, other_nodes};
    return LookAtFleet(&observation, outcomes, options, At(minute), &state);
  }
  FleetGroupView Look(int64_t minute, const FleetOutcomes& outcomes = {}) {
    return LookAtAll(minute, outcomes).groups[0];
  }
  // Asks for so many more nodes.
  FleetView Grow(int64_t minute, int64_t nodes) {
    FleetOutcomes outcomes;
    outcomes.increases.push_back({.group = group.name, .from = group.target, .nodes = nodes});
    group.target += nodes;
    return LookAtFleet(nullptr, outcomes, options, At(minute), &state);
  }
  static int64_t At(int64_t minute) { return kFleetStart + minute * kFleetMinute; }
};

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_OBSERVE_FLEET_WORLD_H_
