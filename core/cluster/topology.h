// Which nodes share a value of a label.
#ifndef LOADLINE_CORE_CLUSTER_TOPOLOGY_H_
#define LOADLINE_CORE_CLUSTER_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace loadline {

// Position of a node in a snapshot, in name order for those that were there from the start.
enum class NodeIndex : int32_t {};
constexpr size_t IndexOf(NodeIndex node) { return static_cast<size_t>(node); }

// The values of one topology key, numbered densely from 0. A value keeps its number when its last node goes.
class TopologyKey {
 public:
  static constexpr int32_t kNone = -1;

  explicit TopologyKey(std::string key) : key_(std::move(key)) {}

  const std::string& key() const { return key_; }
  // The number of the node's value, or kNone: it lacks the label, or is not there.
  int32_t domain(NodeIndex node) const {
    return IndexOf(node) < domains_.size() ? domains_[IndexOf(node)] : kNone;
  }
  int32_t domain_end() const { return static_cast<int32_t>(nodes_.size()); }
  // Nodes with that value, in no order that means anything.
  std::span<const NodeIndex> nodes(int32_t domain) const { return nodes_[static_cast<size_t>(domain)]; }

  // `value`: of the label, nullptr where it is absent.
  void Add(NodeIndex node, const std::string* value);
  void Remove(NodeIndex node);

 private:
  std::string key_;
  std::vector<int32_t> domains_;               // by node
  std::vector<int32_t> positions_;             // by node: where it stands in nodes_ of its domain
  std::vector<std::vector<NodeIndex>> nodes_;  // by domain
  absl::flat_hash_map<std::string, int32_t> domains_by_value_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_TOPOLOGY_H_
