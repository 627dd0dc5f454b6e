// The check of a move when its nodes are ready.
#ifndef LOADLINE_CORE_REPLACE_MOVE_CHECK_H_
#define LOADLINE_CORE_REPLACE_MOVE_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// The nodes of a move that are there.
struct MoveNodes {
  std::vector<Slot> remove;
  std::vector<Slot> targets;  // as in MoveUnderWay::Place
};

// Why it cannot; nullopt: it can, and all its pods have places in move->places. Pods that came to its old
// nodes since go to the first of its targets that takes them. The snapshot is as before when it returns.
std::optional<std::string> CheckMove(const LoopProblem& problem, const MoveNodes& nodes,
                                     double saving_lasts_hours, Snapshot* snapshot, WorkBudget* budget,
                                     MoveUnderWay* move);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_MOVE_CHECK_H_
