// The reasons for which no group grows, or no node is removed.
#ifndef LOADLINE_CORE_FLEET_CLUSTER_HEALTH_H_
#define LOADLINE_CORE_FLEET_CLUSTER_HEALTH_H_

#include <cstdint>
#include <string>

#include "core/fleet/fleet.h"
#include "core/fleet/fleet_state.h"

namespace loadline {

// Returns why no group grows, as Cluster Autoscaler decides it: if many nodes are not ready, more nodes help
// nobody. Empty: groups may grow.
std::string WhyUnhealthy(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms);

// Remembers groups whose target is higher than at the last look: somebody let them grow.
void NoteGrowth(const FleetObservation& observation, int64_t now_ms, FleetState* state);

// Returns whether no node is removed for now, since a group has grown, a node was removed or tainting has
// failed.
bool CoolsDown(const FleetState& state, const FleetOptions& options, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_FLEET_CLUSTER_HEALTH_H_
