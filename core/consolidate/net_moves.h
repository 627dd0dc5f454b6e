// Moves as the search made them, put together to what remains of them.
#ifndef LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_
#define LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "core/consolidate/trial.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// A move without what came to nothing.
struct NetMove {
  std::vector<NodeIndex> remove;  // nodes of the cluster
  std::vector<NodeIndex> add;     // as the trial cluster knows them
  // The groups of further nodes, without which pods have no place where a scheduler spreads them.
  std::vector<GroupIndex> further;
  std::vector<MoverIndex> movers;  // largest first
  std::set<size_t> after;          // moves that come before, by number
  double saves = 0;
  double disturbance = 0;
  int64_t disrupted = 0;
  bool done = false;
};

// A move that takes off what another one brought, or pods where it put them, is one with it; so are moves
// that wait for each other. Those that were merged into others are empty and done. Cost: O(moves * log).
std::vector<NetMove> NetMovesOf(const TrialCluster& trial_cluster, const std::vector<MadeMove>& made);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_
