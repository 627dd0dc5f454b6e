#include "core/cluster/topology.h"

namespace loadline {

int32_t TopologyKey::DomainOf(const std::string& value) {
  const auto [found, is_new] = domains_by_value_.try_emplace(value, domain_end());
  if (is_new) domains_.emplace_back();
  return found->second;
}

void TopologyKey::Add(NodeIndex node, int32_t number) {
  const size_t i = IndexOf(node);
  if (i >= nodes_.size()) nodes_.resize(i + 1);
  Domain& domain = domains_[static_cast<size_t>(number)];
  nodes_[i] = {number, kNone, domain.first};
  if (domain.first != kNone) nodes_[static_cast<size_t>(domain.first)].previous = static_cast<int32_t>(i);
  domain.first = static_cast<int32_t>(i);
  ++domain.nodes;
  changed_.Record(node, 2 * nodes_.size());
}

void TopologyKey::AddDistinct(int32_t nodes) {
  nodes_.resize(static_cast<size_t>(nodes));
  domains_.resize(nodes_.size());
  for (int32_t i = 0; i < nodes; ++i) {
    nodes_[static_cast<size_t>(i)].domain = i;
    domains_[static_cast<size_t>(i)] = {i, 1};
  }
  unindexed_ = nodes;
  changed_ = Journal<NodeIndex>(1);  // whoever reads it from now on has to look at all nodes
}

void TopologyKey::Remove(NodeIndex node) {
  if (domain(node) == kNone) return;
  const Node leaving = std::exchange(nodes_[IndexOf(node)], {});
  Domain& domain = domains_[static_cast<size_t>(leaving.domain)];
  if (leaving.previous == kNone) {
    domain.first = leaving.next;
  } else {
    nodes_[static_cast<size_t>(leaving.previous)].next = leaving.next;
  }
  if (leaving.next != kNone) nodes_[static_cast<size_t>(leaving.next)].previous = leaving.previous;
  --domain.nodes;
  changed_.Record(node, 2 * nodes_.size());
}

}  // namespace loadline
