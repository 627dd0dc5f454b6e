// The nodes that have to stay: the minimum of each node group, and that of the cluster.
#ifndef LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_
#define LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/numeric/int128.h"
#include "core/base/cpu_memory.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_offer.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// --cores-total, --memory-total, --gpu-total and a number of nodes: what all nodes together offer at least.
struct ClusterMinimum {
  CpuMemory amounts;
  int64_t nodes = 0;
  GpuCounts gpus = {};
};

// Counts nodes that go against the minima. A group shrinks while both its target and the number of its nodes,
// each without those that are being deleted or were taken, are above its minimum.
class SizeLimits {
 public:
  // `groups` outlives the object.
  SizeLimits(NodeGroupSpan groups, const ClusterMinimum& minimum);

  // A node of the cluster.
  void AddNode(std::optional<GroupIndex> group, const NodeOffer& node, bool being_deleted);

  // Takes a node away: kNone, or why not (NotAutoscaled, NodeGroupMinSizeReached,
  // MinimalResourceLimitExceeded), and then nothing happened. Cost: O(log types of GPUs).
  NodeReason Take(std::optional<GroupIndex> group, const NodeOffer& node);
  // Takes it back.
  void GiveBack(GroupIndex group, const NodeOffer& node);

  // Returns whether so many nodes, and those that are being deleted, are all that a group has: as many as its
  // target, or as there are and are on their way.
  bool AreWholeGroup(GroupIndex group, int64_t nodes) const;

 private:
  // The entry of the node's GPUs; nullptr: they have no minimum.
  absl::int128* SpareGpus(const NodeOffer& node);

  struct Count {
    int64_t registered = 0;
    int64_t deleting = 0;
    int64_t taken = 0;
  };

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

#endif  // LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_
