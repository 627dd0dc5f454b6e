// Carries the timers of unneeded nodes from one process to the next.
#ifndef LOADLINE_CORE_LOOP_LOOP_TIMERS_H_
#define LOADLINE_CORE_LOOP_LOOP_TIMERS_H_

#include <cstdint>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/drain/timers.h"
#include "core/grow/loop_plan.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// Returns what is remembered of nodes that are there, in slot order. Times that lie in the future, or are
// older than `ttl_s`, say nothing.
std::vector<TimedNode> KnownTimers(const LoopMemory& memory, const ClusterState& cluster, int64_t now_s,
                                   int64_t ttl_s);

// Takes note of the nodes that a plan will remove, and of those behind budgets, where it was to say.
void NoteTimers(const LoopPlan& plan, const ClusterState& cluster, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_LOOP_TIMERS_H_
