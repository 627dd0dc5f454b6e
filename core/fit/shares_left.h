// Where kube-scheduler's default score puts pods, one after the other.
#ifndef LOADLINE_CORE_FIT_SHARES_LEFT_H_
#define LOADLINE_CORE_FIT_SHARES_LEFT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/shapes.h"
#include "core/cluster/snapshot.h"
#include "core/fit/pod_fit.h"

namespace loadline {

// What is left of CPU and memory on each node, side by side, so that shares of many are computed at once.
// LeastAllocated, the default of kube-scheduler, takes the node that a pod leaves most of. Holds its own
// amounts: what is placed otherwise in the snapshot is not seen.
class SharesLeft {
 public:
  // Nodes that take no pods, or leave, are not among them. `leaves`: by node; those beyond its end stay.
  SharesLeft(const Snapshot& snapshot, const std::vector<bool>& leaves);

  // The first of those that a pod leaves most of, if it fits there, and takes its amounts off; nullopt: it
  // fits nowhere. Cost: O(nodes), and the filters of few of them.
  std::optional<NodeIndex> Take(const PodShape& shape, PodFit* fit);

 private:
  static constexpr size_t kWidth = 64;

  struct Block {
    double cpu[kWidth] = {}, memory[kWidth] = {};          // free
    double per_cpu[kWidth] = {}, per_memory[kWidth] = {};  // 1 / allocatable; 0: nothing is
    std::vector<NodeIndex> nodes;
    double Left(size_t i, double of_cpu, double of_memory) const;
  };

  void Add(NodeIndex node, const NodeAmount& cpu, const NodeAmount& memory);

  std::vector<Block> blocks_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_SHARES_LEFT_H_
