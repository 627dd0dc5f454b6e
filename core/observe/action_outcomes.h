// How the actions of earlier loops ended.
#ifndef LOADLINE_CORE_OBSERVE_ACTION_OUTCOMES_H_
#define LOADLINE_CORE_OBSERVE_ACTION_OUTCOMES_H_

#include "core/observe/fleet.h"
#include "core/observe/loop_memory.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// How actions ended, as a look at the fleet takes note of them. What nobody tells of was not tried, unless
// another process was to do it: then the target of the group tells whether it has grown, and machines may
// have been deleted, which are not deleted again before the cloud has had its time.
FleetOutcomes TakeActionOutcomes(const LoopOutcomes& outcomes, const LoopObservation& seen,
                                 LoopMemory* memory);

// Notes that the cloud refused the growth for a move: the move ends in the next loop.
void NoteRefusedGrowth(const OpenAction& action, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_ACTION_OUTCOMES_H_
