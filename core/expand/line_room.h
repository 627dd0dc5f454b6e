// The load line as further columns of room: what pods count as by their limits, and what nodes may hold.
#ifndef LOADLINE_CORE_EXPAND_LINE_ROOM_H_
#define LOADLINE_CORE_EXPAND_LINE_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/expand/room.h"

namespace loadline {

// Adds columns for the load line. Pods that count as more than nodes of different size have, such as pods
// without a limit, count as something else on each node: nodes on which all pods count as the same share a
// column, others have columns of their own, in which the rest of the nodes is without bound.
class LineRoom {
 public:
  // `snapshot`, `options` and `pods` outlive the object. The options have a load line.
  LineRoom(Snapshot* snapshot, const FitOptions* options, const std::vector<PendingPods>* pods);

  struct Columns {
    std::unique_ptr<RoomColumns> columns;  // nullptr: the budget has not the memory
    std::unique_ptr<ReservedMemory> memory;
  };
  // `base` with a column per resource of the line for nodes of this shape alone.
  Columns ForNode(const RoomColumns& base, const NodeShape& node, WorkBudget* budget) const;
  // Appends to `free` what the line leaves of a node of that shape.
  void AddFree(NodeIndex node, std::vector<int64_t>* free) const;

  // Columns for nodes of all these shapes. Of one resource there are at most kMostColumns; where nodes then
  // share one on which pods count as different amounts, they count as the most (`relaxed`: the least) of
  // them.
  static constexpr size_t kMostColumns = 8;
  struct Shared : Columns {
    // By shape of a node, then by resource: its column among the further ones.
    std::vector<std::vector<size_t>> column_of;
    size_t further = 0;
  };
  Shared ForNodes(const RoomColumns& base, const std::vector<const NodeShape*>& nodes, bool relaxed,
                  WorkBudget* budget) const;
  // Likewise for the node shape at this position.
  void AddFree(const Shared& shared, size_t shape, NodeIndex node, std::vector<int64_t>* free) const;

 private:
  size_t resources() const { return line_.lines.size(); }
  int64_t FreeOn(NodeIndex node, size_t resource) const;
  int64_t Counted(size_t pods, size_t resource, int64_t allocatable) const {
    return CountOnNode(line_.sums.max_limit_ratio, limits_[pods * resources() + resource], allocatable)
        .amount;
  }
  int64_t AllocatableOf(const NodeShape& node, size_t resource) const {
    return node.allocatable.Get(line_.sums.resources[resource].id);
  }
  std::vector<std::vector<int64_t>> GroupSizes(const std::vector<const NodeShape*>& nodes,
                                               size_t resource) const;

  Snapshot& snapshot_;
  const LoadLine& line_;
  const std::shared_ptr<const LimitSums> sums_;
  std::vector<PodLimit> limits_;  // pods * resources + resource
  size_t pods_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_LINE_ROOM_H_
