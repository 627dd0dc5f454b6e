// The nodes and places that moves under way reserve, which no other decision uses.
#ifndef LOADLINE_CORE_REPLACE_MOVE_HOLDS_H_
#define LOADLINE_CORE_REPLACE_MOVE_HOLDS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/drain/drain_question.h"
#include "core/grow/loop_facts.h"

namespace loadline {

// A pod that has yet to move, and the node that it moves to.
struct ReservedPlace {
  Slot from{-1};
  int32_t position = 0;  // in ClusterState::pods() of its node
  Slot to{-1};
  bool ordered = false;  // its move still waits for nodes: nobody else plans this pod
};

// The nodes and places that moves in progress reserve.
struct MoveHolds {
  StrongVector<GroupIndex, int64_t> on_the_way;  // nodes that come for moves
  std::vector<ReplacedNode> replaced;
  std::vector<Slot> takes_pods;
  std::vector<ReservedPlace> reserved;
};

// Returns what these moves reserve. Cost: O(groups + pods of the moves).
MoveHolds HoldsOf(const LoopFacts& facts, std::span<const MoveUnderWay> moves);

// Nodes that come for moves are nobody else's: they count as there, not as on their way.
void HoldNodesOnTheWay(const MoveHolds& holds, CountsOfGroups* counts);
// Puts pods where they will be, beside where they are.
void PlaceReserved(const ClusterState& cluster, const MoveHolds& holds, Snapshot* snapshot);
// Tells the drain planner. Pods of moves that still wait hold their places as placeholders.
void HoldInDrains(const MoveHolds& holds, DrainProblem* drain);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_MOVE_HOLDS_H_
