// The rule for a node that is about to be removed, and still there: one for drains, moves, their checks and
// the simulator.
#ifndef LOADLINE_CORE_CLUSTER_LEAVING_H_
#define LOADLINE_CORE_CLUSTER_LEAVING_H_

#include <cstdint>
#include <span>

#include "core/cluster/snapshot.h"

namespace loadline {

// Takes a pod of this shape off a node, the one that came last. There is one. Cost: O(pods of the node).
void TakeOff(NodeIndex node, int32_t shape, Snapshot* snapshot);

// Makes a node leave: nothing may be placed on it, pods of `shapes` (one for each entry) are no longer there,
// and all others stay. Like a node with kToBeDeletedTaint in kube-scheduler it remains a counted domain
// of its hostname and zone, with the pods that stay, unless a spread constraint honors taints. Cost: O(shapes
// * pods of the node).
void Vacate(NodeIndex node, std::span<const int32_t> shapes, Snapshot* snapshot);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_LEAVING_H_
