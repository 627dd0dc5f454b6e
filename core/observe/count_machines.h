// How far each machine of a group is.
#ifndef LOADLINE_CORE_OBSERVE_COUNT_MACHINES_H_
#define LOADLINE_CORE_OBSERVE_COUNT_MACHINES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Counts each machine once, of nodes that leave none. `known` is what FollowMachines() says of the machines
// of the group; what its nodes come to offer is learned here. Cost: O(machines).
FleetGroupView CountMachines(const FleetGroup& group, std::span<const MachineMemory> known,
                             const FleetOptions& options, int64_t now_ms, FleetState* state);

// Returns whether a node has registered a short time ago and is not ready yet, or lacks devices of its group.
bool IsStarting(const FleetNode& node, const std::vector<uint64_t>& devices, int64_t startup_ms,
                int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_COUNT_MACHINES_H_
