// How many nodes a scale-up may add.
#ifndef LOADLINE_CORE_EXPAND_NODE_LIMITS_H_
#define LOADLINE_CORE_EXPAND_NODE_LIMITS_H_

#include <cstdint>
#include <span>

namespace loadline {

// Limits are written as Cluster Autoscaler writes them: 0 = no limit, negative = nothing may be added.
inline constexpr int64_t kNoLimit = 0;
inline constexpr int64_t kForbidden = -1;

// The size of a node group, in nodes.
struct GroupSize {
  int64_t max = 0;
  int64_t current = 0;
};

// What the maximum of the whole cluster leaves; `max_nodes_total` <= 0: there is none, but a negative one
// forbids. Result: > 0, kNoLimit or kForbidden.
int64_t ClusterNodeLimit(int64_t max_nodes_total, int64_t current_nodes);

// The room of a group together with that of the groups similar to it; one that is over its maximum takes
// nothing away from the others. Result: > 0 or kForbidden.
int64_t GroupNodeLimit(GroupSize group, std::span<const GroupSize> similar);

// The one of two limits that holds.
int64_t SmallerLimit(int64_t a, int64_t b);

// One source of limits: nodes to be added, and seconds that an estimate may take.
struct NodeThreshold {
  int64_t max_nodes = kNoLimit;
  double max_seconds = 0;
};

// Gives out permissions to add nodes. Source: estimator/threshold_based_limiter.go of Cluster Autoscaler.
class NodeLimiter {
 public:
  NodeLimiter() = default;
  explicit NodeLimiter(std::span<const NodeThreshold> thresholds);

  // Permits up to `wanted` (>= 0) nodes more, and none after `elapsed_seconds` beyond the time limit.
  // Returns how many.
  int64_t Grant(int64_t wanted, double elapsed_seconds = 0);
  // How many Grant() would permit of `wanted`.
  int64_t Grantable(int64_t wanted, double elapsed_seconds = 0) const;

 private:
  int64_t max_nodes_ = kNoLimit;
  double max_seconds_ = 0;
  int64_t granted_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_NODE_LIMITS_H_
