#include "core/cluster/cluster_state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/amount.h"
#include "core/base/fingerprint.h"

namespace loadline {

NodePods::NodePods(std::span<const PodContent> pods) {
  size_t text_size = 0;
  for (const PodContent& pod : pods) text_size += pod.name.size() + pod.uid.size();
  pods_.reserve(pods.size());
  text_.reserve(text_size);
  for (const PodContent& pod : pods) {
    text_.insert(text_.end(), pod.name.begin(), pod.name.end());
    const uint32_t name_end = static_cast<uint32_t>(text_.size());
    text_.insert(text_.end(), pod.uid.begin(), pod.uid.end());
    pods_.push_back({pod.shape, pod.tag, name_end, static_cast<uint32_t>(text_.size())});
  }
}

absl::string_view NodePods::name(size_t i) const {
  const uint32_t begin = i == 0 ? 0 : pods_[i - 1].uid_end;
  return absl::string_view(text_.data(), text_.size()).substr(begin, pods_[i].name_end - begin);
}

absl::string_view NodePods::uid(size_t i) const {
  return absl::string_view(text_.data(), text_.size())
      .substr(pods_[i].name_end, pods_[i].uid_end - pods_[i].name_end);
}

void ClusterState::SetNode(Slot slot, absl::string_view name, NodeShape shape,
                           std::span<const PodContent> pods, std::optional<std::string> hostname,
                           NodeTraits traits) {
  LOADLINE_CHECK(static_cast<int32_t>(slot) >= 0)
      << "node " << name << " has slot " << static_cast<int32_t>(slot);
  const std::optional<Slot> namesake = Find(name);
  LOADLINE_CHECK(!namesake.has_value() || *namesake == slot) << "two nodes are named " << name;
  if (IndexOf(slot) >= nodes_.size()) nodes_.resize(IndexOf(slot) + 1);
  Node& node = nodes_[IndexOf(slot)];
  const int32_t new_shape = node_shapes_.Acquire(std::move(shape));
  if (!node.occupied || node.name != name) {
    if (node.occupied) slots_by_name_.erase(node.name);
    slots_by_name_.emplace(std::string(name), slot);
  }
  Clear(&node, slot);
  node.occupied = true;
  node.name.assign(name.data(), name.size());
  node.hostname = std::move(hostname);
  node.traits = std::move(traits);
  node.shape = new_shape;
  node.pods = NodePods(pods);
  CountPods(node.pods, 1);
  unreadable_nodes_ += node.traits.unreadable.empty() ? 0 : 1;
  AddToColumns(slot, node);
  for (const PodContent& pod : pods) node.unfinished_pods += pod_shapes_[pod.shape].finished ? 0 : 1;
  node.fingerprint = NodeFingerprint(node, pods);
  fingerprint_ += node.fingerprint;
  Record(slot);
}

void ClusterState::RemoveNode(Slot slot) {
  if (!Occupied(slot)) return;
  Node& node = nodes_[IndexOf(slot)];
  slots_by_name_.erase(node.name);
  Clear(&node, slot);
  Record(slot);
}

std::optional<Slot> ClusterState::Find(absl::string_view name) const {
  const auto found = slots_by_name_.find(name);
  if (found == slots_by_name_.end()) return std::nullopt;
  return found->second;
}

const ResourceColumns* ClusterState::columns(ResourceId resource) const {
  const size_t i = static_cast<size_t>(resource);
  return i < columns_.size() && !columns_[i].allocatable.empty() ? &columns_[i] : nullptr;
}

void ClusterState::CountPods(const NodePods& pods, int64_t sign) {
  total_pods_ += sign * static_cast<int64_t>(pods.pods().size());
  for (const NodePods::Pod& pod : pods.pods()) {
    const size_t shape = static_cast<size_t>(pod.shape);
    if (shape >= pods_of_shape_.size()) pods_of_shape_.resize(shape + 1, 0);
    pods_of_shape_[shape] += sign;
  }
}

// Gives back what the node holds, but for its name.
void ClusterState::Clear(Node* node, Slot slot) {
  if (!node->occupied) return;
  CountPods(node->pods, -1);
  unreadable_nodes_ -= node->traits.unreadable.empty() ? 0 : 1;
  fingerprint_ -= node->fingerprint;
  node_shapes_.Release(node->shape);
  for (ResourceColumns& column : columns_) {
    if (IndexOf(slot) >= column.allocatable.size()) continue;
    column.allocatable[IndexOf(slot)] = 0;
    column.requested[IndexOf(slot)] = 0;
    column.limits[IndexOf(slot)] = 0;
  }
  *node = Node{};
}

int64_t& ClusterState::Cell(std::vector<int64_t> ResourceColumns::*column, ResourceId resource, Slot slot) {
  const size_t i = static_cast<size_t>(resource);
  if (i >= columns_.size()) columns_.resize(i + 1);
  ResourceColumns& columns = columns_[i];
  if (IndexOf(slot) >= columns.allocatable.size()) {
    // All nodes at once, and some more: slots are dense, and growing one by one would copy each time.
    const size_t size = std::max(nodes_.size(), columns.allocatable.size() * 3 / 2);
    columns.allocatable.resize(size);
    columns.requested.resize(size);
    columns.limits.resize(size);
  }
  return (columns.*column)[IndexOf(slot)];
}

void ClusterState::AddToColumns(Slot slot, const Node& node) {
  for (const auto& [resource, amount] : node_shapes_[node.shape].allocatable) {
    Cell(&ResourceColumns::allocatable, resource, slot) = amount;
  }
  for (const NodePods::Pod& pod : node.pods.pods()) {
    const PodShape& shape = pod_shapes_[pod.shape];
    for (const auto& [resource, amount] : shape.requests) {
      int64_t& cell = Cell(&ResourceColumns::requested, resource, slot);
      cell = SaturatingAdd(cell, amount);
    }
    for (const auto& [resource, amount] : shape.limits) {
      int64_t& cell = Cell(&ResourceColumns::limits, resource, slot);
      cell = SaturatingAdd(cell, amount);
    }
  }
}

void ClusterState::ReplacePodShapes(std::span<const int32_t> shapes) {
  for (Node& node : nodes_) {
    CountPods(node.pods, -1);
    for (size_t i = 0; i < node.pods.pods().size(); ++i) {
      node.pods.set_shape(i, shapes[static_cast<size_t>(node.pods.pods()[i].tag)]);
    }
    CountPods(node.pods, 1);
  }
}

uint64_t ClusterState::NodeFingerprint(const Node& node, std::span<const PodContent> pods) const {
  uint64_t sum = 0;  // so that the order of the pods plays no part
  for (const PodContent& content : pods) {
    FingerprintBuilder pod;
    pod.Add(static_cast<int64_t>(content.fingerprint));
    pod.Add(content.name);
    pod.Add(content.uid);
    sum += pod.Finish();
  }
  FingerprintBuilder builder;
  builder.Add(absl::string_view(node.name));
  if (node.hostname.has_value()) builder.Add(absl::string_view(*node.hostname));
  if (!node.traits.Plain()) node.traits.AddTo(&builder);
  builder.Add(static_cast<int64_t>(node_shapes_[node.shape].fingerprint));
  builder.Add(static_cast<int64_t>(pods.size()));
  builder.Add(static_cast<int64_t>(sum));
  return builder.Finish();
}

// Readers that fell behind by more than two rounds of all nodes start over.
void ClusterState::Record(Slot slot) { changes_.Record(slot, 4 * nodes_.size()); }

}  // namespace loadline
