#include "core/fit/occupied_nodes.h"

#include <algorithm>

namespace loadline {

void OccupiedNodes::CatchUp() {
  const TopologyKey& topology = counts_.topology();
  // A pod may have thousands of terms; most of them are about pods that are nowhere.
  if (bits_.empty() && counts_.total() == 0) return;
  bits_.resize(nodes_.words(), 0);
  occupied_.resize(static_cast<size_t>(topology.domain_end()), false);
  const auto moved = topology.changed(topology_changed_);
  const auto changed = counts_.changed(changed_);
  topology_changed_ = topology.changed_end();
  changed_ = counts_.changed_end();
  if (!moved.has_value() || !changed.has_value()) {
    Rebuild();
    return;
  }
  for (const int32_t domain : *changed) {
    // Most that changed have changed back.
    if (occupied_[static_cast<size_t>(domain)] != (counts_.count(domain) > 0)) SetDomain(domain);
  }
  for (const NodeIndex node : *moved) {
    const int32_t domain = topology.domain(node);
    nodes_.SetNode(node, domain != TopologyKey::kNone && counts_.count(domain) > 0, &bits_);
  }
}

void OccupiedNodes::Rebuild() {
  std::fill(bits_.begin(), bits_.end(), 0);
  const int32_t domains = counts_.topology().domain_end();
  for (int32_t domain = 0; domain < domains; ++domain) {
    occupied_[static_cast<size_t>(domain)] = counts_.count(domain) > 0;
  }
  // Many domains are small ones, whose nodes are walked.
  if (static_cast<size_t>(domains) > nodes_.words()) {
    RebuildByNode();
    return;
  }
  for (int32_t domain = 0; domain < domains; ++domain) {
    if (occupied_[static_cast<size_t>(domain)]) nodes_.Set(domain, true, &bits_);
  }
}

void OccupiedNodes::RebuildByNode() {
  const TopologyKey& topology = counts_.topology();
  const std::span<const size_t> positions = nodes_.positions();
  for (size_t i = 0; i < positions.size(); ++i) {
    const int32_t domain = topology.domain(NodeIndex{static_cast<int32_t>(i)});
    if (domain == TopologyKey::kNone || counts_.count(domain) == 0 || positions[i] == kNowhere) continue;
    bits_[positions[i] / 64] |= uint64_t{1} << (positions[i] % 64);
  }
}

void OccupiedNodes::SetDomain(int32_t domain) {
  const bool occupied = counts_.count(domain) > 0;
  occupied_[static_cast<size_t>(domain)] = occupied;
  nodes_.Set(domain, occupied, &bits_);
}

}  // namespace loadline
