// The nodes that have to stay, with the reasons of drains.
#ifndef LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_
#define LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_

#include <cstdint>
#include <optional>

#include "core/cluster/minimum_sizes.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// Counts nodes that a plan removes against the minima; see MinimumSizes.
class SizeLimits {
 public:
  // `groups` outlives the object.
  SizeLimits(NodeGroupSpan groups, const ClusterMinimum& minimum) : sizes_(groups, minimum) {}

  // A node of the cluster.
  void AddNode(std::optional<GroupIndex> group, const NodeOffer& node, bool being_deleted) {
    sizes_.AddNode(group, node, being_deleted);
  }

  // Takes a node away: kNone, or why not (NotAutoscaled, NodeGroupMinSizeReached,
  // MinimalResourceLimitExceeded), and then nothing happened. Cost: O(log types of GPUs).
  NodeReason Take(std::optional<GroupIndex> group, const NodeOffer& node);
  // Takes it back.
  void GiveBack(GroupIndex group, const NodeOffer& node) { sizes_.Restore(group, node); }

  // Same contract as MinimumSizes::AreWholeGroup().
  bool AreWholeGroup(GroupIndex group, int64_t nodes) const { return sizes_.AreWholeGroup(group, nodes); }

 private:
  MinimumSizes sizes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_SIZE_LIMITS_H_
