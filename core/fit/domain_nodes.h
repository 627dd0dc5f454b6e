// The nodes of each domain, as bits.
#ifndef LOADLINE_CORE_FIT_DOMAIN_NODES_H_
#define LOADLINE_CORE_FIT_DOMAIN_NODES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/cluster/topology.h"

namespace loadline {

// In place of a position: the node is not part of the order.
inline constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

// A set of nodes: bits by their position in some order, 64 to a word.
using NodeBits = std::vector<uint64_t>;

inline void SetBit(size_t position, bool value, NodeBits* bits) {
  const uint64_t bit = uint64_t{1} << (position % 64);
  uint64_t& word = (*bits)[position / 64];
  word = value ? word | bit : word & ~bit;
}

// Puts all nodes that share a value of a topology key into a set, or takes them out. A domain of more than a
// 64th of all nodes, such as a zone, is kept as a set; of others the nodes are walked. Not thread-safe.
class DomainNodes {
 public:
  // `topology` outlives the object.
  explicit DomainNodes(const TopologyKey* topology) : topology_(*topology) {}

  // Takes in nodes that came and went. `positions`: by node, the same as before for those that were there, or
  // kNowhere; it lives until the next call. Cost: O(nodes that came and went), and O(nodes) the first time.
  void CatchUp(std::span<const size_t> positions);

  // Sets the nodes of a domain, as of the last CatchUp(). `bits` has room for all nodes with a position.
  // Cost: O(the smaller of nodes of the domain and nodes / 64).
  void Set(int32_t domain, bool value, NodeBits* bits) const;
  // One node; of no effect where it has no position.
  void SetNode(NodeIndex node, bool value, NodeBits* bits) const;

  const TopologyKey& topology() const { return topology_; }
  std::span<const size_t> positions() const { return positions_; }
  size_t words() const { return (positions_.size() + 63) / 64; }

 private:
  void Move(NodeIndex node, int32_t domain);
  void Rebuild();
  void Build(int32_t domain);
  bool IsLarge(int32_t domain) const { return large_[static_cast<size_t>(domain)] != kSmall; }
  NodeBits& SetOf(int32_t domain) { return sets_[static_cast<size_t>(large_[static_cast<size_t>(domain)])]; }

  static constexpr int32_t kSmall = -1;
  const TopologyKey& topology_;
  std::span<const size_t> positions_;
  int64_t changed_ = -1;        // how far the journal of the topology was read
  std::vector<int32_t> kept_;   // by node: the domain whose set has it
  std::vector<int32_t> large_;  // by domain: the position of its set; kSmall: it has none
  std::vector<NodeBits> sets_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_DOMAIN_NODES_H_
