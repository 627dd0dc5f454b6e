#include "plugin/convert/fleet.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/fleet/fleet_state.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

using DeviceNames = google::protobuf::RepeatedPtrField<std::string>;

void CheckPeriod(absl::string_view field, int64_t period_ms, Fields* fields) {
  fields->Range(field, period_ms, 0, kMaxFleetTimeMs);
}

void CheckText(absl::string_view field, absl::string_view text, size_t most, Fields* fields) {
  if (text.size() <= most) return;
  fields->Refuse(absl::StrCat(field, ": has ", text.size(), " bytes, at most ", most, " are allowed"));
}

absl::Status CheckMachineId(absl::string_view id) {
  return id.empty() ? Refused("is empty") : CheckName(id, kMaxMachineIdBytes);
}

// A period of a group; 0: the one of all groups.
std::optional<int64_t> PeriodOfGroup(int64_t period_ms) {
  return period_ms > 0 ? std::optional<int64_t>(period_ms) : std::nullopt;
}

absl::StatusOr<std::vector<uint64_t>> DecodeDevices(absl::string_view field, const DeviceNames& names) {
  if (absl::Status status = CheckEntries(names.size(), field, kMaxFleetDevices); !status.ok()) return status;
  std::vector<uint64_t> devices;
  for (const std::string& name : names) {
    if (absl::Status status = CheckName(name, kMaxResourceNameLength); !status.ok()) {
      return Annotate(status, field);
    }
    devices.push_back(FleetKey(name));
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

absl::StatusOr<FleetNode> DecodeFleetNode(const v1::FleetNode& message) {
  absl::Status status =
      CheckRange("created_milliseconds", message.created_milliseconds(), 0, kMaxFleetTimeMs);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<uint64_t>> devices = DecodeDevices("devices", message.devices());
  if (!devices.ok()) return devices.status();
  return FleetNode{message.created_milliseconds(), message.ready(), message.leaving(), *std::move(devices)};
}

absl::StatusOr<FleetMachine> DecodeMachine(const v1::FleetMachine& message) {
  FleetMachine machine;
  if (absl::Status status = CheckMachineId(message.id()); !status.ok()) return Annotate(status, "id");
  machine.id = message.id();
  const absl::StatusOr<MachineState> state = DecodeMachineState(message.state());
  if (!state.ok()) return state.status();
  machine.state = *state;
  if (message.has_fault()) {
    absl::StatusOr<MachineFault> fault = DecodeMachineFault(message.fault());
    if (!fault.ok()) return fault.status();
    machine.fault = *std::move(fault);
  }
  if (message.has_node()) {
    absl::StatusOr<FleetNode> node = DecodeFleetNode(message.node());
    if (!node.ok()) return Annotate(node.status(), "node");
    machine.node = *std::move(node);
  }
  return machine;
}

// What must be there once in a whole observation.
struct KnownNames {
  absl::flat_hash_set<absl::string_view> groups;
  absl::flat_hash_set<absl::string_view> machines;
};

absl::StatusOr<FleetGroup> DecodeFleetGroup(const v1::FleetGroup& message, KnownNames* known) {
  Fields fields;
  fields.Name("node_group", message.node_group());
  fields.Keep(CheckNotNegative("min_nodes", message.min_nodes()));
  fields.Keep(CheckNotNegative("target", message.target()));
  CheckPeriod("max_node_provision_milliseconds", message.max_node_provision_milliseconds(), &fields);
  CheckPeriod("max_node_startup_milliseconds", message.max_node_startup_milliseconds(), &fields);
  if (!known->groups.insert(message.node_group()).second) {
    fields.Refuse(absl::StrCat("node_group ", Quoted(message.node_group()), " is named twice"));
  }
  if (!fields.status().ok()) return fields.status();
  FleetGroup group;
  group.name = message.node_group();
  group.min_nodes = message.min_nodes();
  group.target = message.target();
  group.readable = !message.unreadable();
  group.shrinks = message.shrinks();
  group.provision_ms = PeriodOfGroup(message.max_node_provision_milliseconds());
  group.startup_ms = PeriodOfGroup(message.max_node_startup_milliseconds());
  absl::StatusOr<std::vector<uint64_t>> devices =
      DecodeDevices("template_devices", message.template_devices());
  if (!devices.ok()) return devices.status();
  group.template_devices = *std::move(devices);
  group.machines.reserve(static_cast<size_t>(message.machines_size()));
  for (int i = 0; i < message.machines_size(); ++i) {
    absl::StatusOr<FleetMachine> machine = DecodeMachine(message.machines(i));
    if (machine.ok() && !known->machines.insert(message.machines(i).id()).second) {
      machine = Refused(absl::StrCat("id ", Quoted(message.machines(i).id()), " is named twice"));
    }
    if (!machine.ok()) return Annotate(machine.status(), absl::StrCat("machines[", i, "]"));
    group.machines.push_back(*std::move(machine));
  }
  return group;
}

absl::StatusOr<FleetObservation> DecodeObservation(const v1::FleetObservation& message) {
  absl::Status status = CheckSize("groups", message.groups_size(), kMaxFleetGroups);
  int64_t machines = message.other_nodes_size();
  for (const v1::FleetGroup& group : message.groups()) machines += group.machines_size();
  if (status.ok() && machines > kMaxFleetMachines) {
    status = absl::ResourceExhaustedError(absl::StrCat("machines and other_nodes: have ", machines,
                                                       " entries, the limit is ", kMaxFleetMachines));
  }
  if (!status.ok()) return status;
  FleetObservation observation;
  observation.first = message.first();
  KnownNames known;
  for (int i = 0; i < message.groups_size(); ++i) {
    absl::StatusOr<FleetGroup> group = DecodeFleetGroup(message.groups(i), &known);
    if (!group.ok()) return Annotate(group.status(), absl::StrCat("groups[", i, "]"));
    observation.groups.push_back(*std::move(group));
  }
  for (int i = 0; i < message.other_nodes_size(); ++i) {
    absl::StatusOr<FleetNode> node = DecodeFleetNode(message.other_nodes(i));
    if (!node.ok()) return Annotate(node.status(), absl::StrCat("other_nodes[", i, "]"));
    observation.other_nodes.push_back(*std::move(node));
  }
  return observation;
}

absl::StatusOr<IncreaseOutcome> DecodeIncrease(const v1::FleetIncrease& message) {
  Fields fields;
  fields.Name("node_group", message.node_group());
  fields.Keep(CheckNotNegative("from", message.from()));
  fields.Range("nodes", message.nodes(), 1, INT32_MAX);
  CheckPeriod("max_node_provision_milliseconds", message.max_node_provision_milliseconds(), &fields);
  CheckText("error", message.error(), kMaxFleetErrorBytes, &fields);
  IncreaseOutcome increase{.group = message.node_group(),
                           .from = message.from(),
                           .nodes = message.nodes(),
                           .provision_ms = PeriodOfGroup(message.max_node_provision_milliseconds()),
                           .error = message.error()};
  switch (message.result()) {
    case v1::FleetIncrease::GRANTED:
      increase.result = IncreaseOutcome::Result::kGranted;
      break;
    case v1::FleetIncrease::CHANGED:
      increase.result = IncreaseOutcome::Result::kRefused;
      break;
    case v1::FleetIncrease::FAILED:
      increase.result = IncreaseOutcome::Result::kFailed;
      break;
    default:
      fields.Keep(NoSuchValue("result", static_cast<int>(message.result())));
  }
  if (!fields.status().ok()) return fields.status();
  return increase;
}

absl::StatusOr<FleetOutcomes> DecodeOutcomes(const v1::FleetOutcomes& message) {
  absl::Status status = CheckSize("increases", message.increases_size(), kMaxFleetGroups);
  if (status.ok()) status = CheckSize("given_up", message.given_up_size(), kMaxFleetMachines);
  if (status.ok()) status = CheckSize("removals", message.removals_size(), kMaxFleetMachines);
  if (status.ok()) status = CheckSize("taken_back", message.taken_back_size(), kMaxFleetGroups);
  if (!status.ok()) return status;
  FleetOutcomes outcomes;
  outcomes.tainting_failed = message.tainting_failed();
  absl::flat_hash_set<absl::string_view> groups;
  for (int i = 0; i < message.increases_size(); ++i) {
    absl::StatusOr<IncreaseOutcome> increase = DecodeIncrease(message.increases(i));
    if (increase.ok() && !groups.insert(message.increases(i).node_group()).second) {
      increase =
          Refused(absl::StrCat("node_group ", Quoted(message.increases(i).node_group()), " is named twice"));
    }
    if (!increase.ok()) return Annotate(increase.status(), absl::StrCat("increases[", i, "]"));
    outcomes.increases.push_back(*std::move(increase));
  }
  for (int i = 0; i < message.given_up_size(); ++i) {
    status = CheckMachineId(message.given_up(i));
    if (!status.ok()) return Annotate(status, absl::StrCat("given_up[", i, "]"));
    outcomes.given_up.push_back(message.given_up(i));
  }
  for (int i = 0; i < message.removals_size(); ++i) {
    absl::StatusOr<RemovalOutcome> removal = DecodeRemoval(message.removals(i));
    if (!removal.ok()) return Annotate(removal.status(), absl::StrCat("removals[", i, "]"));
    outcomes.removals.push_back(*std::move(removal));
  }
  for (int i = 0; i < message.taken_back_size(); ++i) {
    Fields fields;
    fields.Name("node_group", message.taken_back(i).node_group());
    fields.Range("nodes", message.taken_back(i).nodes(), 1, INT32_MAX);
    if (!fields.status().ok()) return Annotate(fields.status(), absl::StrCat("taken_back[", i, "]"));
    outcomes.taken_back.push_back({message.taken_back(i).node_group(), message.taken_back(i).nodes()});
  }
  return outcomes;
}

v1::GroupBackOff::Reason EncodeBackOffReason(BackOffReason reason) {
  switch (reason) {
    case BackOffReason::kTimeout:
      return v1::GroupBackOff::TIMEOUT;
    case BackOffReason::kApiError:
      return v1::GroupBackOff::API_ERROR;
    case BackOffReason::kOutOfResources:
      return v1::GroupBackOff::OUT_OF_RESOURCES;
    case BackOffReason::kCreationFailed:
      return v1::GroupBackOff::CREATION_FAILED;
  }
  return v1::GroupBackOff::REASON_UNSPECIFIED;
}

v1::FleetGroupView EncodeFleetGroup(const FleetGroupView& view) {
  v1::FleetGroupView message;
  const auto put = [](const std::vector<int32_t>& positions,
                      google::protobuf::RepeatedField<int32_t>* field) {
    field->Add(positions.begin(), positions.end());
  };
  message.set_node_group(view.name);
  put(view.started, message.mutable_started());
  put(view.not_started, message.mutable_not_started());
  put(view.lacking, message.mutable_lacking());
  message.set_starting(view.starting);
  message.set_coming(view.coming);
  message.set_failed(static_cast<int64_t>(view.failed.size()));
  message.set_late(static_cast<int64_t>(view.late.size()));
  message.set_lost(view.lost);
  message.set_not_begun(view.not_begun);
  message.set_unbegun(view.unbegun);
  message.set_live(view.live);
  put(view.delete_failed, message.mutable_delete_failed());
  put(view.delete_late, message.mutable_delete_late());
  message.set_take_back(view.take_back);
  if (view.back_off.has_value()) *message.mutable_back_off() = EncodeBackOff(*view.back_off);
  message.set_held(Printable(view.held, kMostBackOffText));
  return message;
}

}  // namespace

absl::StatusOr<FleetOptions> DecodeFleetOptions(const v1::FleetOptions& message) {
  Fields fields;
  fields.Range("max_node_provision_milliseconds", message.max_node_provision_milliseconds(), 1,
               kMaxFleetTimeMs);
  CheckPeriod("max_node_startup_milliseconds", message.max_node_startup_milliseconds(), &fields);
  fields.Range("initial_back_off_milliseconds", message.initial_back_off_milliseconds(), 1, kMaxFleetTimeMs);
  CheckPeriod("max_back_off_milliseconds", message.max_back_off_milliseconds(), &fields);
  fields.AtMost("initial_back_off_milliseconds", message.initial_back_off_milliseconds(),
                "max_back_off_milliseconds", message.max_back_off_milliseconds());
  CheckPeriod("back_off_reset_milliseconds", message.back_off_reset_milliseconds(), &fields);
  CheckPeriod("deletion_patience_milliseconds", message.deletion_patience_milliseconds(), &fields);
  fields.Keep(CheckNotNegative("max_deletions", message.max_deletions()));
  fields.Keep(CheckNotNegative("ok_unready_nodes", message.ok_unready_nodes()));
  fields.Range("max_unready_percent", message.max_unready_percent(), 0, 100);
  CheckPeriod("delay_after_add_milliseconds", message.delay_after_add_milliseconds(), &fields);
  CheckPeriod("delay_after_delete_milliseconds", message.delay_after_delete_milliseconds(), &fields);
  CheckPeriod("delay_after_failure_milliseconds", message.delay_after_failure_milliseconds(), &fields);
  if (!fields.status().ok()) return fields.status();
  FleetOptions options;
  options.provision_ms = message.max_node_provision_milliseconds();
  options.startup_ms = message.max_node_startup_milliseconds();
  options.back_off = {message.initial_back_off_milliseconds(), message.max_back_off_milliseconds(),
                      message.back_off_reset_milliseconds()};
  options.deletion_patience_ms = message.deletion_patience_milliseconds();
  options.max_deletions = message.max_deletions();
  options.ok_unready_nodes = message.ok_unready_nodes();
  options.max_unready_percent = message.max_unready_percent();
  options.after_add_ms = message.delay_after_add_milliseconds();
  options.after_delete_ms = message.delay_after_delete_milliseconds();
  options.after_failure_ms = message.delay_after_failure_milliseconds();
  return options;
}

absl::StatusOr<MachineState> DecodeMachineState(v1::FleetMachine::State state) {
  switch (state) {
    case v1::FleetMachine::STATE_UNSPECIFIED:
      return MachineState::kUnknown;
    case v1::FleetMachine::RUNNING:
      return MachineState::kRunning;
    case v1::FleetMachine::CREATING:
      return MachineState::kCreating;
    case v1::FleetMachine::DELETING:
      return MachineState::kDeleting;
    default:
      return NoSuchValue("state", static_cast<int>(state));
  }
}

absl::StatusOr<MachineFault> DecodeMachineFault(const v1::MachineFault& message) {
  Fields fields;
  CheckText("fault.code", message.code(), kMaxFaultBytes, &fields);
  CheckText("fault.message", message.message(), kMaxFaultBytes, &fields);
  if (!fields.status().ok()) return fields.status();
  return MachineFault{message.code(), message.message(), message.out_of_resources()};
}

absl::StatusOr<RemovalOutcome> DecodeRemoval(const v1::FleetRemoval& message) {
  Fields fields;
  fields.Name("node_group", message.node_group());
  if (!message.machine().empty()) {
    const absl::Status status = CheckMachineId(message.machine());
    if (!status.ok()) fields.Keep(Annotate(status, "machine"));
  }
  if (!fields.status().ok()) return fields.status();
  return RemovalOutcome{message.node_group(), message.machine()};
}

v1::GroupBackOff EncodeBackOff(const BackOff& back_off) {
  v1::GroupBackOff message;
  message.set_reason(EncodeBackOffReason(back_off.reason));
  message.set_text(Printable(back_off.text, kMostBackOffText));
  message.set_until_milliseconds(back_off.until_ms);
  return message;
}

v1::FleetFailure EncodeFailure(const FleetFailure& failure) {
  v1::FleetFailure message;
  message.set_node_group(failure.group);
  *message.mutable_back_off() = EncodeBackOff(failure.back_off);
  return message;
}

v1::FailedCreations EncodeFailedCreations(const FailedCreations& failed) {
  v1::FailedCreations message;
  message.set_node_group(failed.group);
  message.set_reason(EncodeBackOffReason(failed.reason));
  message.set_machines(failed.machines);
  return message;
}

absl::StatusOr<DecodedLook> DecodeLook(const v1::LookAtFleetRequest& request) {
  DecodedLook look;
  absl::Status status = CheckRange("now_milliseconds", request.now_milliseconds(), 1, kMaxFleetTimeMs);
  if (!status.ok()) return status;
  look.now_ms = request.now_milliseconds();
  absl::StatusOr<FleetOptions> options = DecodeFleetOptions(request.options());
  if (!options.ok()) return Annotate(options.status(), "options");
  look.options = *options;
  absl::StatusOr<FleetOutcomes> outcomes = DecodeOutcomes(request.outcomes());
  if (!outcomes.ok()) return Annotate(outcomes.status(), "outcomes");
  look.outcomes = *std::move(outcomes);
  if (!request.has_observation()) return look;
  absl::StatusOr<FleetObservation> observation = DecodeObservation(request.observation());
  if (!observation.ok()) return Annotate(observation.status(), "observation");
  look.observation = *std::move(observation);
  return look;
}

v1::LookAtFleetResponse EncodeFleetView(const FleetView& view) {
  v1::LookAtFleetResponse response;
  for (const FleetGroupView& group : view.groups) *response.add_groups() = EncodeFleetGroup(group);
  response.mutable_other_not_started()->Add(view.other_not_started.begin(), view.other_not_started.end());
  response.set_unhealthy(view.unhealthy);
  response.set_cools_down(view.cools_down);
  response.set_backs_off(view.backs_off);
  for (const FleetFailure& failure : view.failures) {
    *response.add_failures() = EncodeFailure(failure);
  }
  for (const FailedCreations& failed : view.failed_creations) {
    *response.add_failed_creations() = EncodeFailedCreations(failed);
  }
  return response;
}

}  // namespace loadline
