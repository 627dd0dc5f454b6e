// Carries out the placements of one move as the search found them.
#ifndef LOADLINE_CORE_CONSOLIDATE_PLACE_AS_FOUND_H_
#define LOADLINE_CORE_CONSOLIDATE_PLACE_AS_FOUND_H_

#include <map>

#include "core/base/strong_vector.h"
#include "core/consolidate/net_moves.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// Places the pods of a move in the snapshot where the search put them; pods whose place was spared because
// equal nodes are not swapped, on any node of the move. Fills in `places` of these pods. False: a pod has no
// place, and the snapshot is half changed. `copies`: of the new nodes of the move, as they are in the
// snapshot. Cost: O(pods * rounds) questions; pods that do not fit at first are tried again once others are
// there.
bool PlaceAsFound(const NetMove& net, const std::map<NodeIndex, NodeIndex>& copies,
                  TrialCluster* trial_cluster, StrongVector<MoverIndex, NodeIndex>* places);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_PLACE_AS_FOUND_H_
