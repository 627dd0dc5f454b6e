// Compares what cluster states and views keep with what it would be if worked out anew.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/base/amount.h"
#include "core/cluster/view.h"

namespace loadline {

void ClusterState::CheckConsistent() const {
  int64_t occupied = 0;
  int64_t pods = 0;
  int64_t unreadable = 0;
  uint64_t fingerprints = 0;
  std::vector<int64_t> references;
  for (int32_t i = 0; i < slot_end(); ++i) {
    const Slot slot{i};
    const Node& node = At(slot);
    LOADLINE_CHECK(node.occupied || node.pods.pods().empty()) << "slot " << i << " has pods and no node";
    if (!node.occupied) continue;
    LOADLINE_CHECK(Find(node.name) == slot) << "node " << node.name << " is not found";
    ++occupied;
    pods += static_cast<int64_t>(node.pods.pods().size());
    unreadable += node.traits.unreadable.empty() ? 0 : 1;
    fingerprints += node.fingerprint;
    int32_t unfinished = 0;
    for (const NodePods::Pod& pod : node.pods.pods()) unfinished += pod_shapes_[pod.shape].finished ? 0 : 1;
    LOADLINE_CHECK(node.unfinished_pods == unfinished) << "unfinished pods of node " << node.name;
    const size_t shape = static_cast<size_t>(node.shape);
    if (shape >= references.size()) references.resize(shape + 1, 0);
    ++references[shape];
  }
  LOADLINE_CHECK(node_count() == occupied) << node_count() << " nodes have names, " << occupied << " slots";
  LOADLINE_CHECK(total_pods_ == pods) << total_pods_ << " pods are counted, there are " << pods;
  LOADLINE_CHECK(unreadable_nodes_ == unreadable) << unreadable_nodes_ << " nodes count as unreadable";
  LOADLINE_CHECK(fingerprint_ == fingerprints) << "the fingerprint is not that of the nodes";
  node_shapes_.CheckConsistent(references);
  resource_names_.CheckConsistent();
  changes_.CheckConsistent();
  CheckColumns();
  CheckPodsOfShapes();
}

void ClusterState::CheckPodsOfShapes() const {
  std::vector<int64_t> pods(pods_of_shape_.size(), 0);
  for (const Node& node : nodes_) {
    for (const NodePods::Pod& pod : node.pods.pods()) {
      ++pods[CheckedIndex("shape", static_cast<size_t>(pod.shape), pods.size())];
    }
  }
  LOADLINE_CHECK(pods == pods_of_shape_) << "pods are not counted by their shapes";
}

void ClusterState::CheckColumns() const {
  std::vector<ResourceColumns> sums(columns_.size());
  for (ResourceColumns& sum : sums) {
    for (auto* const column : {&sum.allocatable, &sum.requested, &sum.limits}) column->resize(nodes_.size());
  }
  const auto at = [&](ResourceId resource) -> ResourceColumns& {
    return sums[CheckedIndex("resource", static_cast<size_t>(resource), sums.size())];
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].occupied) continue;
    const ResourceAmounts& allocatable = node_shapes_[nodes_[i].shape].allocatable;
    LOADLINE_CHECK(Covers(resource_names_, allocatable)) << "node " << nodes_[i].name;
    for (const auto& [resource, amount] : allocatable) at(resource).allocatable[i] = amount;
    for (const NodePods::Pod& pod : nodes_[i].pods.pods()) {
      const PodShape& shape = pod_shapes_[pod.shape];
      LOADLINE_CHECK(Covers(resource_names_, shape.requests)) << "requests on node " << nodes_[i].name;
      LOADLINE_CHECK(Covers(resource_names_, shape.limits)) << "limits on node " << nodes_[i].name;
      for (const auto& [resource, amount] : shape.requests) {
        at(resource).requested[i] = SaturatingAdd(at(resource).requested[i], amount);
      }
      for (const auto& [resource, amount] : shape.limits) {
        at(resource).limits[i] = SaturatingAdd(at(resource).limits[i], amount);
      }
    }
  }
  const auto same = [](const std::vector<int64_t>& kept, const std::vector<int64_t>& sum) {
    for (size_t i = 0; i < std::max(kept.size(), sum.size()); ++i) {
      if ((i < kept.size() ? kept[i] : 0) != (i < sum.size() ? sum[i] : 0)) return false;
    }
    return true;
  };
  for (size_t i = 0; i < sums.size(); ++i) {
    LOADLINE_CHECK(same(columns_[i].allocatable, sums[i].allocatable)) << "allocatable of resource " << i;
    LOADLINE_CHECK(same(columns_[i].requested, sums[i].requested)) << "requests of resource " << i;
    LOADLINE_CHECK(same(columns_[i].limits, sums[i].limits)) << "limits of resource " << i;
  }
}

void View::CheckConsistent() const {
  LOADLINE_CHECK(!half_applied_) << "a view that is half changed is to be dropped";
  CheckKept(content_);
  if (staging_ != nullptr) CheckKept(staging_->content);
}

ViewBytes View::CountBytes(const Content& content) {
  const ClusterState& cluster = *content.cluster;
  ViewBytes bytes;
  std::vector<bool> counted;
  for (const ClientShape& client_shape : content.shapes) {
    if (client_shape.shape < 0) continue;
    const PodShape& shape = cluster.pod_shapes()[client_shape.shape];
    bytes.Add(shape.namespace_name, ViewBytes::Counted(BytesOfLabels(client_shape)));
    const size_t at = static_cast<size_t>(client_shape.shape);
    if (at >= counted.size()) counted.resize(at + 1, false);
    if (!counted[at]) bytes.AddShape(shape);
    counted[at] = true;
  }
  for (const auto& [slot, of_node] : content.bytes_of_node) bytes.Add("", of_node);
  for (size_t kind = 0; kind < kObjectKinds; ++kind) {
    for (const auto& [key, object] : cluster.objects().of(static_cast<ObjectKind>(kind))) {
      bytes.Add(key.kind == ObjectKind::kNamespace ? key.name : key.namespace_name,
                ViewBytes::Counted(BytesOf(object).bytes));
    }
  }
  return bytes;
}

void View::CheckKept(const Content& content) {
  LOADLINE_CHECK(CountBytes(content) == content.bytes) << content.bytes.total() << " bytes are counted";
  const ClusterState& cluster = *content.cluster;
  cluster.CheckConsistent();
  std::vector<int64_t> references;
  int32_t unreadable = 0;
  for (const ClientShape& client_shape : content.shapes) {
    if (client_shape.shape < 0) continue;
    const size_t shape = static_cast<size_t>(client_shape.shape);
    if (shape >= references.size()) references.resize(shape + 1, 0);
    ++references[shape];
    const PodShape& content_of = cluster.pod_shapes()[client_shape.shape];
    unreadable += TraitsOf(content_of).unreadable.empty() ? 0 : 1;
    for (const Label& label : content_of.labels) {
      const bool kept = std::binary_search(content.label_keys.begin(), content.label_keys.end(), label.key);
      LOADLINE_CHECK(kept) << "no selector refers to label " << label.key;
    }
  }
  cluster.pod_shapes().CheckConsistent(references);
  LOADLINE_CHECK(content.unreadable_shapes == unreadable)
      << content.unreadable_shapes << " count as unreadable";
  std::vector<int32_t> pods(content.shapes.size(), 0);
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    if (!cluster.Occupied(Slot{i})) continue;
    for (const NodePods::Pod& pod : cluster.pods(Slot{i}).pods()) {
      const size_t id = CheckedIndex("pod shape", static_cast<size_t>(pod.tag), content.shapes.size());
      LOADLINE_CHECK(content.shapes[id].shape == pod.shape)
          << "a pod in slot " << i << " has another shape than its id";
      ++pods[id];
    }
  }
  for (size_t id = 0; id < pods.size(); ++id) {
    LOADLINE_CHECK(content.shapes[id].pods == pods[id]) << "pods of shape " << id;
  }
  const LabelKeys& keys = content.label_keys;
  const auto repeat = std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>());
  LOADLINE_CHECK(repeat == keys.end()) << "label keys are out of order at " << *repeat;
}

}  // namespace loadline
