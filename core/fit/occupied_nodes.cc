#include "core/fit/occupied_nodes.h"

#include <algorithm>

namespace loadline {

void OccupiedNodes::CatchUp() {
  const TopologyKey& topology = counts_.topology();
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
  for (int32_t domain = 0; domain < counts_.topology().domain_end(); ++domain) {
    occupied_[static_cast<size_t>(domain)] = false;
    if (counts_.count(domain) > 0) SetDomain(domain);
  }
}

void OccupiedNodes::SetDomain(int32_t domain) {
  const bool occupied = counts_.count(domain) > 0;
  occupied_[static_cast<size_t>(domain)] = occupied;
  nodes_.Set(domain, occupied, &bits_);
}

}  // namespace loadline
