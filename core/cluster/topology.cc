#include "core/cluster/topology.h"

#include <algorithm>

namespace loadline {

int32_t TopologyKey::DomainOf(const std::string& value) {
  const auto [found, is_new] = domains_by_value_.try_emplace(value, domain_end());
  if (is_new) domains_.emplace_back();
  return found->second;
}

void TopologyKey::Add(NodeIndex node, int32_t number) {
  const size_t i = IndexOf(node);
  if (i >= nodes_.size()) nodes_.resize(i + 1);
  Domain& domain = domains_[At(number)];
  LOADLINE_CHECK(nodes_[i].domain == kNone) << "node " << i << " is in two domains of " << key_;
  nodes_[i] = {number, kNone, domain.first};
  if (domain.first != kNone) nodes_[static_cast<size_t>(domain.first)].previous = static_cast<int32_t>(i);
  domain.first = static_cast<int32_t>(i);
  ++domain.nodes;
  changed_.Record(node, 2 * nodes_.size());
}

void TopologyKey::AddDistinct(int32_t nodes) {
  LOADLINE_CHECK(domains_.empty() && nodes_.empty()) << key_ << " has nodes already";
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

void TopologyKey::CheckConsistent() const {
  size_t listed = 0;
  for (int32_t domain = 0; domain < domain_end(); ++domain) {
    size_t nodes = 0;
    int32_t previous = kNone;
    for (int32_t i = domains_[At(domain)].first; i != kNone; i = nodes_[static_cast<size_t>(i)].next) {
      const Node& node = nodes_[CheckedIndex("node", static_cast<size_t>(i), nodes_.size())];
      LOADLINE_CHECK(node.domain == domain && node.previous == previous) << "node " << i << " of " << key_;
      previous = i;
      ++nodes;
    }
    LOADLINE_CHECK(nodes == node_count(domain)) << "domain " << domain << " of " << key_;
    listed += nodes;
  }
  const auto in_domain =
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.domain != kNone; });
  LOADLINE_CHECK(static_cast<size_t>(in_domain) == listed) << listed << " nodes of " << key_ << " are listed";
  LOADLINE_CHECK(domains_by_value_.size() + static_cast<size_t>(unindexed_) == domains_.size()) << key_;
}

}  // namespace loadline
