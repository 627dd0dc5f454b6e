#include "core/cluster/topology.h"

namespace loadline {

void TopologyKey::Add(NodeIndex node, const std::string* value) {
  const size_t i = IndexOf(node);
  if (i >= domains_.size()) {
    domains_.resize(i + 1, kNone);
    positions_.resize(i + 1, 0);
  }
  if (value == nullptr) return;
  const auto [found, is_new] = domains_by_value_.try_emplace(*value, domain_end());
  if (is_new) nodes_.emplace_back();
  std::vector<NodeIndex>& nodes = nodes_[static_cast<size_t>(found->second)];
  domains_[i] = found->second;
  positions_[i] = static_cast<int32_t>(nodes.size());
  nodes.push_back(node);
}

void TopologyKey::Remove(NodeIndex node) {
  const int32_t domain = this->domain(node);
  if (domain == kNone) return;
  std::vector<NodeIndex>& nodes = nodes_[static_cast<size_t>(domain)];
  const int32_t position = positions_[IndexOf(node)];
  const NodeIndex last = nodes.back();
  nodes[static_cast<size_t>(position)] = last;
  positions_[IndexOf(last)] = position;
  nodes.pop_back();
  domains_[IndexOf(node)] = kNone;
}

}  // namespace loadline
