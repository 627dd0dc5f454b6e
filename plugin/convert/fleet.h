// Decodes reports about machines to core types, and encodes the answers.
#ifndef LOADLINE_PLUGIN_CONVERT_FLEET_H_
#define LOADLINE_PLUGIN_CONVERT_FLEET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/observe/fleet.h"
#include "loadline/v1/fleet.pb.h"

namespace loadline {

// Bounds of one question, chosen. Longer texts of clouds are cut; a longer id of a machine is replaced by a
// short name.
inline constexpr int kMaxFleetGroups = 1'000;
inline constexpr int kMaxFleetMachines = 100'000;  // of all groups, nodes of none, and entries of outcomes
inline constexpr size_t kMaxMachineIdBytes = 1024;
inline constexpr size_t kMaxFaultBytes = 1024;
inline constexpr size_t kMaxFleetErrorBytes = 4096;
inline constexpr int64_t kMaxFleetTimeMs = int64_t{1} << 50;

// Decode parts of what a loop hears about the cloud. Errors: kInvalidArgument  names the field
absl::StatusOr<FleetOptions> DecodeFleetOptions(const v1::FleetOptions& message);
absl::StatusOr<MachineState> DecodeMachineState(v1::CloudMachine::State state);
MachineFault DecodeMachineFault(const v1::MachineFault& message);
absl::StatusOr<RemovalOutcome> DecodeRemoval(const v1::FleetRemoval& message);
v1::GroupBackOff EncodeBackOff(const BackOff& back_off);
v1::FleetFailure EncodeFailure(const FleetFailure& failure);
v1::FailedCreations EncodeFailedCreations(const FailedCreations& failed);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_FLEET_H_
