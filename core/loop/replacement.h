// Carries out moves of core/consolidate: nodes are ordered, checked when they are ready, and old ones go.
#ifndef LOADLINE_CORE_LOOP_REPLACEMENT_H_
#define LOADLINE_CORE_LOOP_REPLACEMENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidator.h"
#include "core/loop/loop_growth.h"
#include "core/loop/plan_loop.h"

namespace loadline {

// Follows the load, goes on with the moves of the last loop, and sets LoopPlan::replacement. A move goes on
// with its drains when all of its nodes have come and are ready, if all pods of its old nodes then have their
// places under all filters, may move, and the move still saves what the policy asks for. It ends when nodes
// do not come in time, when it fails that check, when its drains take too long, or when a node that its pods
// have yet to move to is gone. What was bought for it goes when it is empty, and nodes that are not begun are
// taken back. A new node that has not gone after `node_wait_ms` is as any other empty node. Without the
// decision all moves are forgotten, and what came is as any other node. Cost: O(nodes) with moves; O(nodes +
// pods) when a move is checked.
void FollowMoves(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan);

// Ends moves that stand still, once drains are planned: after a minute none of their drains has begun, and
// one cannot, as where pods have come to its node since. Others may begin then. Cost: O(nodes) with moves.
void EndMovesHeldUp(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan);

// Looks for moves where the cluster is at rest: none is carried out, nothing grows, comes or goes, and it is
// within a window. The first wave begins, as far as it keeps to the limits; groups grow for it. `drain`: the
// question of this loop. Cost: that of Consolidator::Plan().
void BeginMoves(const LoopProblem& problem, const CountsOfGroups& counts, const DrainProblem& drain,
                Consolidator* consolidator, Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan);

// What a loop goes out from, and what it remembers.
// `after_add_ms`: for how long no node goes after a group has grown. For so long old and new nodes are both
// paid for, or for as long as in the last move.
void UseRememberedMoves(const LoopMemory& memory, int64_t after_add_ms, int64_t now_ms,
                        LoopReplacement* replacement);
void NoteMoves(const LoopPlan& plan, LoopMemory* memory);

// When moves that are carried out, nodes that rest, a load that stands still, or windows may change the
// answer of a loop although nothing else does: calls `note` with each such time, in milliseconds.
void NoteTimesOfMoves(const ReplacementPolicy& policy, const LoopMemory& memory, int64_t now_ms,
                      const std::function<void(int64_t)>& note);

// Growth for a move that the cloud refused: the move ends in the next loop.
void NoteRefusedGrowth(const OpenAction& action, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_REPLACEMENT_H_
