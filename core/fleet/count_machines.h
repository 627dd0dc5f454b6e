// How far each machine of a group is.
#ifndef LOADLINE_CORE_FLEET_COUNT_MACHINES_H_
#define LOADLINE_CORE_FLEET_COUNT_MACHINES_H_

#include <cstdint>

#include "core/fleet/fleet.h"
#include "core/fleet/fleet_state.h"

namespace loadline {

// Counts each machine once, of nodes that leave none. `state` has followed the machines; what the nodes of
// the group come to offer is learned here.
FleetGroupView CountMachines(const FleetGroup& group, const FleetOptions& options, int64_t now_ms,
                             FleetState* state);

// Whether a node has registered a short time ago and is not ready yet, or lacks devices of its group.
bool IsStarting(const FleetNode& node, const std::vector<uint64_t>& devices, int64_t startup_ms,
                int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_FLEET_COUNT_MACHINES_H_
