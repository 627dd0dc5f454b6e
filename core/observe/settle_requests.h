// Decides which requests for nodes were fulfilled, and which have failed.
#ifndef LOADLINE_CORE_OBSERVE_SETTLE_REQUESTS_H_
#define LOADLINE_CORE_OBSERVE_SETTLE_REQUESTS_H_

#include <cstdint>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Ends the request of a group whose machines are counted: it has come true, or did not in its time, or the
// cloud has taken it back. In the latter cases the group backs off. A group that shrinks may have a lower
// target because of us.
void SettleRequest(const FleetGroup& group, const FleetGroupView& counted, const FleetOptions& options,
                   int64_t now_ms, GroupMemory* memory, FleetView* view);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_SETTLE_REQUESTS_H_
