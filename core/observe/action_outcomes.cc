#include "core/observe/action_outcomes.h"

#include <algorithm>
#include <utility>

#include "core/observe/fleet_state.h"

namespace loadline {
namespace {

using Result = ActionOutcome::Result;

void TakeIncreaseOutcome(const OpenAction& action, const ActionOutcome& outcome, LoopMemory* memory,
                         FleetOutcomes* taken) {
  IncreaseOutcome increase;
  increase.group = action.group;
  increase.from = action.from;
  increase.nodes = action.nodes;
  increase.provision_ms = action.provision_ms;
  increase.at_ms = action.at_ms;
  switch (outcome.result) {
    case Result::kDone:
      increase.result = IncreaseOutcome::Result::kGranted;
      if (action.for_pods) memory->grown_for_pods_ms = action.at_ms;
      break;
    case Result::kChanged:
      increase.result = IncreaseOutcome::Result::kRefused;
      NoteRefusedGrowth(action, memory);
      break;
    case Result::kFailed:
    case Result::kUnknown:
      increase.result = IncreaseOutcome::Result::kFailed;
      increase.error = outcome.error;
      if (outcome.result == Result::kFailed) NoteRefusedGrowth(action, memory);
      break;
  }
  taken->increases.push_back(std::move(increase));
}

// Another process has asked for nodes, and exited before the result was known.
void TakeUnreportedIncrease(const OpenAction& action, const LoopObservation& seen, LoopMemory* memory,
                            FleetOutcomes* taken) {
  if (!seen.first) return;
  const auto group = std::find_if(seen.groups.begin(), seen.groups.end(),
                                  [&](const CloudGroup& of) { return of.name == action.group; });
  if (group == seen.groups.end()) return;
  // Nobody knows it of a group that cannot be read, and it must not back off for that.
  const bool grown = !group->problem.empty() || group->target >= action.from + action.nodes;
  TakeIncreaseOutcome(action,
                      {action.id, grown ? Result::kDone : Result::kUnknown,
                       "another process has asked for nodes, and ended before it told of an answer"},
                      memory, taken);
}

// Nodes that were taken back are waited for no more. A group that takes none back is not asked again at once.
void TakeSwapOutcome(const OpenAction& action, const ActionOutcome& outcome, LoopMemory* memory,
                     FleetOutcomes* taken) {
  if (outcome.result == Result::kDone) {
    taken->taken_back.push_back({action.group, action.nodes});
  } else if (memory->swap_refused_ms.size() < kMostSwapRefusals) {
    memory->swap_refused_ms[FleetKey(action.group)] = action.at_ms;
  }
}

// The cloud has said that it deletes none of them.
void ForgetGivenUp(const OpenAction& action, LoopMemory* memory) {
  for (const uint64_t key : action.machines) {
    if (const auto found = memory->fleet.machines.find(key); found != memory->fleet.machines.end()) {
      found->second.given_up_ms.reset();
    }
  }
}

}  // namespace

void NoteRefusedGrowth(const OpenAction& action, LoopMemory* memory) {
  for (MoveUnderWay& move : memory->moves) {
    const bool ordered = move.phase == MoveUnderWay::Phase::kOrdered && move.at_ms == action.at_ms;
    for (const MoveUnderWay::Order& order : move.orders) {
      if (ordered && order.group == action.group) move.at_ms = 0;  // it has waited for long enough
    }
  }
}

FleetOutcomes TakeActionOutcomes(const LoopOutcomes& outcomes, const LoopObservation& seen,
                                 LoopMemory* memory) {
  FleetOutcomes taken;
  taken.removals = outcomes.removals;
  taken.tainting_failed = outcomes.tainting_failed;
  for (const ActionOutcome& outcome : outcomes.actions) {
    const auto open = std::find_if(memory->open.begin(), memory->open.end(),
                                   [&](const OpenAction& action) { return action.id == outcome.id; });
    if (open == memory->open.end()) continue;
    if (open->kind == OpenAction::Kind::kGrow) {
      TakeIncreaseOutcome(*open, outcome, memory, &taken);
    } else if (open->kind == OpenAction::Kind::kSwap) {
      TakeSwapOutcome(*open, outcome, memory, &taken);
    } else if (outcome.result == Result::kFailed || outcome.result == Result::kChanged) {
      ForgetGivenUp(*open, memory);
    }
    memory->open.erase(open);
  }
  for (const OpenAction& action : memory->open) {
    if (action.kind == OpenAction::Kind::kGrow) {
      TakeUnreportedIncrease(action, seen, memory, &taken);
    } else if (action.kind == OpenAction::Kind::kDeleteMachines && !seen.first) {
      ForgetGivenUp(action, memory);
    }
  }
  memory->open.clear();
  return taken;
}

}  // namespace loadline
