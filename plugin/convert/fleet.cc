#include "plugin/convert/fleet.h"

#include "absl/strings/str_cat.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/stated_group.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

void CheckPeriod(absl::string_view field, int64_t period_ms, Fields* fields) {
  fields->Range(field, period_ms, 0, kMaxFleetTimeMs);
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
  fields.Keep(CheckNotNegative("max_soft_taints", message.max_soft_taints()));  // see DecodeLoopFleet()
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
  options.delays_by_group = message.delays_by_group();
  return options;
}

absl::StatusOr<MachineState> DecodeMachineState(v1::CloudMachine::State state) {
  switch (state) {
    case v1::CloudMachine::STATE_UNSPECIFIED:
      return MachineState::kUnknown;
    case v1::CloudMachine::RUNNING:
      return MachineState::kRunning;
    case v1::CloudMachine::CREATING:
      return MachineState::kCreating;
    case v1::CloudMachine::DELETING:
      return MachineState::kDeleting;
    default:
      return NoSuchValue("state", static_cast<int>(state));
  }
}

MachineFault DecodeMachineFault(const v1::MachineFault& message) {
  return {Printable(message.code(), kMaxFaultBytes), Printable(message.message(), kMaxFaultBytes),
          message.out_of_resources()};
}

absl::StatusOr<RemovalOutcome> DecodeRemoval(const v1::FleetRemoval& message) {
  if (message.node_group().empty()) return Refused("node_group: is empty");
  const auto held = [](const std::string& id, const absl::Status& status) {
    return status.ok() ? id : StoredName(id);
  };
  return RemovalOutcome{held(message.node_group(), CheckGroupId(message.node_group())),
                        held(message.machine(), CheckName(message.machine(), kMaxMachineIdBytes))};
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

}  // namespace loadline
