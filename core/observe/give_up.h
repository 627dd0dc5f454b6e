// Chooses the machines without a node that are deleted.
#ifndef LOADLINE_CORE_OBSERVE_GIVE_UP_H_
#define LOADLINE_CORE_OBSERVE_GIVE_UP_H_

#include <vector>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Says in `views`, one per group, which machines that cannot be created or did not register in time are
// deleted, and which nodes that the cloud has not begun to make are taken back: down to the minimum of their
// group, and not more machines of all groups together than options.max_deletions. Machines that were
// inherited may have nodes by other ids: they go only where other machines of their group have nodes.
void GiveUpMachines(const std::vector<FleetGroup>& groups, const FleetOptions& options,
                    const FleetState& state, std::vector<FleetGroupView>* views);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_GIVE_UP_H_
