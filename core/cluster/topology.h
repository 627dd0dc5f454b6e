// Which nodes share a value of a label.
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
#include "core/cluster/journal.h"

namespace loadline {

// Position of a node in a snapshot, in name order for those that were there from the start.
enum class NodeIndex : int32_t {};
constexpr size_t IndexOf(NodeIndex node) { return static_cast<size_t>(node); }

// The values of one topology key, numbered densely from 0. A value keeps its number when its last node goes.
// Adding and removing a node cost O(1).
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
  size_t node_count(int32_t domain) const { return domains_[static_cast<size_t>(domain)].nodes; }

  // Calls visit(NodeIndex) for the nodes of a domain, in no order that means anything.
  template <typename Visit>
  void ForEachNode(int32_t domain, Visit visit) const {
    for (int32_t i = domains_[static_cast<size_t>(domain)].first; i != kNone;
         i = nodes_[static_cast<size_t>(i)].next) {
      visit(NodeIndex{i});
    }
  }

  // `value`: of the label, nullptr where it is absent.
  void Add(NodeIndex node, const std::string* value);
  void Remove(NodeIndex node);

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

  std::string key_;
  std::vector<Node> nodes_;
  std::vector<Domain> domains_;
  absl::flat_hash_map<std::string, int32_t> domains_by_value_;
  Journal<NodeIndex> changed_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_TOPOLOGY_H_
