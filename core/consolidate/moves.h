// Turns the result of the search into moves to be followed one after the other.
#ifndef LOADLINE_CORE_CONSOLIDATE_MOVES_H_
#define LOADLINE_CORE_CONSOLIDATE_MOVES_H_

#include <vector>

#include "core/consolidate/trial.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// Puts moves in the order of what they save per disturbed pod, as far as none needs another before it. A pod
// that moved twice moves once; a node that came and went is no part of any. Each move is made again on the
// snapshot, which is as it was before the search, with all filters and with the limits of groups and cluster
// while old nodes and new ones are both there; one that cannot be made, or does not pay by itself, is left
// out. The snapshot is as before when the call returns. Cost: O(moves log moves + pods) placements.
std::vector<ConsolidationMove> OrderMoves(TrialCluster* trial_cluster, const std::vector<MadeMove>& made);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_MOVES_H_
