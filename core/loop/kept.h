// The state of sizes and slack between loops, in the memory of the loop.
#ifndef LOADLINE_CORE_LOOP_KEPT_H_
#define LOADLINE_CORE_LOOP_KEPT_H_

#include <span>

#include "core/grow/loop_problem.h"
#include "core/observe/loop_memory.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// Takes note of what a plan leaves for the next one; `slack` has planned it; nullptr: slack is left to
// somebody else.
void NoteKept(NodeGroupSpan groups, std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
              const SlackPlanner* slack, LoopMemory* memory);

// A planner that keeps nothing yet takes over the slack that an earlier process kept.
void UseKeptSlack(const LoopMemory& memory, const LoopDecisions& decisions, SlackPlanner* slack);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_KEPT_H_
