#include "core/fleet/follow_machines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fleet/outcomes.h"

namespace loadline {
namespace {

struct FaultCount {
  MachineFault fault;
  int64_t machines = 0;
};

// By code: clouds put ids of requests into messages. The first message stands for all.
void CountFault(const MachineFault& fault, std::vector<FaultCount>* faults) {
  for (FaultCount& count : *faults) {
    if (count.fault.code != fault.code || count.fault.out_of_resources != fault.out_of_resources) continue;
    ++count.machines;
    return;
  }
  faults->push_back({fault, 1});
}

MachineMemory Followed(const FleetMachine& machine, const MachineMemory& before, bool first_look,
                       int64_t now_ms) {
  MachineMemory after;
  if (machine.state != MachineState::kDeleting) after.given_up_ms = before.given_up_ms;
  if (machine.node.has_value()) {
    after.had_node = true;
    return after;
  }
  // One that is created again under the same id is a new one.
  after.had_node = before.had_node && machine.state != MachineState::kCreating;
  if (machine.fault.has_value()) {
    after.faulty = true;
    after.inherited = before.inherited;
    return after;
  }
  after.missing_since_ms = before.missing_since_ms.value_or(now_ms);
  after.inherited = before.inherited || (first_look && machine.state != MachineState::kCreating);
  return after;
}

using KeyedMemory = std::pair<uint64_t, MachineMemory>;

// Puts what is known of machines in place of what was. Of a machine that is told twice the last one counts.
// `all_told`: else what is not told may be there all the same.
void Remember(std::vector<KeyedMemory> machines, bool all_told,
              absl::btree_map<uint64_t, MachineMemory>* all) {
  std::stable_sort(machines.begin(), machines.end(),
                   [](const KeyedMemory& a, const KeyedMemory& b) { return a.first < b.first; });
  absl::btree_map<uint64_t, MachineMemory> now;
  for (const auto& [key, memory] : machines) {
    if (!now.empty() && now.rbegin()->first == key) {
      now.rbegin()->second = memory;
    } else {
      now.emplace_hint(now.end(), key, memory);
    }
  }
  // A cloud may leave a machine out of one answer.
  for (const auto& [key, memory] : *all) {
    if (!all_told) {
      now.emplace(key, memory);
    } else if (memory.inherited) {
      now.emplace(key, MachineMemory{.inherited = true});
    }
  }
  *all = std::move(now);
}

// These machines do not come, but that is no success of the request for them.
void FailCreations(const std::string& group, const FaultCount& count, const FleetOptions& options,
                   int64_t now_ms, GroupMemory* memory, FleetView* view) {
  const BackOffReason reason =
      count.fault.out_of_resources ? BackOffReason::kOutOfResources : BackOffReason::kCreationFailed;
  view->failed_creations.push_back({group, reason, count.machines});
  FailGroup(group, reason,
            absl::StrCat(count.machines, " machines could not be created: ", count.fault.code, ": ",
                         count.fault.message),
            options.back_off, now_ms, memory, view);
  if (!memory->request.has_value()) return;
  memory->request->nodes -= count.machines;
  if (memory->request->nodes <= 0) memory->request.reset();
}

}  // namespace

bool IsBeingDeleted(const FleetMachine& machine, const MachineMemory& memory, const FleetOptions& options,
                    int64_t now_ms) {
  return machine.state == MachineState::kDeleting ||
         (memory.given_up_ms.has_value() && now_ms - *memory.given_up_ms < options.deletion_patience_ms);
}

std::vector<std::vector<MachineMemory>> FollowMachines(const FleetObservation& observation,
                                                       const FleetOptions& options, int64_t now_ms,
                                                       FleetState* state, FleetView* view) {
  std::vector<std::vector<MachineMemory>> followed;
  std::vector<KeyedMemory> machines;
  machines.reserve(state->machines.size());
  bool changed = false;
  bool all_told = true;
  for (const FleetGroup& group : observation.groups) {
    GroupMemory& memory = state->groups[FleetKey(group.name)];
    int64_t live = 0;
    std::vector<FaultCount> faults;
    std::vector<MachineMemory>& known_of = followed.emplace_back();
    known_of.reserve(group.machines.size());
    for (const FleetMachine& machine : group.machines) {
      if (machine.state == MachineState::kDeleting && !machine.node.has_value()) {
        known_of.emplace_back();
        continue;
      }
      const uint64_t key = FleetKey(machine.id);
      const auto known = state->machines.find(key);
      const bool is_known = known != state->machines.end();
      const MachineMemory before = is_known ? known->second : MachineMemory();
      const bool first_look = !state->looked || (observation.first && !is_known);
      const MachineMemory after = Followed(machine, before, first_look, now_ms);
      if (after.faulty && !before.faulty) CountFault(*machine.fault, &faults);
      if (!IsBeingDeleted(machine, after, options, now_ms)) ++live;
      changed |= !is_known || after != before;
      machines.emplace_back(key, after);
      known_of.push_back(after);
    }
    // A new process is told of none of its machines, though they are there.
    if (!group.readable && group.machines.empty()) all_told = false;
    if (live >= group.target) {
      memory.short_since_ms.reset();
    } else if (!memory.short_since_ms.has_value()) {
      memory.short_since_ms = now_ms;
    }
    for (const FaultCount& count : faults) {
      FailCreations(group.name, count, options, now_ms, &memory, view);
    }
  }
  state->looked = true;
  // From one look to the next most often nothing changes: all were known, and there are no others.
  if (changed || machines.size() != state->machines.size()) {
    Remember(std::move(machines), all_told, &state->machines);
  }
  return followed;
}

}  // namespace loadline
