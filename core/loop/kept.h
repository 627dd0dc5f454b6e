// The state of sizes and slack between loops, in the memory of the loop.
#ifndef LOADLINE_CORE_LOOP_KEPT_H_
#define LOADLINE_CORE_LOOP_KEPT_H_

#include "core/loop/loop_memory.h"
#include "core/loop/plan_loop.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// Takes note of what a plan leaves for the next one; `slack` has planned it.
void NoteKept(const LoopProblem& problem, const LoopPlan& plan, const SlackPlanner& slack,
              LoopMemory* memory);

// A planner that keeps nothing yet takes over the slack that an earlier process kept.
void UseKeptSlack(const LoopMemory& memory, const LoopDecisions& decisions, SlackPlanner* slack);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_KEPT_H_
