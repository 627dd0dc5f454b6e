// Tells which nodes are being deleted.
#ifndef LOADLINE_CORE_DRAIN_BEING_DELETED_H_
#define LOADLINE_CORE_DRAIN_BEING_DELETED_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/drain/drain_state.h"

namespace loadline {

// The slot of the node that an entry of a state means. A UID that is empty, in the entry or at the node, is
// not known and does not tell two nodes of one name apart. nullopt: the node is gone.
std::optional<Slot> FindDeletingNode(const ClusterState& cluster, const DeletingNode& node);

// The slots of all of them that are there, each once and in name order.
std::vector<Slot> RememberedDeleting(const ClusterState& cluster, std::span<const DeletingNode> remembered);

// All nodes that are being deleted, each once and in name order: those that a state remembers, and those that
// only a taint of less than five minutes tells of. Cost: O(nodes).
std::vector<Slot> NodesBeingDeleted(const ClusterState& cluster, std::span<const DeletingNode> remembered,
                                    int64_t now_s);

// Returns whether another pod takes the place of one that leaves its node, and waits for a node: not of those
// that end with their node (of DaemonSets, mirror pods) or give way.
bool IsReplaced(const PodShape& shape, const ClusterObjects& objects);

// Returns whether a pod on a node that is being deleted needs another node: it is replaced, has not finished,
// and is not terminating.
bool NeedsAnotherNode(const PodShape& shape, const ClusterObjects& objects);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_BEING_DELETED_H_
