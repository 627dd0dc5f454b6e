// Carries out moves of core/consolidate: nodes are ordered, checked when they are ready, and old ones go.
#ifndef LOADLINE_CORE_REPLACE_REPLACEMENT_H_
#define LOADLINE_CORE_REPLACE_REPLACEMENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidator.h"
#include "core/grow/growth_ledger.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Returns how long a node is left alone after so many moves were given up.
int64_t RestAfter(const ReplacementPolicy& policy, const GivenUpMoves& moves);

// Follows the load, continues the moves of the last loop, and sets all of `plan` but what begins. The drains
// of a move start when all of its new nodes are ready, if all pods of its old nodes then have their places
// under all filters and may move, and if the move still saves what the policy asks for. A move ends when its
// nodes are not ready in time, when it fails that check, when its drains make no progress for too long, or
// when a node that its pods have yet to move to is gone. Nodes that were bought for a move that ended are
// removed when they are empty, and not-begun nodes are taken back. After `node_wait_ms` such a node counts as
// any other empty node. If the decision is switched off, all moves are forgotten, and their new nodes count
// as any other. Cost: O(nodes) with moves; O(nodes + pods) when a move is checked.
void FollowMoves(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget, GrowthLedger* ledger,
                 ReplacementPlan* plan);

// Ends moves that make no progress; call it once drains are planned. Such a move has begun no drain for a
// minute, and one of its drains cannot begin, for example because new pods run on its node. Other moves may
// begin then.
// Cost: O(nodes) with moves.
void EndStuckMoves(const LoopProblem& problem, const DrainPlan& drains, GrowthLedger* ledger,
                   ReplacementPlan* plan);

// Looks for moves if none is carried out, the state of the cluster is certain, and the time is within a
// window. A move uses only nodes and groups that are at rest, see busy.h, whatever happens elsewhere. Begins
// the first wave, as far as the limits allow, and grows groups for it. While other nodes are added or
// removed, nothing begins during a delay after that. Sets the bill if the whole cluster is at rest. `drain`:
// the question of this loop. `consolidator`: the planner that remembers failed attempts; nullptr: none does.
// Takes half of the budget. Cost: that of FindBusyObjects(), MarkWanted() and Consolidator::Plan().
void BeginMoves(const LoopProblem& problem, const DrainProblem& drain, Consolidator* consolidator,
                Snapshot* snapshot, WorkBudget* budget, GrowthLedger* ledger, LoopPlan* plan);

// UseRememberedMoves() sets what a loop starts from, and NoteMoves() what it remembers. `after_add_ms`: the
// time after the growth of a group in which no node is removed. Old and new nodes are both paid for during
// this time, or for as long as in the last move.
void UseRememberedMoves(const LoopMemory& memory, int64_t after_add_ms, int64_t now_ms,
                        LoopReplacement* replacement);
void NoteMoves(const LoopPlan& plan, LoopMemory* memory);

// Calls `note` with each time, in milliseconds, at which the answer of a loop may change although nothing
// else does: because of moves that are carried out, nodes that rest, a load that does not change, or windows.
void NoteTimesOfMoves(const ReplacementPolicy& policy, const LoopMemory& memory, int64_t now_ms,
                      const std::function<void(int64_t)>& note);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_REPLACEMENT_H_
