#include "plugin/service/cluster_books.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "core/base/fingerprint.h"
#include "plugin/convert/objects.h"

namespace loadline {

ClusterBooks::Content ClusterBooks::ContentOf(absl::string_view bytes) {
  FingerprintBuilder builder;
  builder.Add(bytes);
  return {builder.Finish(), absl::Hash<absl::string_view>()(bytes)};
}

bool ClusterBooks::CanGoOn(const Revision& revision, const v1::SetClusterRequest& request) const {
  const std::set<int> kinds(request.complete_kinds().begin(), request.complete_kinds().end());
  return revision_.revision > 0 && revision_ == revision && kubernetes_minor_ == request.kubernetes_minor() &&
         std::includes(kinds.begin(), kinds.end(), complete_kinds_.begin(), complete_kinds_.end());
}

int32_t ClusterBooks::TakeSlot() {
  if (free_slots_.empty()) return next_slot_++;
  const int32_t slot = *free_slots_.begin();
  free_slots_.erase(free_slots_.begin());
  return slot;
}

void ClusterBooks::Release(const std::vector<int32_t>& shapes) {
  for (const int32_t id : shapes) {
    if (--shapes_[static_cast<size_t>(id)].pods == 0) left_shapes_.push_back(id);
  }
}

int32_t ClusterBooks::Acquire(const std::string& bytes, v1::Changes* changes) {
  const Content content = ContentOf(bytes);
  const auto [known, is_new] = shape_of_.emplace(content, 0);
  if (is_new) {
    if (free_shapes_.empty()) {
      known->second = static_cast<int32_t>(shapes_.size());
      shapes_.emplace_back();
    } else {
      known->second = free_shapes_.back();
      free_shapes_.pop_back();
    }
    shapes_[static_cast<size_t>(known->second)].content = content;
    v1::PodShape* const message = changes->add_pod_shapes();
    message->set_id(known->second);
    message->set_pod(bytes);
  }
  ++shapes_[static_cast<size_t>(known->second)].pods;
  return known->second;
}

// A shape without pods keeps its id within the batch, as pods refer to it until the batch is applied.
void ClusterBooks::FreeShapes() {
  for (const int32_t id : left_shapes_) {
    const Shape& shape = shapes_[static_cast<size_t>(id)];
    if (shape.pods == 0 && shape_of_.erase(shape.content) > 0) free_shapes_.push_back(id);
  }
  left_shapes_.clear();
}

bool ClusterBooks::SetNode(const GivenNode& given, const GivenCluster& cluster, v1::Changes* changes,
                           int32_t* slot) {
  std::string all = given.bytes;
  for (const GivenPod& pod : given.pods) {
    const Content shape = ContentOf(cluster.shapes[pod.shape]);
    all.append(reinterpret_cast<const char*>(&shape), sizeof(shape));
    for (const std::string* const text : {&pod.name, &pod.uid}) {
      all.append(*text);
      all.push_back('\0');  // no name has it
    }
  }
  const Content content = ContentOf(all);
  const auto [known, is_new] = nodes_.try_emplace(given.name);
  Node& node = known->second;
  if (is_new) node.slot = TakeSlot();
  *slot = node.slot;
  node.is_there = true;
  if (!is_new && node.content == content) return false;
  node.content = content;
  const std::vector<int32_t> before = std::move(node.shapes);
  node.shapes.clear();
  v1::NodeRecord* const record = changes->add_nodes();
  record->set_slot(node.slot);
  record->set_node(given.bytes);
  for (const GivenPod& pod : given.pods) {
    v1::PodRecord* const message = record->add_pods();
    message->set_shape(node.shapes.emplace_back(Acquire(cluster.shapes[pod.shape], changes)));
    message->set_name(pod.name);
    message->set_uid(pod.uid);
  }
  Release(before);
  return true;
}

int64_t ClusterBooks::RemoveNodes(v1::Changes* changes) {
  std::vector<int32_t> removed;
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (std::exchange(node->second.is_there, false)) {
      ++node;
      continue;
    }
    removed.push_back(node->second.slot);
    Release(node->second.shapes);
    node = nodes_.erase(node);
  }
  free_slots_.insert(removed.begin(), removed.end());
  changes->mutable_removed_slots()->Add(removed.begin(), removed.end());
  return static_cast<int64_t>(removed.size());
}

void ClusterBooks::SetObjects(const GivenCluster& cluster, v1::Changes* changes, Changed* changed) {
  std::map<ObjectKey, Content> now;
  for (const GivenObject& given : cluster.objects) {
    const Content content = ContentOf(given.message.object());
    now.emplace(given.key, content);
    const auto known = objects_.find(given.key);
    if (known != objects_.end() && known->second == content) continue;
    *changes->add_objects() = given.message;
    ++changed->objects;
  }
  for (const auto& [key, content] : objects_) {
    if (now.contains(key)) continue;
    v1::ObjectKey* const message = changes->add_removed_objects();
    message->set_kind(EncodeObjectKind(key.kind));
    message->set_namespace_(key.namespace_name);
    message->set_name(key.name);
    ++changed->removed;
  }
  objects_ = std::move(now);
}

ClusterBooks::Changed ClusterBooks::Set(const v1::SetClusterRequest& request, const GivenCluster& cluster,
                                        v1::Changes* changes) {
  Changed changed;
  changed.slots.resize(cluster.nodes.size());
  // New nodes get slots in name order, so that the order of a list means nothing.
  std::vector<size_t> by_name(cluster.nodes.size());
  for (size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  std::sort(by_name.begin(), by_name.end(),
            [&](size_t a, size_t b) { return cluster.nodes[a].name < cluster.nodes[b].name; });
  for (const size_t i : by_name) {
    if (SetNode(cluster.nodes[i], cluster, changes, &changed.slots[i])) ++changed.nodes;
  }
  changed.removed += RemoveNodes(changes);
  SetObjects(cluster, changes, &changed);
  FreeShapes();
  const std::set<int> kinds(request.complete_kinds().begin(), request.complete_kinds().end());
  for (const int kind : kinds) {
    if (!complete_kinds_.contains(kind)) changes->add_complete_kinds(static_cast<v1::ObjectKind>(kind));
  }
  complete_kinds_ = kinds;
  kubernetes_minor_ = request.kubernetes_minor();
  revision_ = {changes->epoch(), changes->revision()};
  return changed;
}

}  // namespace loadline
