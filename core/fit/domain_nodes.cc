#include "core/fit/domain_nodes.h"

#include <algorithm>

namespace loadline {

void DomainNodes::CatchUp(std::span<const size_t> positions) {
  const bool grown = positions.size() > positions_.size();
  positions_ = positions;
  if (topology_.domain_end() == 0) return;  // no node was ever in one
  if (changed_ == topology_.changed_end() && !grown) return;
  const auto changed = topology_.changed(changed_);
  changed_ = topology_.changed_end();
  kept_.resize(positions.size(), TopologyKey::kNone);
  large_.resize(static_cast<size_t>(topology_.domain_end()), kSmall);
  if (!changed.has_value()) {
    Rebuild();
    return;
  }
  for (NodeBits& bits : sets_) bits.resize(words(), 0);
  for (const NodeIndex node : *changed) Move(node, topology_.domain(node));
}

void DomainNodes::Move(NodeIndex node, int32_t domain) {
  // A node that was added and undone again may have no position.
  if (IndexOf(node) >= kept_.size()) return;
  int32_t& kept = kept_[IndexOf(node)];
  if (kept == domain) return;
  if (kept != TopologyKey::kNone) SetNode(node, false, &SetOf(kept));
  kept = TopologyKey::kNone;
  if (domain == TopologyKey::kNone) return;
  if (IsLarge(domain)) {
    SetNode(node, true, &SetOf(domain));
    kept = domain;
  } else if (topology_.node_count(domain) > words()) {
    Build(domain);
  }
}

void DomainNodes::Rebuild() {
  kept_.assign(positions_.size(), TopologyKey::kNone);
  large_.assign(static_cast<size_t>(topology_.domain_end()), kSmall);
  sets_.clear();
  for (int32_t domain = 0; domain < topology_.domain_end(); ++domain) {
    if (topology_.node_count(domain) > words()) Build(domain);
  }
}

void DomainNodes::Build(int32_t domain) {
  large_[static_cast<size_t>(domain)] = static_cast<int32_t>(sets_.size());
  NodeBits& bits = sets_.emplace_back(words(), 0);
  topology_.ForEachNode(domain, [&](NodeIndex node) {
    SetNode(node, true, &bits);
    kept_[IndexOf(node)] = domain;
  });
}

void DomainNodes::Set(int32_t domain, bool value, NodeBits* bits) const {
  if (!IsLarge(domain)) {
    topology_.ForEachNode(domain, [&](NodeIndex node) { SetNode(node, value, bits); });
    return;
  }
  const NodeBits& large = sets_[static_cast<size_t>(large_[static_cast<size_t>(domain)])];
  // If only some nodes have a position, `bits` ends before `large`, which is as long as if all had one.
  for (size_t i = 0; i < std::min(large.size(), bits->size()); ++i) {
    uint64_t& word = (*bits)[i];
    word = value ? word | large[i] : word & ~large[i];
  }
}

void DomainNodes::SetNode(NodeIndex node, bool value, NodeBits* bits) const {
  if (IndexOf(node) >= positions_.size() || positions_[IndexOf(node)] == kNowhere) return;
  SetBit(positions_[IndexOf(node)], value, bits);
}

}  // namespace loadline
