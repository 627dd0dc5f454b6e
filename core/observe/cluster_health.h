// The reasons for which no group grows, or no node is removed.
#ifndef LOADLINE_CORE_OBSERVE_CLUSTER_HEALTH_H_
#define LOADLINE_CORE_OBSERVE_CLUSTER_HEALTH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Returns why no group grows, as Cluster Autoscaler decides it: if many nodes are not ready, more nodes help
// nobody. Empty: groups may grow.
std::string WhyUnhealthy(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms);

// Remembers groups whose target is higher than at the last look: somebody let them grow.
void NoteGrowth(const FleetObservation& observation, const FleetOptions& options, int64_t now_ms,
                FleetState* state);
// Remembers that a group grew, or that a node of it went: with the group where delays hold by group, unless
// nothing is remembered of it (nullptr); else for all.
void NoteGrown(const FleetOptions& options, int64_t at_ms, GroupMemory* memory, FleetState* state);
void NoteDeleted(const FleetOptions& options, int64_t at_ms, GroupMemory* memory, FleetState* state);

// Returns whether no node is removed for now, since a group has grown, a node was removed or tainting has
// failed.
bool CoolsDown(const FleetState& state, const FleetOptions& options, int64_t now_ms);
// Returns until when no node of the group is removed, where delays hold by group; nullopt: none keeps them.
std::optional<int64_t> CoolsDownUntil(const GroupMemory& memory, const FleetOptions& options, int64_t now_ms);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_CLUSTER_HEALTH_H_
