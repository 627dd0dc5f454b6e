// Decides which nodes of the plan are drained now, and which wait.
#ifndef LOADLINE_CORE_DRAIN_HOLD_BACK_H_
#define LOADLINE_CORE_DRAIN_HOLD_BACK_H_

#include <span>
#include <vector>

#include "core/drain/deletion.h"
#include "core/drain/drain_call.h"
#include "core/drain/drain_state.h"
#include "core/drain/planned_node.h"
#include "core/drain/trial_follower.h"

namespace loadline {

// Applies SelectDeletions() to the plan, beside the deletions that are under way. Then all nodes wait while
// groups grow, and so do those that are the room which pods on the way need, if the nodes that these count on
// never arrive: with DrainProblem::on_the_way. All nodes of an atomic group wait with one of them. Positions
// in the answer are those in `planned`. Cost: O(nodes), and a search among the nodes of the plan for pods on
// the way.
Deletions DecideStarts(std::span<const PlannedNode> planned, const DrainState& state, DrainCall* call,
                       TrialFollower* follower);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_HOLD_BACK_H_
