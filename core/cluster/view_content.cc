// Puts the content of a batch into a view.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/cluster/content_bytes.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/packed_labels.h"
#include "core/cluster/view.h"

namespace loadline {
namespace {

// The label keys that the selectors of a batch refer to: of pod shapes, then of objects.
struct BatchKeys {
  explicit BatchKeys(const Batch& batch) {
    for (size_t i = 0; i < batch.pod_shapes.size(); ++i) {
      const PodShape& shape = batch.pod_shapes[i].shape;
      if (Add(shape.namespace_name, shape.rules.get())) shapes.push_back(i);
    }
    for (size_t i = 0; i < batch.objects.size(); ++i) {
      const ClusterObject& object = batch.objects[i];
      if (const auto* const budget = std::get_if<DisruptionBudget>(&object.content)) {
        LabelKeys keys;
        for (const Requirement& requirement : budget->selector.requirements) keys.push_back(requirement.key);
        if (Add(object.key.namespace_name, std::move(keys))) objects.push_back(i);
      } else if (const auto* const workload = std::get_if<Workload>(&object.content)) {
        // Copies of other workloads are never kept free.
        const bool copies = workload->slack.copies.value_or(0) > 0 && workload->pod.has_value();
        if (copies && Add(object.key.namespace_name, workload->pod->rules.get())) objects.push_back(i);
      }
    }
  }

  std::vector<SelectorKeys> wishes;
  std::vector<size_t> shapes;   // positions in the batch of those with wishes
  std::vector<size_t> objects;  // likewise

 private:
  bool Add(absl::string_view namespace_name, LabelKeys keys) {
    if (keys.empty()) return false;
    wishes.push_back({namespace_name, std::move(keys)});
    return true;
  }
  bool Add(absl::string_view namespace_name, const PodRules* rules) {
    LabelKeys keys;
    if (rules != nullptr) rules->AddLabelKeys(&keys);
    return Add(namespace_name, std::move(keys));
  }
};

// A budget whose selector cannot be used covers all pods of its namespace, none of which it lets go.
void LeaveOutSelectors(const std::string& reason, ClusterObject* object) {
  object->unreadable = reason;
  if (auto* const budget = std::get_if<DisruptionBudget>(&object->content)) {
    budget->selector = {true, {}};
    budget->selector_error = reason;
  } else if (auto* const workload = std::get_if<Workload>(&object->content)) {
    workload->pod.reset();
  }
}

// Numbers stay, and nothing else; of a kind without numbers that decisions go by nothing does.
void LeaveOutContent(const std::string& reason, ClusterObject* object) {
  LeaveOutSelectors(reason, object);
  if (auto* const budget = std::get_if<DisruptionBudget>(&object->content)) {
    budget->disrupted_pods.clear();
  } else if (!std::holds_alternative<Workload>(object->content)) {
    object->is_left_out = true;
  }
}

// The namespace that an object counts for: that in which it is, or that which it is.
const std::string& HolderOf(const ObjectKey& key) {
  return key.kind == ObjectKind::kNamespace ? key.name : key.namespace_name;
}

// Returns whether a pod is a part of the control plane, which kubelet runs as a static pod. Clusters that
// were made by hand often lack the labels by which KindOfNode() knows the control plane.
bool IsOfControlPlane(const PodShape& shape, absl::string_view name) {
  if (shape.traits == nullptr || !IsKubeletsMirror(shape)) return false;  // most pods are plain
  const bool of_cluster =
      shape.namespace_name == "kube-system" || absl::StartsWith(shape.namespace_name, "openshift-");
  return of_cluster && (absl::StartsWith(name, "kube-apiserver") || absl::StartsWith(name, "etcd-") ||
                        absl::StartsWith(name, "kube-controller-manager"));
}

// Returns the counted bytes of an object of the view.
int64_t BytesStored(const ClusterObjects& objects, const ObjectKey& key) {
  const auto found = objects.of(key.kind).find(key);
  return found == objects.of(key.kind).end() ? 0 : ViewBytes::Counted(BytesOf(found->second).bytes);
}

}  // namespace

void View::ReleasePods(Slot slot, Content* content) {
  if (!content->cluster->Occupied(slot)) return;
  for (const NodePods::Pod& pod : content->cluster->pods(slot).pods()) {
    --content->shapes[static_cast<size_t>(pod.tag)].pods;
  }
}

void View::ApplyContent(const Batch& batch, Content* content) const {
  ClusterState& cluster = *content->cluster;
  cluster.set_resource_names(batch.resource_names);
  for (const Slot slot : batch.removed_slots) RemoveNode(slot, content);
  const BatchKeys keys(batch);
  const std::vector<bool> admitted = AdmitLabelKeys(keys.wishes, content);
  std::vector<bool> selects(batch.pod_shapes.size(), true);
  for (size_t i = 0; i < keys.shapes.size(); ++i) selects[keys.shapes[i]] = admitted[i];
  for (size_t i = 0; i < batch.pod_shapes.size(); ++i) ApplyShape(batch.pod_shapes[i], selects[i], content);
  // Two nodes may change places: all names are given up before the first is taken.
  for (const NodeRecord& node : batch.nodes) {
    ReleasePods(node.slot, content);
    if (cluster.Occupied(node.slot) && cluster.name(node.slot) != node.name) cluster.RemoveNode(node.slot);
  }
  for (const NodeRecord& node : batch.nodes) SetNode(node, content);
  for (const ObjectKey& key : batch.removed_objects) {
    content->bytes.Add(HolderOf(key), -BytesStored(cluster.objects(), key));
    cluster.objects().Remove(key);
  }
  std::vector<bool> readable(batch.objects.size(), true);
  for (size_t i = 0; i < keys.objects.size(); ++i) {
    readable[keys.objects[i]] = admitted[keys.shapes.size() + i];
  }
  for (size_t i = 0; i < batch.objects.size(); ++i) SetObject(batch.objects[i], readable[i], content);
  for (const ObjectKind kind : batch.complete_kinds) cluster.objects().SetComplete(kind);
}

void View::RemoveNode(Slot slot, Content* content) {
  ReleasePods(slot, content);
  CountNode(slot, 0, content);
  content->cluster->RemoveNode(slot);
}

// Sets the counted bytes of the node in a slot.
void View::CountNode(Slot slot, int64_t bytes, Content* content) {
  const auto held = content->bytes_of_node.find(slot);
  content->bytes.Add("", bytes - (held == content->bytes_of_node.end() ? 0 : held->second));
  if (held != content->bytes_of_node.end()) content->bytes_of_node.erase(held);
  if (bytes > 0) content->bytes_of_node.emplace(slot, bytes);
}

void View::SetNode(const NodeRecord& node, Content* content) const {
  ClusterState& cluster = *content->cluster;
  NodeTraits traits = node.traits;
  std::vector<PodContent> pods(node.pods.size());
  for (size_t i = 0; i < pods.size(); ++i) {
    const PodRecord& pod = node.pods[i];
    ClientShape& client_shape = content->shapes[static_cast<size_t>(pod.shape)];
    ++client_shape.pods;
    pods[i] = {client_shape.shape, pod.shape, pod.name, pod.uid, client_shape.fingerprint};
    const PodShape& shape = cluster.pod_shapes()[client_shape.shape];
    if (traits.kind == NodeKind::kMachine && IsOfControlPlane(shape, pod.name))
      traits.kind = NodeKind::kControlPlane;
  }
  CountNode(node.slot, 0, content);
  const ContentBytes taken = BytesOf(node.shape);
  const int64_t bytes = ViewBytes::Counted(taken.bytes, ViewBytes::kOrdinaryNode);
  if (content->bytes.HasRoom("", bytes, limits_.bytes)) {
    CountNode(node.slot, bytes, content);
    cluster.SetNode(node.slot, node.name, node.shape, pods, node.hostname, std::move(traits));
    return;
  }
  traits.unreadable = NoRoomFor(taken.field);
  cluster.SetNode(node.slot, node.name, WithoutRules(node.shape, taken.field, cluster.resource_names()), pods,
                  node.hostname, std::move(traits));
}

void View::SetObject(ClusterObject object, bool readable, Content* content) const {
  ClusterObjects& objects = content->cluster->objects();
  const std::string namespace_name = HolderOf(object.key);
  content->bytes.Add(namespace_name, -BytesStored(objects, object.key));
  if (!readable) LeaveOutSelectors(kTooManyLabelKeys, &object);
  const ContentBytes taken = BytesOf(object);
  int64_t bytes = ViewBytes::Counted(taken.bytes);
  if (!content->bytes.HasRoom(namespace_name, bytes, limits_.bytes)) {
    LeaveOutContent(NoRoomFor(taken.field), &object);
    bytes = 0;
  }
  content->bytes.Add(namespace_name, object.is_left_out ? 0 : bytes);
  objects.Set(std::move(object));
}

void View::ShowNode(Slot slot, NodeShape shape) {
  ClusterState& cluster = *content_.cluster;
  // These are copies: the originals are removed while they are added again.
  const std::string name(cluster.name(slot));
  const NodePods there = cluster.pods(slot);
  std::vector<PodContent> pods;
  for (size_t i = 0; i < there.pods().size(); ++i) {
    const NodePods::Pod& pod = there.pods()[i];
    pods.push_back({pod.shape, pod.tag, there.name(i), there.uid(i),
                    content_.shapes[static_cast<size_t>(pod.tag)].fingerprint});
  }
  std::optional<std::string> hostname = cluster.hostname(slot);
  NodeTraits traits = cluster.traits(slot);
  half_applied_ = true;
  cluster.SetNode(slot, name, std::move(shape), pods, std::move(hostname), std::move(traits));
  half_applied_ = false;
  ++version_;
}

int32_t View::AcquireShape(PodShape shape, Content* content) {
  ShapeTable<PodShape>& shapes = content->cluster->pod_shapes();
  const size_t before = shapes.size();
  const int32_t id = shapes.Acquire(std::move(shape));
  if (shapes.size() > before) content->bytes.AddShape(shapes[id]);
  return id;
}

void View::ReleaseShape(int32_t id, Content* content) {
  ShapeTable<PodShape>& shapes = content->cluster->pod_shapes();
  if (shapes.HasOneReference(id)) content->bytes.RemoveShape(shapes[id]);
  shapes.Release(id);
}

// The field of a pod for which there is no room; empty: there is. `labels` has all of them, packed.
absl::string_view View::NoRoom(const PodShape& shape, const std::string& labels,
                               const Content& content) const {
  const ContentBytes rules = shape.rules == nullptr ? ContentBytes() : BytesOf(*shape.rules);
  const int64_t of_labels = ViewBytes::Counted(static_cast<int64_t>(labels.size())) +
                            ViewBytes::Counted(BytesOf(shape.labels).bytes);
  const int64_t of_rules = ViewBytes::Counted(rules.bytes);
  if (content.bytes.HasRoom(shape.namespace_name, of_rules + of_labels, limits_.bytes)) return "";
  return of_rules > of_labels ? rules.field : "metadata.labels";
}

void View::ApplyShape(const PodShapeRecord& record, bool selects, Content* content) const {
  const size_t id = static_cast<size_t>(record.id);
  if (id >= content->shapes.size()) content->shapes.resize(id + 1);
  ClientShape& client_shape = content->shapes[id];
  if (client_shape.pods > 0) return;  // CheckShapes() has seen that it is the same
  const int32_t former = client_shape.shape;
  const ShapeTable<PodShape>& shapes = content->cluster->pod_shapes();
  if (former >= 0) {
    if (!TraitsOf(shapes[former]).unreadable.empty()) --content->unreadable_shapes;
    content->bytes.Add(shapes[former].namespace_name, -ViewBytes::Counted(BytesOfLabels(client_shape)));
  }
  PodShape shape = record.shape;
  if (!selects) LeaveOutSelectors(kTooManyLabelKeys, &shape);
  SelectLabels(record.labels, content->label_keys, &shape);
  std::string labels = PackLabels(record.labels);
  const absl::string_view no_room = NoRoom(shape, labels, *content);
  if (!no_room.empty()) {
    LeaveOutRules(NoRoomFor(no_room), &shape);
    SetLabels(Labels(), &shape);
    std::string().swap(labels);
  }
  client_shape.labels.swap(labels);  // an assignment would keep the memory of a longer text
  client_shape.reduced = !selects || !no_room.empty();
  if (!TraitsOf(shape).unreadable.empty()) ++content->unreadable_shapes;
  client_shape.shape = AcquireShape(std::move(shape), content);
  client_shape.fingerprint = FingerprintWithLabels(record.shape.fingerprint, record.labels);
  content->bytes.Add(shapes[client_shape.shape].namespace_name,
                     ViewBytes::Counted(BytesOfLabels(client_shape)));
  if (former >= 0) ReleaseShape(former, content);
}

}  // namespace loadline
