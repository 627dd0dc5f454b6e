// Measures for how long machines have no node, and groups fewer machines than their target.
#ifndef LOADLINE_CORE_OBSERVE_FOLLOW_MACHINES_H_
#define LOADLINE_CORE_OBSERVE_FOLLOW_MACHINES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// The number of codes of faults that one look counts apart: for one group, and for all. Chosen so that the
// report of a look stays small against the answer of a loop, which may have 4 MiB.
inline constexpr size_t kMostFaultCodes = 64;
inline constexpr size_t kMostFaultCodesOfAll = 1'000;

// Brings the memory of all machines and groups up to date before they are counted: what is not listed any
// more is forgotten, but for failures. Groups with new faults back off, as `view` says. Returns what is known
// of each machine, by group and position. Cost: O(machines log machines) where they changed, else
// O(machines) look-ups.
std::vector<std::vector<MachineMemory>> FollowMachines(const FleetObservation& observation,
                                                       const FleetOptions& options, int64_t now_ms,
                                                       FleetState* state, FleetView* view);

// Returns whether a machine is being deleted: the cloud says so, or was asked to a short time ago. The list
// of the cloud may be old.
bool IsBeingDeleted(const FleetMachine& machine, const MachineMemory& memory, const FleetOptions& options,
                    int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_FOLLOW_MACHINES_H_
