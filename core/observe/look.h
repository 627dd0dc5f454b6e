// One look at the machines of all node groups.
#ifndef LOADLINE_CORE_OBSERVE_LOOK_H_
#define LOADLINE_CORE_OBSERVE_LOOK_H_

#include <cstdint>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Takes note of how actions ended, then of what the cloud and the cluster show, and returns the state of the
// machines. `observation` may be null after actions: their outcomes alone are taken note of.
//
// Inputs: names of groups and ids of machines are unique, amounts are not negative, and times are below 2^52.
// Result: see FleetView; `state` is the input of the next look.
// Cost:   O(machines log machines). The same everywhere; pure but for `state`.
FleetView LookAtFleet(const FleetObservation* observation, const FleetOutcomes& outcomes,
                      const FleetOptions& options, int64_t now_ms, FleetState* state);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_LOOK_H_
