// The free amounts of nodes, searched 64 nodes at a time.
#ifndef LOADLINE_CORE_CONSOLIDATE_NODE_ROOM_H_
#define LOADLINE_CORE_CONSOLIDATE_NODE_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/resource_names.h"
#include "core/base/strong_vector.h"
#include "core/cluster/snapshot.h"

namespace loadline {

// A row of free amounts per node: one column per resource, and a last one for pod slots. It mirrors a
// snapshot and learns by Read() which nodes changed. Not thread-safe.
class NodeRoom {
 public:
  // `snapshot` outlives the object. `pods`: the resource that counts pod slots; nullopt: no node has any.
  NodeRoom(const Snapshot& snapshot, std::vector<ResourceId> resources, std::optional<ResourceId> pods);

  size_t width() const { return resources_.size() + 1; }
  const std::vector<ResourceId>& resources() const { return resources_; }
  // Returns what the node has free now, as the snapshot says. Below 0 where its pods request more than it
  // offers.
  std::vector<int64_t> FreeOn(NodeIndex node) const;

  // Searches nodes in this order, which has each node of the snapshot once. Reads all of them again.
  void SetOrder(std::vector<NodeIndex> order);
  // Reads a node again. A new one is last in the order. Cost: O(width).
  void Read(NodeIndex node);
  // Nodes that are hidden have no room for anybody until SetOrder(). Cost: O(width).
  void Hide(NodeIndex node);
  // Forgets the last nodes, which are no longer in the snapshot, from this one on.
  void Forget(NodeIndex node_end);

  size_t end() const { return order_.size(); }
  NodeIndex at(size_t position) const { return order_[position]; }
  // The first position from `from` on whose node has room for one such pod; end(): none has. Cost:
  // O(nodes / 64 + nodes that are looked at).
  size_t Next(std::span<const int64_t> request, size_t from);

 private:
  bool HasRoom(size_t position, std::span<const int64_t> request) const;
  bool MayHave(size_t block, std::span<const int64_t> request) const;
  void Recompute(size_t block);
  void ReadInto(NodeIndex node, int64_t* row) const;

  const Snapshot& snapshot_;
  const std::vector<ResourceId> resources_;
  const std::optional<ResourceId> pods_;
  std::vector<NodeIndex> order_;
  StrongVector<NodeIndex, size_t> position_;
  StrongVector<NodeIndex, bool> hidden_;
  std::vector<int64_t> free_;  // by position, then by column
  std::vector<int64_t> most_;  // by block of 64 positions: at least what its freest node has
  std::vector<bool> changed_;  // by block: a node was read or forgotten since `most_` was exact
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_NODE_ROOM_H_
