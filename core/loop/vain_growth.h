// Growth that did not help: nodes have come for pods, and do not take them.
#ifndef LOADLINE_CORE_LOOP_VAIN_GROWTH_H_
#define LOADLINE_CORE_LOOP_VAIN_GROWTH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/fleet/back_off.h"
#include "core/loop/loop_memory.h"
#include "core/loop/plan_loop.h"

namespace loadline {

// A group that does not grow for some of the pods that wait.
struct VainGrowth {
  int32_t group = 0;  // position
  size_t pods = 0;    // position in LoopProblem::pending
  Slot node{-1};      // that came for such pods and refuses them; -1: it is gone
  int64_t until_ms = 0;
  std::string reason;  // why it refuses them; empty where it is gone
};
// Returns the same as a sentence for people.
std::string TextOf(const VainGrowth& vain, const LoopProblem& problem, int64_t now_ms);

// Judges what groups have grown by for pods that still wait, and takes out of `problem` that a group grows
// again for pods that its new nodes refuse: until what the group's new nodes will be has changed, the node
// that refused them has, or a time is over that doubles with each further time, from back_off.initial_ms to
// kMostVainMs. Pods that have changed are other pods.
//
// A node refuses a pod where it does not fit, neither as the node is nor without pods that do not belong to
// it: what other pods have taken room from was no growth in vain.
//
// Returns what is held, by group and pods. Fills in LoopProblem::pending_shapes. Errors: none; a judgement
// for which the work does not suffice is left to the next loop. Cost: O(purchases that pods wait for * pods
// of their newest nodes).
std::vector<VainGrowth> HoldVainGrowth(const BackOffOptions& back_off, int64_t now_ms, Snapshot* snapshot,
                                       WorkBudget* budget, LoopProblem* problem, LoopMemory* memory);

// Takes note of what groups grow by for which pods.
void NoteGrowthForPods(const LoopProblem& problem, const LoopPlan& plan, int64_t now_ms, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_VAIN_GROWTH_H_
