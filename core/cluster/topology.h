// Tells which nodes share a value of a label.
#ifndef LOADLINE_CORE_CLUSTER_TOPOLOGY_H_
#define LOADLINE_CORE_CLUSTER_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/check.h"
#include "core/cluster/journal.h"

namespace loadline {

// Position of a node in a snapshot, in name order for those that were there from the start.
enum class NodeIndex : int32_t {};
constexpr size_t IndexOf(NodeIndex node) { return static_cast<size_t>(node); }

// The values of one topology key, numbered densely from 0. A value keeps its number when its last node is
// removed. Adding and removing a node cost O(1). Memory: O(nodes up to the last one that has a value).
class TopologyKey {
 public:
  static constexpr int32_t kNone = -1;

  explicit TopologyKey(std::string key) : key_(std::move(key)) {}

  const std::string& key() const { return key_; }
  // The number of the node's value, or kNone: it lacks the label, or is not there.
  int32_t domain(NodeIndex node) const {
    return IndexOf(node) < nodes_.size() ? nodes_[IndexOf(node)].domain : kNone;
  }
  int32_t domain_end() const { return static_cast<int32_t>(domains_.size()); }
  size_t node_count(int32_t domain) const { return domains_[At(domain)].nodes; }

  // Calls visit(NodeIndex) for the nodes of a domain, in no order that means anything.
  template <typename Visit>
  void ForEachNode(int32_t domain, Visit visit) const {
    for (int32_t i = domains_[At(domain)].first; i != kNone; i = nodes_[static_cast<size_t>(i)].next) {
      visit(NodeIndex{i});
    }
  }

  // The number of a value, a new one where it has none.
  int32_t DomainOf(const std::string& value);
  // Puts a node, which is in no domain, into one.
  void Add(NodeIndex node, int32_t domain);
  void Remove(NodeIndex node);

  // Gives each of the first `nodes` nodes a domain of its own with the number of the node: for a key without
  // nodes, of which each of them has another value. The values are taken in with Index(), before any other
  // node is added: to hash them costs more than all the rest, and most clusters never ask for them.
  void AddDistinct(int32_t nodes);
  // Returns the number of nodes that AddDistinct() added and that are not indexed yet.
  int32_t unindexed() const { return unindexed_; }
  // value_of(NodeIndex) gives the value of one of these nodes.
  template <typename ValueOf>
  void Index(ValueOf value_of) {
    domains_by_value_.reserve(static_cast<size_t>(unindexed_));
    for (int32_t i = 0; i < unindexed_; ++i) domains_by_value_.emplace(value_of(NodeIndex{i}), i);
    unindexed_ = 0;
  }

  // Checks that each node is in the list of its domain, and nowhere else. For tests. Cost: O(nodes +
  // domains).
  void CheckConsistent() const;

  // About its memory.
  int64_t bytes() const {
    constexpr size_t kValueBytes = 64;
    return static_cast<int64_t>(sizeof(*this) + nodes_.capacity() * sizeof(Node) +
                                domains_.capacity() * (sizeof(Domain) + kValueBytes));
  }

  // The journal of nodes that came or went. As Journal::Since().
  std::optional<std::span<const NodeIndex>> changed(int64_t since) const { return changed_.Since(since); }
  int64_t changed_end() const { return changed_.end(); }

 private:
  // A link in the list of a domain.
  struct Node {
    int32_t domain = kNone;
    int32_t previous = kNone;
    int32_t next = kNone;
  };
  struct Domain {
    int32_t first = kNone;
    size_t nodes = 0;
  };

  size_t At(int32_t domain) const {
    return CheckedIndex("domain", static_cast<size_t>(domain), domains_.size());
  }

  std::string key_;
  std::vector<Node> nodes_;
  std::vector<Domain> domains_;
  absl::flat_hash_map<std::string, int32_t> domains_by_value_;
  int32_t unindexed_ = 0;
  Journal<NodeIndex> changed_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_TOPOLOGY_H_
