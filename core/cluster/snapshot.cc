#include "core/cluster/snapshot.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

void UpdateFree(NodeAmount* amount) {
  const absl::int128 free = absl::int128(amount->allocatable) - amount->requested;
  amount->free = free < -kMaxAmount ? -kMaxAmount : static_cast<int64_t>(free);
}

// Both are sorted. Cost: O(ports + used), since a pod may state a thousand of them.
void CountPorts(std::span<const HostPort> ports, int32_t sign, std::vector<UsedPort>* used) {
  if (ports.empty()) return;
  std::vector<UsedPort> merged;
  merged.reserve(used->size() + ports.size());
  auto at = used->begin();
  for (const HostPort& port : ports) {
    while (at != used->end() && at->port < port) merged.push_back(std::move(*at++));
    if (!merged.empty() && merged.back().port == port) {  // a pod may state a port twice
      merged.back().pods += sign;
      continue;
    }
    merged.push_back({port, sign});
    if (at != used->end() && at->port == port) merged.back().pods += (at++)->pods;
  }
  std::move(at, used->end(), std::back_inserter(merged));
  std::erase_if(merged, [](const UsedPort& entry) { return entry.pods == 0; });
  *used = std::move(merged);
}

std::string ClaimKey(absl::string_view namespace_name, absl::string_view name) {
  return absl::StrCat(namespace_name, "/", name);
}

}  // namespace

template <typename Shape>
int32_t Snapshot::Numbers<Shape>::Intern(const Shape& shape, bool copy) {
  const auto is_equal = [&](int32_t id) { return *(*this)[id] == shape; };
  if (const auto known = index_.Find(shape.fingerprint, is_equal); known.has_value()) return *known;
  const int32_t id = size();
  index_.Add(shape.fingerprint, id);
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
    entry.name = std::string(state.name(slot));
    entry.hostname = state.hostname(slot);
    amounts_.resize(amounts_.size() + width_);
    Join(node);
    AttachPodsOf(slot, node);
    // No two nodes of a cluster have the same name.
    const bool by_host = entry.hostname.has_value() && *entry.hostname == entry.name;
    if (by_host && NodeIndex{named_by_host_} == node) ++named_by_host_;
  }
}

void Snapshot::AttachPodsOf(Slot slot, NodeIndex node) {
  const NodePods& pods = state_.pods(slot);
  At(node).pods.reserve(static_cast<size_t>(state_.pod_count(slot)));
  for (size_t i = 0; i < pods.pods().size(); ++i) {
    if (state_.pod_shapes()[pods.pods()[i].shape].finished) continue;
    Attach(node, {ShapeOf(pods.pods()[i].shape), pods.name(i), pods.uid(i)});
  }
}

void Snapshot::Reload(std::span<const Slot> slots) {
  LOADLINE_CHECK(follows() && forks_.empty())
      << "a snapshot is read anew within " << forks_.size() << " forks";
  // The state may have given the numbers of its shapes to others.
  shape_of_state_.clear();
  // All nodes are removed before any is added: a name may have moved from slot to slot.
  std::vector<NodeIndex> stay(slots.size(), NodeIndex{-1});
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::optional<NodeIndex> node = FindSlot(slots[i]);
    if (!node.has_value()) continue;
    Node& entry = At(*node);
    while (!entry.pods.empty()) Detach(*node, entry.pods.size() - 1);
    SetLeaving(*node, false);
    entry.closed = false;
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
      stay[i] =
          AddNode({std::string(state_.name(slot)), state_.node_shape(slot), state_.hostname(slot), slot});
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
  const Node& entry = At(node);
  return {&node_shapes_[entry.shape]->labels, entry.hostname.has_value() ? &*entry.hostname : nullptr,
          entry.name};
}

const NodeAmount& Snapshot::amount(NodeIndex node, ResourceId resource) const {
  static constexpr NodeAmount kNone;
  const size_t i = static_cast<size_t>(resource);
  if (i < width_) return amounts(node).data()[i];
  const NodeAmount* const extra = FindExtra(At(node), resource);
  return extra != nullptr ? *extra : kNone;
}

NodeAmount* Snapshot::FindExtra(const Node& node, ResourceId resource) const {
  if (node.extra == nullptr) return nullptr;
  const auto at =
      std::lower_bound(node.extra->begin(), node.extra->end(), resource,
                       [](const ExtraAmount& extra, ResourceId wanted) { return extra.resource < wanted; });
  return at != node.extra->end() && at->resource == resource ? &at->amount : nullptr;
}

int32_t Snapshot::InternShape(const PodShape& shape) { return Intern(shape, /*copy=*/true); }

int32_t Snapshot::Intern(const PodShape& shape, bool copy) {
  const int32_t known = pod_shapes_.size();
  const int32_t id = pod_shapes_.Intern(shape, copy);
  if (id < known) return id;
  pods_of_.push_back({.has_rules = shape.rules != nullptr, .listed = shape.rules != nullptr});
  shapes_in_[shape.namespace_name].push_back(id);
  if (shape.rules != nullptr) anti_affinity_terms_.Add(id, shape.rules);
  lowest_priority_ = std::min(lowest_priority_, TraitsOf(shape).priority);
  has_placeholders_ = has_placeholders_ || TraitsOf(shape).placeholder;
  return id;
}

int32_t Snapshot::ShapeOf(int32_t state_shape) {
  const size_t i = static_cast<size_t>(state_shape);
  if (i >= shape_of_state_.size()) shape_of_state_.resize(std::max(i + 1, 2 * shape_of_state_.size()), -1);
  if (shape_of_state_[i] < 0) {
    shape_of_state_[i] = Intern(state_.pod_shapes()[state_shape], follows());
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
  Node& node = At(move.node);
  switch (move.kind) {
    case Move::Kind::kPlace:
      Detach(move.node, node.pods.size() - 1);
      return;
    case Move::Kind::kRemove:
      // The pod that took its place returns to the end.
      Attach(move.node, move.pod);
      std::swap(node.pods[move.position], node.pods.back());
      return;
    case Move::Kind::kAddNode:
      LOADLINE_CHECK(IndexOf(move.node) + 1 == nodes_.size()) << "the node that came last goes first";
      Leave(move.node);
      by_slot_.erase(static_cast<int32_t>(node.slot));
      nodes_.pop_back();
      amounts_.resize(amounts_.size() - width_);
      return;
    case Move::Kind::kRemoveNode:
      Join(move.node);
      return;
    case Move::Kind::kClose:
      node.closed = false;
      RecordFreed(move.node);
      return;
    case Move::Kind::kLeaving:
      SetLeaving(move.node, false);
      return;
  }
}

absl::string_view Snapshot::Keep(absl::string_view text) {
  return text.empty() ? absl::string_view() : absl::string_view(texts_.emplace_back(std::string(text)));
}

void Snapshot::PlacePod(NodeIndex node, int32_t shape, absl::string_view name, absl::string_view uid) {
  Present(node);
  CheckedIndex("pod shape", static_cast<size_t>(shape), pods_of_.size());
  Log(Move::Kind::kPlace, node);
  Attach(node, {shape, Keep(name), Keep(uid)});
}

void Snapshot::RemovePod(NodeIndex node, size_t position) {
  const std::vector<SnapshotPod>& pods = Present(node).pods;
  CheckedIndex("pod of the node", position, pods.size());
  if (!forks_.empty()) log_.push_back({Move::Kind::kRemove, node, position, pods[position]});
  Detach(node, position);
}

NodeIndex Snapshot::AddNode(NewNode node) {
  LOADLINE_CHECK(!FindSlot(node.slot).has_value())
      << "slot " << static_cast<int32_t>(node.slot) << " has a node";
  const NodeIndex index{node_end()};
  Node& entry = nodes_.emplace_back();
  entry.shape = node_shapes_.Intern(node.shape, /*copy=*/true);
  entry.slot = node.slot;
  entry.name = std::move(node.name);
  entry.hostname = std::move(node.hostname);
  amounts_.resize(amounts_.size() + width_);
  Join(index);
  Log(Move::Kind::kAddNode, index);
  return index;
}

void Snapshot::RemoveNode(NodeIndex node) {
  const std::vector<SnapshotPod>& pods = Present(node).pods;
  while (!pods.empty()) RemovePod(node, pods.size() - 1);
  Log(Move::Kind::kRemoveNode, node);
  Leave(node);
}

void Snapshot::CloseNode(NodeIndex node) {
  Node& entry = Present(node);
  if (entry.closed) return;
  Log(Move::Kind::kClose, node);
  entry.closed = true;
}

void Snapshot::MarkLeaving(NodeIndex node) {
  CloseNode(node);
  if (Leaving(node)) return;
  Log(Move::Kind::kLeaving, node);
  SetLeaving(node, true);
}

// Updates affected counts by removing and adding again the node and its pods.
void Snapshot::SetLeaving(NodeIndex node, bool leaving) {
  Node& entry = At(node);
  if (entry.leaving == leaving) return;
  const auto count_pods = [&](int32_t sign) {
    for (const SnapshotPod& pod : entry.pods) {
      for (DomainCounts* counts : CountsOf(pod.shape)) {
        if (counts->spec().sees_leaving) counts->Change(node, sign);
      }
    }
  };
  if (!leaving_counts_.empty()) count_pods(-1);
  for (DomainCounts* counts : leaving_counts_) counts->RemoveNode(node);
  entry.leaving = leaving;
  for (DomainCounts* counts : leaving_counts_) counts->AddNode(node);
  if (!leaving_counts_.empty()) count_pods(+1);
}

// A node without pods is there from now on.
void Snapshot::Join(NodeIndex node) {
  Node& entry = At(node);
  entry.present = true;
  if (static_cast<int32_t>(entry.slot) >= 0) by_slot_[static_cast<int32_t>(entry.slot)] = node;
  for (const auto& [resource, allocatable] : node_shapes_[entry.shape]->allocatable) {
    const size_t i = static_cast<size_t>(resource);
    NodeAmount* amount = i < width_ ? &amounts_[IndexOf(node) * width_ + i] : FindExtra(entry, resource);
    if (amount == nullptr) {
      if (entry.extra == nullptr) entry.extra = std::make_unique<std::vector<ExtraAmount>>();
      amount = &entry.extra->emplace_back(ExtraAmount{resource, {}}).amount;
    }
    amount->allocatable = allocatable;
    UpdateFree(amount);
  }
  AddToTopologies(node);
  for (DomainCounts* counts : spread_counts_) counts->AddNode(node);
  RecordFreed(node);
}

// A node without pods is gone; its slot, name and shape stay behind for the way back.
void Snapshot::Leave(NodeIndex node) {
  Node& entry = At(node);
  for (DomainCounts* counts : spread_counts_) counts->RemoveNode(node);
  for (const auto& [key, topology] : topologies_) topology->Remove(node);
  by_slot_.erase(static_cast<int32_t>(entry.slot));
  entry.present = false;
}

void Snapshot::Attach(NodeIndex node, const SnapshotPod& pod) {
  At(node).pods.push_back(pod);
  Count(node, pod, +1);
}

void Snapshot::Detach(NodeIndex node, size_t position) {
  std::vector<SnapshotPod>& pods = At(node).pods;
  const SnapshotPod pod = pods[CheckedIndex("pod of the node", position, pods.size())];
  pods[position] = pods.back();
  pods.pop_back();
  Count(node, pod, -1);
  RecordFreed(node);
}

void Snapshot::CountShape(NodeIndex node, PodsOfShape* pods, int32_t sign) {
  pods->count += sign;
  LOADLINE_CHECK(pods->count >= 0) << "a pod goes that was not there";
  if (!pods->listed) {
    pods->listed = pods->has_rules && pods->count == 0;
  } else if (sign > 0) {
    pods->nodes.push_back(node);
  } else if (pods->nodes.back() == node) {
    pods->nodes.pop_back();
  } else {
    pods->listed = false;
    pods->nodes = {};
  }
}

void Snapshot::Count(NodeIndex node, const SnapshotPod& pod, int32_t sign) {
  const PodShape& shape = *pod_shapes_[pod.shape];
  NodeAmount* const row = amounts_.data() + IndexOf(node) * width_;
  for (const auto& [resource, request] : shape.requests) {
    const size_t i = static_cast<size_t>(resource);
    NodeAmount* const amount = i < width_ ? row + i : FindExtra(At(node), resource);
    if (amount == nullptr) continue;
    amount->requested += absl::int128(request) * sign;
    LOADLINE_DCHECK(amount->requested >= 0) << "a node gives back more than it has";
    UpdateFree(amount);
  }
  CountShape(node, &pods_of_[static_cast<size_t>(pod.shape)], sign);
  if (shape.rules != nullptr) CountRules(&At(node), shape, sign);
  for (const auto& sums : limit_sums_) sums->Change(node, node_shape(node), pod.shape, shape, sign);
  if (all_counts_.empty()) return;
  for (DomainCounts* counts : CountsOf(pod.shape)) counts->Change(node, sign);
}

void Snapshot::CountRules(Node* node, const PodShape& shape, int32_t sign) {
  CountPorts(shape.rules->host_ports, sign, &node->ports);
  volumes_ += sign * static_cast<int64_t>(shape.rules->volumes.size());
  for (const PodVolume& volume : shape.rules->volumes) {
    if (volume.kind != VolumeKind::kClaim) continue;
    const std::string key = ClaimKey(shape.namespace_name, volume.name);
    if ((claim_users_[key] += sign) == 0) claim_users_.erase(key);
  }
}

// Readers that fell behind by more than a round of all nodes start over.
void Snapshot::RecordFreed(NodeIndex node) { freed_.Record(node, 2 * nodes_.size()); }

}  // namespace loadline
