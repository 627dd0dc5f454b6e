// Places the pods of a move as a scheduler does.
#ifndef LOADLINE_CORE_CONSOLIDATE_AS_SCHEDULED_H_
#define LOADLINE_CORE_CONSOLIDATE_AS_SCHEDULED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// The number of nodes that a move may get beyond those of its packing, for pods that a scheduler would leave
// without a place. Chosen: each costs another search for all pods of the move, and a move that needs more is
// better made of other nodes.
inline constexpr size_t kMostFurtherNodes = 3;

// A node that would help where a pod has no place.
struct FurtherNode {
  absl::FunctionRef<bool(GroupIndex)> may_come;  // a node of this group
  std::optional<GroupIndex> group;  // the cheapest of those that take the pod; nullopt: none does
};

// Places movers on the snapshot where kube-scheduler puts them by default: each on the node, of those that
// take it and do not leave, that SharesLeft chooses. Pods that fit nowhere at first may fit once others are
// there. Nobody knows in which order evicted pods come back, so that they have to fit in each of several
// orders: 4 in a large cluster, up to 32 in a small one. Pods that depend on others have to fit in as many
// orders more, in which the old nodes leave one after the other, as where a budget lets one pod go at a time:
// pods that still run count on their nodes, so that an evicted pod returns to its zone.
//
// False: in one of these some pod has no place, or the budget ended; the snapshot is as before. Else the
// places of the order in which they are numbered hold, and are in `places`, by position in `movers`.
// `leaves`: by node; those beyond its end stay. `further`, nullptr for none, gets the group that takes the
// first pod without a place, once the pods before it are placed. The kinds are prepared. Cost: O(nodes * log
// nodes) and for each order and mover that of SharesLeft::Take(); for `further` a new node of each group in
// addition.
bool PlaceAsScheduled(TrialCluster* trial_cluster, std::span<const MoverIndex> movers,
                      const std::vector<bool>& leaves, std::vector<NodeIndex>* places, FurtherNode* further);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_AS_SCHEDULED_H_
