#include "core/sim/fleet_look.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fleet/look.h"
#include "core/fleet/state_bytes.h"

namespace loadline {
namespace {

constexpr int64_t kMsOfMinute = 60'000;

// As the autoscaler has it where nobody says otherwise.
FleetOptions OptionsOf(const SimSettings& settings) {
  FleetOptions options;
  options.provision_ms = settings.max_node_provision_s * 1000;
  options.startup_ms = 15 * kMsOfMinute;
  options.back_off = {5 * kMsOfMinute, 30 * kMsOfMinute, 180 * kMsOfMinute};
  options.deletion_patience_ms = kDeletionPatienceMs;
  options.max_deletions = settings.max_scale_down_parallelism;
  options.ok_unready_nodes = 3;
  options.max_unready_percent = 45;
  options.after_add_ms = settings.after_add_s * 1000;
  options.after_delete_ms = settings.after_delete_s * 1000;
  options.after_failure_ms = settings.after_failure_s * 1000;
  return options;
}

std::string MachineId(int32_t machine) { return absl::StrCat("m", machine); }

MachineState StateOf(const SimMachine& machine) {
  switch (machine.state) {
    case SimMachine::State::kOrdered:
      return machine.phantom ? MachineState::kRunning : MachineState::kCreating;
    case SimMachine::State::kRunning:
      return MachineState::kRunning;
    case SimMachine::State::kDeleting:
    case SimMachine::State::kGone:
      return MachineState::kDeleting;
  }
  return MachineState::kUnknown;
}

bool IsIn(const std::vector<bool>& set, int32_t number) {
  return static_cast<size_t>(number) < set.size() && set[static_cast<size_t>(number)];
}

// The earliest of some times that lie ahead.
class Earliest {
 public:
  explicit Earliest(int64_t now_ms) : now_ms_(now_ms) {}
  void Note(int64_t at_ms) {
    if (at_ms > now_ms_) first_ms_ = std::min(first_ms_.value_or(at_ms), at_ms);
  }
  void Note(const std::optional<int64_t>& since_ms, int64_t period_ms) {
    if (since_ms.has_value()) Note(*since_ms + period_ms);
  }
  std::optional<int64_t> first_ms() const { return first_ms_; }

 private:
  int64_t now_ms_;
  std::optional<int64_t> first_ms_;
};

}  // namespace

FleetLook::FleetLook(const World* world, const Cloud* cloud, const ObservedCluster* seen)
    : world_(*world),
      cloud_(*cloud),
      seen_(*seen),
      options_(OptionsOf(world->scenario().settings)),
      list_(world->scenario().seed, SimPurpose::kCloudList) {
  const std::vector<SimGroup>& groups = world_.scenario().groups;
  machines_.resize(groups.size());
  for (const SimGroup& of : groups) {
    FleetGroup& group = told_.groups.emplace_back();
    group.name = of.name;
    group.min_nodes = of.min_nodes;
    if (of.gpus > 0) group.template_devices.push_back(FleetKey(ShapesOf::kGpuName));
  }
  told_.first = true;
}

bool FleetLook::ListMachines() {
  listed_now_ = !list_.Chance(world_.scenario().faults.failed_list);
  if (!listed_now_) return false;
  if (version_ == cloud_.version()) return false;
  version_ = cloud_.version();
  listed_.assign(static_cast<size_t>(world_.machine_end()), false);
  for (int32_t i = 0; i < static_cast<int32_t>(machines_.size()); ++i) {
    FleetGroup& group = told_.groups[static_cast<size_t>(i)];
    group.target = cloud_.target(i);
    machines_[static_cast<size_t>(i)] = cloud_.machines(i);
    group.machines.clear();
    for (const int32_t machine : cloud_.machines(i)) {
      listed_[static_cast<size_t>(machine)] = true;
      FleetMachine& entry = group.machines.emplace_back();
      entry.id = MachineId(machine);
      entry.state = StateOf(world_.machine(machine));
      if (world_.machine(machine).faulty) entry.fault = MachineFault{"no-such-image", "", false};
    }
  }
  return true;
}

bool FleetLook::Lists(int32_t machine) const { return IsIn(listed_, machine); }

FleetNode FleetLook::NodeOf(int32_t node, const std::vector<bool>& leaving) const {
  FleetNode told;
  told.created_ms = kSimEpochS * 1000 + world_.node(node).joined_ms / 1000 * 1000;
  told.ready = seen_.Ready(node);
  told.leaving = IsIn(leaving, node);
  if (world_.group(world_.node(node).group).gpus > 0 && seen_.OffersDevices(node)) {
    told.devices.push_back(FleetKey(ShapesOf::kGpuName));
  }
  return told;
}

void FleetLook::FillNodes(const std::vector<bool>& leaving, const std::vector<bool>& shrinking) {
  for (size_t i = 0; i < machines_.size(); ++i) {
    FleetGroup& group = told_.groups[i];
    group.shrinks = IsIn(shrinking, static_cast<int32_t>(i));
    for (size_t k = 0; k < machines_[i].size(); ++k) {
      const int32_t node = world_.machine(machines_[i][k]).node;
      if (seen_.Registered(node)) {
        group.machines[k].node = NodeOf(node, leaving);
      } else {
        group.machines[k].node.reset();
      }
    }
  }
  other_nodes_.clear();
  told_.other_nodes.clear();
  for (const int32_t node : seen_.registered()) {
    if (Lists(world_.node(node).machine)) continue;
    other_nodes_.push_back(node);
    told_.other_nodes.push_back(NodeOf(node, leaving));
  }
}

const FleetView& FleetLook::Look(const std::vector<bool>& leaving, const std::vector<bool>& shrinking,
                                 int64_t now_ms) {
  FillNodes(leaving, shrinking);
  const FleetState before = state_;
  view_ = LookAtFleet(&told_, outcomes_, options_, now_ms, &state_);
  outcomes_ = {};
  told_.first = false;
  changed_ = state_ != before;
  return view_;
}

void FleetLook::NoteIncrease(int32_t group, int64_t nodes, CloudAnswer answer) {
  IncreaseOutcome& outcome = outcomes_.increases.emplace_back();
  outcome.group = world_.group(group).name;
  outcome.from = target(group);
  outcome.nodes = nodes;
  if (answer == CloudAnswer::kRefused) {
    outcome.result = IncreaseOutcome::Result::kRefused;
  } else if (answer != CloudAnswer::kDone) {
    outcome.result = IncreaseOutcome::Result::kFailed;
    outcome.error = answer == CloudAnswer::kNoCapacity ? "no capacity" : "the call failed, or was lost";
  }
}

void FleetLook::NoteGivenUp(int32_t machine, bool certain) {
  outcomes_.given_up.push_back(MachineId(machine));
  if (certain) --told_.groups[static_cast<size_t>(world_.machine(machine).group)].target;
}

void FleetLook::NoteRemoval(int32_t machine) {
  outcomes_.removals.push_back({world_.group(world_.machine(machine).group).name, MachineId(machine)});
}

void FleetLook::Settle(int64_t now_ms) {
  const FleetOutcomes outcomes = std::exchange(outcomes_, {});
  if (outcomes.increases.empty() && outcomes.given_up.empty() && outcomes.removals.empty() &&
      !outcomes.tainting_failed) {
    return;
  }
  const FleetView settled = LookAtFleet(nullptr, outcomes, options_, now_ms, &state_);
  view_.cools_down = settled.cools_down;
  changed_ = true;
}

std::optional<int64_t> FleetLook::NextTimeMs(int64_t now_ms) const {
  Earliest next(now_ms);
  for (const auto& [key, machine] : state_.machines) {
    next.Note(machine.missing_since_ms, options_.provision_ms);
    next.Note(machine.given_up_ms, options_.deletion_patience_ms);
  }
  for (const auto& [key, group] : state_.groups) {
    next.Note(group.short_since_ms, options_.provision_ms);
    if (group.request.has_value()) next.Note(group.request->until_ms);
    if (!group.back_off.has_value()) continue;
    next.Note(group.back_off->until_ms);
    next.Note(group.back_off->since_ms + options_.back_off.reset_ms + 1);
  }
  next.Note(state_.grown_ms, options_.after_add_ms);
  next.Note(state_.deleted_ms, options_.after_delete_ms);
  next.Note(state_.taint_failed_ms, options_.after_failure_ms);
  const auto note_node = [&](const FleetNode& node) { next.Note(node.created_ms + options_.startup_ms); };
  for (const FleetGroup& group : told_.groups) {
    for (const FleetMachine& machine : group.machines) {
      if (!machine.node.has_value()) continue;
      // What groups with devices come to offer depends on how old their nodes are.
      if (!machine.node->ready || !group.template_devices.empty()) note_node(*machine.node);
    }
  }
  for (const FleetNode& node : told_.other_nodes) note_node(node);
  return next.first_ms();
}

std::string FleetLook::Bytes() const { return EncodeFleetState(state_); }

void FleetLook::Restart(absl::string_view bytes) {
  state_ = {};
  if (absl::StatusOr<FleetState> state = DecodeFleetState(bytes); state.ok()) state_ = *std::move(state);
  outcomes_ = {};
  told_.first = true;
  version_ = -1;
  changed_ = true;
}

}  // namespace loadline
