#include "core/cluster/topology.h"

namespace loadline {

void TopologyKey::Add(NodeIndex node, const std::string* value) {
  const size_t i = IndexOf(node);
  if (i >= nodes_.size()) nodes_.resize(i + 1);
  if (value == nullptr) return;
  const auto [found, is_new] = domains_by_value_.try_emplace(*value, domain_end());
  if (is_new) domains_.emplace_back();
  Domain& domain = domains_[static_cast<size_t>(found->second)];
  nodes_[i] = {found->second, kNone, domain.first};
  if (domain.first != kNone) nodes_[static_cast<size_t>(domain.first)].previous = static_cast<int32_t>(i);
  domain.first = static_cast<int32_t>(i);
  ++domain.nodes;
  changed_.Record(node, 2 * nodes_.size());
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
