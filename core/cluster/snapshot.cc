#include "core/cluster/snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

std::string ToString(absl::string_view text) { return std::string(text.data(), text.size()); }

void UpdateFree(NodeAmount* amount) {
  const absl::int128 free = absl::int128(amount->allocatable) - amount->requested;
  amount->free = free < -kMaxAmount ? -kMaxAmount : static_cast<int64_t>(free);
}

std::string ClaimKey(absl::string_view namespace_name, absl::string_view name) {
  return absl::StrCat(namespace_name, "/", name);
}

}  // namespace

template <typename Shape>
int32_t Snapshot::Numbers<Shape>::Intern(const Shape& shape, bool copy) {
  std::vector<int32_t>& candidates = by_fingerprint_[shape.fingerprint];
  for (const int32_t id : candidates) {
    if (*(*this)[id] == shape) return id;
  }
  const int32_t id = size();
  candidates.push_back(id);
  shapes_.push_back(copy ? &owned_.emplace_back(shape) : &shape);
  return id;
}

Snapshot::Snapshot(const ClusterState& state, Source source)
    : state_(state), source_(source), width_(state.resource_names().size()) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<size_t>(state.node_count()));
  for (int32_t slot = 0; slot < state.slot_end(); ++slot) {
    if (state.Occupied(Slot{slot})) slots.push_back(Slot{slot});
  }
  std::sort(slots.begin(), slots.end(), [&](Slot a, Slot b) { return state.name(a) < state.name(b); });
  nodes_.reserve(slots.size());
  amounts_.reserve(slots.size() * width_);
  for (const Slot slot : slots) {
    const NodeIndex node{node_end()};
    Node& entry = nodes_.emplace_back();
    entry.shape = node_shapes_.Intern(state.node_shape(slot), follows());
    entry.slot = slot;
    entry.name = ToString(state.name(slot));
    entry.hostname = state.hostname(slot);
    amounts_.resize(amounts_.size() + width_);
    Join(node);
    AttachPodsOf(slot, node);
  }
}

void Snapshot::AttachPodsOf(Slot slot, NodeIndex node) {
  const NodePods& pods = state_.pods(slot);
  nodes_[IndexOf(node)].pods.reserve(static_cast<size_t>(state_.pod_count(slot)));
  for (size_t i = 0; i < pods.pods().size(); ++i) {
    if (state_.pod_shapes()[pods.pods()[i].shape].finished) continue;
    Attach(node, {ShapeOf(pods.pods()[i].shape), pods.name(i), pods.uid(i)});
  }
}

void Snapshot::Reload(std::span<const Slot> slots) {
  // The state may have given the numbers of its shapes to others.
  shape_of_state_.clear();
  // All leave before any comes: a name may have moved from slot to slot.
  std::vector<NodeIndex> stay(slots.size(), NodeIndex{-1});
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::optional<NodeIndex> node = FindSlot(slots[i]);
    if (!node.has_value()) continue;
    Node& entry = nodes_[IndexOf(*node)];
    while (!entry.pods.empty()) Detach(*node, entry.pods.size() - 1);
    entry.ghost = false;
    if (state_.Occupied(slots[i]) && state_.name(slots[i]) == entry.name &&
        state_.hostname(slots[i]) == entry.hostname && state_.node_shape(slots[i]) == node_shape(*node)) {
      stay[i] = *node;
    } else {
      Leave(*node);
    }
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot slot = slots[i];
    if (!state_.Occupied(slot)) continue;
    if (stay[i] == NodeIndex{-1}) {
      stay[i] = AddNode({ToString(state_.name(slot)), state_.node_shape(slot), state_.hostname(slot), slot});
    } else {
      RecordFreed(stay[i]);
    }
    AttachPodsOf(slot, stay[i]);
  }
}

std::optional<NodeIndex> Snapshot::FindSlot(Slot slot) const {
  const auto found = by_slot_.find(static_cast<int32_t>(slot));
  if (found == by_slot_.end()) return std::nullopt;
  return found->second;
}

NodeLabels Snapshot::labels(NodeIndex node) const {
  const Node& entry = nodes_[IndexOf(node)];
  return {&node_shapes_[entry.shape]->labels, entry.hostname.has_value() ? &*entry.hostname : nullptr,
          entry.name};
}

const NodeAmount& Snapshot::amount(NodeIndex node, ResourceId resource) const {
  static constexpr NodeAmount kNone;
  const size_t i = static_cast<size_t>(resource);
  return i < width_ ? amounts_[IndexOf(node) * width_ + i] : kNone;
}

int32_t Snapshot::InternShape(const PodShape& shape) {
  Widen(shape.requests);
  return Intern(shape, /*copy=*/true);
}

int32_t Snapshot::Intern(const PodShape& shape, bool copy) {
  const int32_t known = pod_shapes_.size();
  const int32_t id = pod_shapes_.Intern(shape, copy);
  if (id < known) return id;
  pods_of_.push_back(0);
  if (shape.rules != nullptr) anti_affinity_terms_.Add(*shape.rules);
  return id;
}

int32_t Snapshot::ShapeOf(int32_t state_shape) {
  const size_t i = static_cast<size_t>(state_shape);
  if (i >= shape_of_state_.size()) shape_of_state_.resize(std::max(i + 1, 2 * shape_of_state_.size()), -1);
  if (shape_of_state_[i] < 0) {
    const PodShape& shape = state_.pod_shapes()[state_shape];
    if (follows()) Widen(shape.requests);  // names may have been added since
    shape_of_state_[i] = Intern(shape, follows());
  }
  return shape_of_state_[i];
}

int32_t Snapshot::ClaimUsers(absl::string_view namespace_name, absl::string_view name) const {
  const auto found = claim_users_.find(ClaimKey(namespace_name, name));
  return found == claim_users_.end() ? 0 : found->second;
}

bool Snapshot::Commit() {
  if (forks_.empty()) return false;
  forks_.pop_back();
  if (forks_.empty()) log_.clear();
  return true;
}

bool Snapshot::Revert() {
  if (forks_.empty()) return false;
  const Mark mark = forks_.back();
  forks_.pop_back();
  while (log_.size() > mark.moves) {
    const Move move = log_.back();
    log_.pop_back();
    Undo(move);
  }
  texts_.resize(mark.texts);
  return true;
}

void Snapshot::Undo(const Move& move) {
  Node& node = nodes_[IndexOf(move.node)];
  switch (move.kind) {
    case Move::Kind::kPlace:
      Detach(move.node, node.pods.size() - 1);
      return;
    case Move::Kind::kRemove:
      // The pod that took its place goes back to the end.
      Attach(move.node, move.pod);
      std::swap(node.pods[move.position], node.pods.back());
      return;
    case Move::Kind::kAddNode:
      Leave(move.node);
      by_slot_.erase(static_cast<int32_t>(node.slot));
      nodes_.pop_back();
      amounts_.resize(amounts_.size() - width_);
      return;
    case Move::Kind::kRemoveNode:
      Join(move.node);
      return;
    case Move::Kind::kGhost:
      node.ghost = false;
      RecordFreed(move.node);
      return;
  }
}

void Snapshot::Log(Move move) {
  if (!forks_.empty()) log_.push_back(move);
}

absl::string_view Snapshot::Keep(absl::string_view text) {
  return text.empty() ? absl::string_view() : absl::string_view(texts_.emplace_back(ToString(text)));
}

void Snapshot::PlacePod(NodeIndex node, int32_t shape, absl::string_view name, absl::string_view uid) {
  Log({Move::Kind::kPlace, node});
  Attach(node, {shape, Keep(name), Keep(uid)});
}

void Snapshot::RemovePod(NodeIndex node, size_t position) {
  Log({Move::Kind::kRemove, node, position, nodes_[IndexOf(node)].pods[position]});
  Detach(node, position);
}

NodeIndex Snapshot::AddNode(NewNode node) {
  Widen(node.shape.allocatable);
  const NodeIndex index{node_end()};
  Node& entry = nodes_.emplace_back();
  entry.shape = node_shapes_.Intern(node.shape, /*copy=*/true);
  entry.slot = node.slot;
  entry.name = std::move(node.name);
  entry.hostname = std::move(node.hostname);
  amounts_.resize(amounts_.size() + width_);
  Join(index);
  Log({Move::Kind::kAddNode, index});
  return index;
}

void Snapshot::RemoveNode(NodeIndex node) {
  while (!nodes_[IndexOf(node)].pods.empty()) RemovePod(node, nodes_[IndexOf(node)].pods.size() - 1);
  Log({Move::Kind::kRemoveNode, node});
  Leave(node);
}

void Snapshot::MakeGhost(NodeIndex node) {
  if (nodes_[IndexOf(node)].ghost) return;
  Log({Move::Kind::kGhost, node});
  nodes_[IndexOf(node)].ghost = true;
}

// A node without pods is there from now on.
void Snapshot::Join(NodeIndex node) {
  Node& entry = nodes_[IndexOf(node)];
  entry.present = true;
  if (static_cast<int32_t>(entry.slot) >= 0) by_slot_[static_cast<int32_t>(entry.slot)] = node;
  for (const auto& [resource, allocatable] : node_shapes_[entry.shape]->allocatable) {
    NodeAmount& amount = amounts_[IndexOf(node) * width_ + static_cast<size_t>(resource)];
    amount.allocatable = allocatable;
    UpdateFree(&amount);
  }
  const NodeLabels labels = this->labels(node);
  for (const auto& [key, topology] : topologies_) topology->Add(node, labels.Find(key));
  for (DomainCounts* counts : all_counts_) counts->AddNode(node);
  RecordFreed(node);
}

// A node without pods is gone; its slot, name and shape stay behind for the way back.
void Snapshot::Leave(NodeIndex node) {
  Node& entry = nodes_[IndexOf(node)];
  for (DomainCounts* counts : all_counts_) counts->RemoveNode(node);
  for (const auto& [key, topology] : topologies_) topology->Remove(node);
  by_slot_.erase(static_cast<int32_t>(entry.slot));
  entry.present = false;
}

void Snapshot::Attach(NodeIndex node, const SnapshotPod& pod) {
  nodes_[IndexOf(node)].pods.push_back(pod);
  Count(node, pod, +1);
}

void Snapshot::Detach(NodeIndex node, size_t position) {
  std::vector<SnapshotPod>& pods = nodes_[IndexOf(node)].pods;
  const SnapshotPod pod = pods[position];
  pods[position] = pods.back();
  pods.pop_back();
  Count(node, pod, -1);
  RecordFreed(node);
}

void Snapshot::Count(NodeIndex node, const SnapshotPod& pod, int32_t sign) {
  const PodShape& shape = *pod_shapes_[pod.shape];
  NodeAmount* const row = amounts_.data() + IndexOf(node) * width_;
  for (const auto& [resource, request] : shape.requests) {
    NodeAmount& amount = row[static_cast<size_t>(resource)];
    amount.requested += absl::int128(request) * sign;
    UpdateFree(&amount);
  }
  pods_of_[static_cast<size_t>(pod.shape)] += sign;
  if (shape.rules != nullptr) CountRules(&nodes_[IndexOf(node)], shape, sign);
  if (all_counts_.empty()) return;
  for (DomainCounts* counts : CountsOf(pod.shape)) counts->Change(node, sign);
}

void Snapshot::CountRules(Node* node, const PodShape& shape, int32_t sign) {
  for (const HostPort& port : shape.rules->host_ports) {
    const auto at =
        std::lower_bound(node->ports.begin(), node->ports.end(), port,
                         [](const UsedPort& used, const HostPort& wanted) { return used.port < wanted; });
    if (at == node->ports.end() || at->port != port) {
      node->ports.insert(at, {port, sign});
    } else if ((at->pods += sign) == 0) {
      node->ports.erase(at);
    }
  }
  for (const PodVolume& volume : shape.rules->volumes) {
    if (volume.kind != VolumeKind::kClaim) continue;
    const std::string key = ClaimKey(shape.namespace_name, volume.name);
    if ((claim_users_[key] += sign) == 0) claim_users_.erase(key);
  }
}

// Makes room for resources that no node or pod had before.
void Snapshot::Widen(const ResourceAmounts& amounts) {
  size_t width = width_;
  for (const auto& [resource, amount] : amounts) width = std::max(width, static_cast<size_t>(resource) + 1);
  if (width == width_) return;
  std::vector<NodeAmount> wider(nodes_.size() * width);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    std::copy_n(amounts_.begin() + static_cast<std::ptrdiff_t>(node * width_), width_,
                wider.begin() + static_cast<std::ptrdiff_t>(node * width));
  }
  amounts_ = std::move(wider);
  width_ = width;
}

const TopologyKey& Snapshot::Topology(const std::string& key) {
  std::unique_ptr<TopologyKey>& topology = topologies_[key];
  if (topology == nullptr) {
    topology = std::make_unique<TopologyKey>(key);
    for (int32_t i = 0; i < node_end(); ++i) {
      if (Contains(NodeIndex{i})) topology->Add(NodeIndex{i}, labels(NodeIndex{i}).Find(key));
    }
  }
  return *topology;
}

std::vector<const DomainCounts*> Snapshot::Counts(std::vector<CountSpec> specs) {
  std::vector<const DomainCounts*> result;
  std::vector<DomainCounts*> added;
  for (CountSpec& spec : specs) {
    const TopologyKey& topology = Topology(spec.topology_key);
    std::unique_ptr<DomainCounts>& counts = counts_[spec.identity];
    if (counts == nullptr) {
      counts = std::make_unique<DomainCounts>(std::move(spec), &topology);
      all_counts_.push_back(counts.get());
      added.push_back(counts.get());
    }
    result.push_back(counts.get());
  }
  if (!added.empty()) Fill(added);
  return result;
}

void Snapshot::Fill(std::span<DomainCounts* const> added) {
  std::vector<std::vector<DomainCounts*>> counting(static_cast<size_t>(pod_shapes_.size()));
  bool by_pods = false;
  for (int32_t shape = 0; shape < pod_shapes_.size(); ++shape) {
    if (pods_of_[static_cast<size_t>(shape)] == 0) continue;
    for (DomainCounts* counts : added) {
      if (!counts->spec().counts(*pod_shapes_[shape])) continue;
      counting[static_cast<size_t>(shape)].push_back(counts);
      by_pods = true;
    }
  }
  const bool by_nodes = std::any_of(added.begin(), added.end(), [](const DomainCounts* counts) {
    return counts->spec().use == CountUse::kSpread;
  });
  // No pod matches the terms of a deployment that is new.
  if (!by_pods && !by_nodes) return;
  for (int32_t i = 0; i < node_end(); ++i) {
    const NodeIndex node{i};
    if (!Contains(node)) continue;
    for (DomainCounts* counts : added) counts->AddNode(node);
    if (!by_pods) continue;
    for (const SnapshotPod& pod : pods(node)) {
      for (DomainCounts* counts : counting[static_cast<size_t>(pod.shape)]) counts->Change(node, +1);
    }
  }
}

// Asks each of the counts once per shape.
const std::vector<DomainCounts*>& Snapshot::CountsOf(int32_t shape) {
  const size_t i = static_cast<size_t>(shape);
  if (i >= counts_of_.size()) {
    counts_of_.resize(static_cast<size_t>(pod_shapes_.size()));
    counts_seen_.resize(counts_of_.size(), 0);
  }
  for (size_t& seen = counts_seen_[i]; seen < all_counts_.size(); ++seen) {
    if (all_counts_[seen]->spec().counts(*pod_shapes_[shape])) counts_of_[i].push_back(all_counts_[seen]);
  }
  return counts_of_[i];
}

// Readers that fell behind by more than a round of all nodes start over.
void Snapshot::RecordFreed(NodeIndex node) { freed_.Record(node, 2 * nodes_.size()); }

}  // namespace loadline
