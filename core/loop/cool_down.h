// Nodes of groups that cool down by themselves stay: --scale-down-delay-type-local of Cluster Autoscaler.
#ifndef LOADLINE_CORE_LOOP_COOL_DOWN_H_
#define LOADLINE_CORE_LOOP_COOL_DOWN_H_

#include "core/drain/drain_question.h"

namespace loadline {

// Keeps the nodes of each group with NodeGroup::stays_until_s, also those that are replaced or that a size
// removes: their timers go on, and last beyond that time.
void HoldNodesThatCoolDown(DrainProblem* drain);

// Says of these nodes when they can go: `drain` is the question of the plan, and `groups` are those of the
// loop, with the delays that the question no longer has.
void TellEndOfDelays(NodeGroupSpan groups, const TimerOptions& timers, const DrainProblem& drain,
                     DrainPlan* plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_COOL_DOWN_H_
