// Limits on the number of nodes that a scale-up may add.
#ifndef LOADLINE_CORE_EXPAND_NODE_LIMITS_H_
#define LOADLINE_CORE_EXPAND_NODE_LIMITS_H_

#include <cstdint>
#include <optional>
#include <span>

#include "core/cluster/node_group.h"

namespace loadline {

// Nodes that may be added, >= 0; nullopt: as many as anybody wants.
using NodeLimit = std::optional<int64_t>;

// A limit as Cluster Autoscaler writes it: 0 = no limit, negative = nothing may be added.
NodeLimit ReadNodeLimit(int64_t limit);

// Returns what the maximum of the whole cluster leaves; `max_nodes_total` is written as ReadNodeLimit() reads
// it.
NodeLimit ClusterNodeLimit(int64_t max_nodes_total, int64_t current_nodes);

// Returns the room of a group up to its maximum, together with that of the groups similar to it; one that is
// over its maximum takes nothing away from the others.
int64_t GroupNodeLimit(const NodeGroup& group, std::span<const NodeGroup> similar);

// The one of two limits that holds.
NodeLimit SmallerLimit(NodeLimit a, NodeLimit b);

// Returns what is left of a limit when nodes were added.
NodeLimit LimitLeft(NodeLimit limit, int64_t added);

// One source of limits: nodes to be added, and seconds that an estimate may take; nullopt: no limit.
struct NodeThreshold {
  NodeLimit max_nodes;
  std::optional<double> max_seconds;
};

// Gives out permissions to add nodes. Source: estimator/threshold_based_limiter.go of Cluster Autoscaler.
class NodeLimiter {
 public:
  NodeLimiter() = default;
  explicit NodeLimiter(std::span<const NodeThreshold> thresholds);

  // Permits up to `wanted` (>= 0) nodes more, and none after `elapsed_seconds` beyond the time limit.
  // Returns how many.
  int64_t Grant(int64_t wanted, double elapsed_seconds = 0);
  // Returns the number of nodes that Grant() would permit of `wanted`.
  int64_t Grantable(int64_t wanted, double elapsed_seconds = 0) const;

 private:
  NodeLimit left_;
  std::optional<double> max_seconds_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_NODE_LIMITS_H_
