#include "core/observe/follow_machines.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/observe/outcomes.h"

namespace loadline {
namespace {

// Machines with one fault, or with any of the faults that have no count of their own.
struct FaultCount {
  const MachineFault* first = nullptr;
  int64_t machines = 0;
  bool others = false;
};

// Counts the faults of one group by code, since clouds put ids of requests into messages. A cloud that puts
// them into codes as well does not get a count for each: beyond `most`, there is one for each kind of fault.
class FaultCounts {
 public:
  explicit FaultCounts(size_t most) : most_(most) {}

  // `fault` stays where it is.
  void Add(const MachineFault& fault) {
    const auto key = std::make_pair(absl::string_view(fault.code), fault.out_of_resources);
    auto found = positions_.find(key);
    if (found == positions_.end() && counts_.size() < most_) {
      found = positions_.emplace(key, counts_.size()).first;
      counts_.push_back({&fault, 0, /*others=*/false});
    }
    FaultCount& count =
        found != positions_.end() ? counts_[found->second] : others_[fault.out_of_resources ? 1 : 0];
    if (count.machines == 0) count.first = &fault;
    ++count.machines;
  }

  // Returns the counts; faults with a code of their own are last, in the order in which they were found: the
  // group reports the last one for as long as it backs off.
  std::vector<FaultCount> Counts() const {
    std::vector<FaultCount> all;
    for (const FaultCount& count : others_) {
      if (count.machines > 0) all.push_back(count);
    }
    all.insert(all.end(), counts_.begin(), counts_.end());
    return all;
  }
  size_t codes() const { return counts_.size(); }

 private:
  const size_t most_;
  absl::flat_hash_map<std::pair<absl::string_view, bool>, size_t> positions_;
  std::vector<FaultCount> counts_;
  std::array<FaultCount, 2> others_ = {{{nullptr, 0, true}, {nullptr, 0, true}}};
};

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

// Replaces the memory of machines. The last entry of a machine that is listed twice counts. `all_reported`:
// every machine is listed; else others may be there all the same.
void Remember(std::vector<KeyedMemory> machines, bool all_reported,
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
    if (!all_reported) {
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
      count.first->out_of_resources ? BackOffReason::kOutOfResources : BackOffReason::kCreationFailed;
  view->failed_creations.push_back({group, reason, count.machines});
  FailGroup(
      group, reason,
      absl::StrCat(count.machines, count.machines == 1 ? " machine" : " machines", " could not be created",
                   count.others ? ", such as by " : ": ", count.first->code, ": ", count.first->message),
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
  bool all_reported = true;
  size_t codes = 0;
  for (const FleetGroup& group : observation.groups) {
    GroupMemory& memory = state->groups[FleetKey(group.name)];
    int64_t live = 0;
    FaultCounts faults(std::min(kMostFaultCodes, kMostFaultCodesOfAll - codes));
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
      if (after.faulty && !before.faulty) faults.Add(*machine.fault);
      if (!IsBeingDeleted(machine, after, options, now_ms)) ++live;
      changed |= !is_known || after != before;
      machines.emplace_back(key, after);
      known_of.push_back(after);
    }
    // A new process hears of none of its machines, though they are there.
    if (!group.readable && group.machines.empty()) all_reported = false;
    if (live >= group.target) {
      memory.short_since_ms.reset();
    } else if (!memory.short_since_ms.has_value()) {
      memory.short_since_ms = now_ms;
    }
    codes += faults.codes();
    for (const FaultCount& count : faults.Counts()) {
      FailCreations(group.name, count, options, now_ms, &memory, view);
    }
  }
  state->looked = true;
  // From one look to the next most often nothing changes: all were known, and there are no others.
  if (changed || machines.size() != state->machines.size()) {
    Remember(std::move(machines), all_reported, &state->machines);
  }
  return followed;
}

}  // namespace loadline
