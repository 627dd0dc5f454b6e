// How the actions since the last look ended.
#ifndef LOADLINE_CORE_OBSERVE_OUTCOMES_H_
#define LOADLINE_CORE_OBSERVE_OUTCOMES_H_

#include <cstdint>

#include "core/observe/fleet.h"
#include "core/observe/fleet_state.h"

namespace loadline {

// Remembers what was asked for, what failed and what is gone. Groups that failed to grow are added to the
// failures of `view`.
void TakeOutcomes(const FleetOutcomes& outcomes, const FleetOptions& options, int64_t now_ms,
                  FleetState* state, FleetView* view);

// A group fails: it backs off, and `view` says so.
void FailGroup(const std::string& name, BackOffReason reason, absl::string_view text,
               const BackOffOptions& options, int64_t now_ms, GroupMemory* memory, FleetView* view);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_OUTCOMES_H_
