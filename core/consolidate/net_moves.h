// Moves as the search made them, put together to what remains of them.
#ifndef LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_
#define LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
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
  // Nodes of the cluster that stay in the place of new nodes of their groups, see WithoutSwap(); these new
  // nodes; and where pods of the former would have moved.
  std::vector<NodeIndex> stay, spared, vacated;
  std::set<size_t> after;  // moves that come before, by number
  double saves = 0;
  double disturbance = 0;
  int64_t disrupted = 0;
  bool done = false;

  // Returns the node that the move removes if it does nothing else and is not done.
  std::optional<NodeIndex> OnlyRemoved() const {
    const bool only = remove.size() == 1 && add.empty() && further.empty() && !done;
    return only ? std::optional(remove.front()) : std::nullopt;
  }
};

// A move that takes off what another one brought, or pods where it put them, is one with it; so are moves
// that wait for each other. Those that were merged into others are empty and done. Cost: O(moves * log).
std::vector<NetMove> NetMovesOf(const TrialCluster& trial_cluster, const std::vector<MadeMove>& made);

// Returns an order of moves, by number, in which those that only remove a node are behind those that add
// nodes of its group, which may use it instead; otherwise as given.
std::vector<size_t> AddingFirst(const TrialCluster& trial_cluster, const std::vector<NetMove>& moves,
                                std::vector<size_t> order);

// Returns the nodes that other moves remove without any new node, and which are still there; none if `net`
// adds no node.
std::vector<NodeIndex> RemovedAlone(const std::vector<NetMove>& moves, const NetMove& net);

// Returns the pairs of a node that is removed and a new one of its group that costs no less, those first that
// share the most pods. `others`: nodes that other moves remove, and no more; of these only those have a pair
// that have room for all pods of the new node. Cost: O(movers + (removed + others) * added).
std::vector<std::pair<NodeIndex, NodeIndex>> EqualNodes(const TrialCluster& trial_cluster,
                                                        const NetMove& move,
                                                        const std::vector<NodeIndex>& others);
// Returns the move in which the first node of such a pair stays with its pods, and the second one is not
// added. Pods that were to move to the second one have no place yet.
NetMove WithoutSwap(const TrialCluster& trial_cluster, const std::pair<NodeIndex, NodeIndex>& pair,
                    NetMove move);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_NET_MOVES_H_
