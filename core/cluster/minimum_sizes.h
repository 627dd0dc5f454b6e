// The nodes that have to stay: the minimum of each node group, and that of the cluster. One rule for drains
// and for moves.
#ifndef LOADLINE_CORE_CLUSTER_MINIMUM_SIZES_H_
#define LOADLINE_CORE_CLUSTER_MINIMUM_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/numeric/int128.h"
#include "core/base/cpu_memory.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_offer.h"

namespace loadline {

// --cores-total, --memory-total, --gpu-total and a number of nodes: what all nodes together offer at least.
struct ClusterMinimum {
  CpuMemory amounts;
  int64_t nodes = 0;
  GpuCounts gpus = {};
};

// The minimum that keeps a node; that of its group counts first.
enum class MinimumReached { kNone, kOfCluster, kOfGroup };

// Counts nodes that are removed against the minima. A group shrinks while both its target and the number of
// its nodes, each without those that are being deleted or were removed, are above its minimum.
class MinimumSizes {
 public:
  // `groups` outlives the object.
  MinimumSizes(NodeGroupSpan groups, const ClusterMinimum& minimum);

  // Adds a node of the cluster.
  void AddNode(std::optional<GroupIndex> group, const NodeOffer& node, bool being_deleted);

  // Returns the minimum that keeps a node, that of its group first. Cost: O(log types of GPUs).
  MinimumReached Reached(GroupIndex group, const NodeOffer& node) const;
  // Counts a node as removed, whatever the minima say.
  void Remove(GroupIndex group, const NodeOffer& node);
  // Counts a removed node as present again, or a new node that a plan adds to its group.
  void Restore(GroupIndex group, const NodeOffer& node);

  // Returns whether so many nodes, and those that are being deleted, are all that a group has: as many as its
  // target, or as there are and are on their way.
  bool AreWholeGroup(GroupIndex group, int64_t nodes) const;

 private:
  struct Count {
    int64_t registered = 0;
    int64_t deleting = 0;
    int64_t removed = 0;  // below 0 where a plan adds more than it removes
  };

  // Adds the amounts of a node, or takes them away.
  void Add(const NodeOffer& node, int sign);

  NodeGroupSpan groups_;
  ClusterMinimum minimum_;
  StrongVector<GroupIndex, Count> counts_;
  // Sums over the nodes that stay.
  absl::int128 cpu_ = 0;
  absl::int128 memory_ = 0;
  int64_t nodes_ = 0;
  // How many GPUs there are beyond the minimum of their type, below 0 where it is not met; of types with a
  // minimum only.
  absl::btree_map<std::string, absl::int128> spare_gpus_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_MINIMUM_SIZES_H_
