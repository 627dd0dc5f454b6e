// The actions of a loop, which a client carries out in their order and reports the outcome of.
#ifndef LOADLINE_CORE_LOOP_LOOP_ACTIONS_H_
#define LOADLINE_CORE_LOOP_LOOP_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/observe/fleet.h"
#include "core/observe/loop_findings.h"
#include "core/observe/loop_memory.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// An action that the client is to carry out.
struct LoopAction {
  enum class Kind {
    kDeleteMachines,  // that are no nodes
    kTakeBack,        // nodes that the cloud has not begun to make in time
    kSwap,            // nodes that it has not begun to make, if all groups have grown as planned
    kGiveBack,        // a node whose removal was abandoned
    kGrow,
    kRemove,         // a node that the plan removes
    kSoftTaint,      // a node that may go, so that schedulers spare it
    kTakeSoftTaint,  // off a node that stays
  };
  int64_t id = 0;
  Kind kind = Kind::kGrow;
  std::optional<GroupIndex> group;  // nullopt: the action is one of a node
  // The number of nodes of kTakeBack, kSwap and kGrow, if the target is still `target`.
  int64_t nodes = 0;
  int64_t target = 0;
  std::vector<int32_t> machines;  // of kDeleteMachines: positions in CloudGroup::machines
  bool late = false;              // of kDeleteMachines: they did not register in time; else they have failed
  Slot slot{-1};                  // of kGiveBack, kRemove, kSoftTaint and kTakeSoftTaint
  int64_t since_s = 0;            // of kSoftTaint: since when the node is not needed
  // The wave of kRemove: nodes of one wave are tainted together. Where one cannot be, all of them are given
  // back, and those of later waves do not begin: the API server fails, or somebody else is at work. Empty
  // nodes are first.
  int32_t wave = 0;
};

// Returns all actions of the plan of a loop but for taints of groups that are sized, which the plan lists
// itself: machines that are given up, in the order of the groups; nodes that are given back; growth, and what
// is taken back for it; nodes that start to go, unless the fleet cools down; and soft taints of others, where
// drains are planned. Takes note of it in `memory` before it is done: a client that keeps these first leaves
// a record for the next process whatever happens. Without options.acts nothing is done.
std::vector<LoopAction> ActionsOf(const LoopObservation& seen, const LoopFindings& findings,
                                  const LoopPlan& plan, const ClusterState& cluster,
                                  const ObserveOptions& options, int64_t now_ms, LoopMemory* memory);

// Growth that has waited for further pods for as long as it may waits no longer, though the pods that began
// the batch may be gone and others come in their place for ever.
void BeginBatch(const LoopMemory& memory, int64_t now_ms, GrowthBatch* batch);
// Takes note of whether a plan waits.
void NoteBatch(const LoopPlan& plan, int64_t now_ms, LoopMemory* memory);

// Returns whether any timer runs now.
bool TimersRun(const LoopObservation& seen, const LoopFindings& findings, std::span<const LoopSizing> sized,
               const LoopPlan& plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_LOOP_ACTIONS_H_
