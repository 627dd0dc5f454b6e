#include "plugin/convert/describe.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "plugin/convert/objects.h"
#include "plugin/convert/parse.h"

namespace loadline {
namespace {

struct NamedResource {
  absl::string_view name;
  ResourceId id;
};

std::vector<NamedResource> SortedByName(std::vector<NamedResource> resources) {
  std::sort(resources.begin(), resources.end(),
            [](const NamedResource& a, const NamedResource& b) { return a.name < b.name; });
  return resources;
}

void EncodeSums(const ClusterState& cluster, Slot slot, v1::NodeState* message) {
  const ResourceAmounts& allocatable = cluster.node_shape(slot).allocatable;
  std::vector<NamedResource> resources;
  const auto sum = [&](const std::vector<int64_t> ResourceColumns::*column, ResourceId id) {
    const ResourceColumns* const columns = cluster.columns(id);
    const bool has_cell = columns != nullptr && IndexOf(slot) < (columns->*column).size();
    return has_cell ? (columns->*column)[IndexOf(slot)] : 0;
  };
  for (int32_t i = 0; i < cluster.resource_end(); ++i) {
    const ResourceId id{i};
    const bool here = allocatable.Find(id) != nullptr || sum(&ResourceColumns::requested, id) > 0 ||
                      sum(&ResourceColumns::limits, id) > 0;
    if (here) resources.push_back({cluster.resource_names().name(id), id});
  }
  for (const NamedResource& resource : SortedByName(std::move(resources))) {
    v1::ResourceSums* const sums = message->add_resources();
    sums->set_resource(std::string(resource.name));
    sums->set_allocatable(allocatable.Get(resource.id));
    sums->set_requested(sum(&ResourceColumns::requested, resource.id));
    sums->set_limits(sum(&ResourceColumns::limits, resource.id));
  }
}

v1::PodState EncodePod(const ClusterState& cluster, const NodePods& pods, size_t i) {
  const PodShape& shape = cluster.pod_shapes()[pods.pods()[i].shape];
  v1::PodState message;
  message.set_namespace_(shape.namespace_name);
  message.set_name(std::string(pods.name(i)));
  message.set_uid(std::string(pods.uid(i)));
  *message.mutable_requests() = EncodeAmounts(shape.requests, cluster.resource_names());
  *message.mutable_limits() = EncodeAmounts(shape.limits, cluster.resource_names());
  message.set_finished(shape.finished);
  return message;
}

// Returns positions in `pods` by name and UID; other differences are compared after these, so that equal
// content gives equal bytes.
std::vector<size_t> SortedPods(const ClusterState& cluster, const NodePods& pods) {
  std::vector<size_t> order(pods.pods().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](size_t i) {
    const PodShape& shape = cluster.pod_shapes()[pods.pods()[i].shape];
    return std::tuple(pods.name(i), pods.uid(i), absl::string_view(shape.namespace_name), shape.fingerprint);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace

google::protobuf::RepeatedPtrField<v1::ResourceAmount> EncodeAmounts(const ResourceAmounts& amounts,
                                                                     const ResourceNames& names) {
  std::vector<NamedResource> resources;
  for (const auto& [id, amount] : amounts) resources.push_back({names.name(id), id});
  google::protobuf::RepeatedPtrField<v1::ResourceAmount> messages;
  for (const NamedResource& resource : SortedByName(std::move(resources))) {
    v1::ResourceAmount* const message = messages.Add();
    message->set_resource(std::string(resource.name));
    message->set_amount(amounts.Get(resource.id));
  }
  return messages;
}

v1::ViewState EncodeView(absl::string_view name, const View& view) {
  v1::ViewState message;
  message.set_name(std::string(name));
  message.set_epoch(view.revision().epoch);
  message.set_revision(view.revision().revision);
  message.set_nodes(view.cluster().node_count());
  message.set_pods(view.cluster().total_pods());
  message.set_pod_shapes(static_cast<int64_t>(view.cluster().pod_shapes().size()));
  message.set_clamped_amounts(view.clamped_amounts());
  message.set_fingerprint(view.cluster().fingerprint());
  message.set_extra_bytes(view.bytes());
  const ClusterObjects& objects = view.cluster().objects();
  for (size_t i = 0; i < kObjectKinds; ++i) {
    const ObjectKind kind{static_cast<int>(i)};
    if (objects.of(kind).empty() && !objects.complete(kind)) continue;
    v1::ObjectCount* const count = message.add_objects();
    count->set_kind(EncodeObjectKind(kind));
    count->set_count(static_cast<int64_t>(objects.of(kind).size()));
    count->set_complete(objects.complete(kind));
  }
  return message;
}

v1::NodeKind EncodeNodeKind(NodeKind kind) {
  switch (kind) {
    case NodeKind::kMachine:
      return v1::MACHINE;
    case NodeKind::kControlPlane:
      return v1::CONTROL_PLANE;
    case NodeKind::kVirtual:
      return v1::VIRTUAL;
  }
  return v1::NODE_KIND_UNSPECIFIED;
}

v1::OtherNodes EncodeOtherNodes(const ClusterState& cluster, const GroupsOfNodes& group_of) {
  const OtherNodes others = FindOtherNodes(cluster, group_of);
  v1::OtherNodes message;
  message.set_control_plane(others.control_plane);
  message.set_virtual_(others.virtual_nodes);
  for (const OtherNodes::Node& node : others.first) {
    v1::OtherNode* const added = message.add_first();
    added->set_node(node.name);
    added->set_kind(EncodeNodeKind(node.kind));
  }
  const std::vector<Slot> as_machines = NamedAsMachines(cluster, group_of);
  message.set_as_machines(static_cast<int64_t>(as_machines.size()));
  for (const Slot slot : std::span(as_machines).first(std::min(as_machines.size(), kMostOtherNodes))) {
    message.add_first_as_machines(std::string(cluster.name(slot)));
  }
  return message;
}

std::optional<v1::NodeState> EncodeNode(const ClusterState& cluster, Slot slot, bool include_pods,
                                        size_t max_bytes) {
  v1::NodeState message;
  message.set_slot(static_cast<int32_t>(slot));
  message.set_name(std::string(cluster.name(slot)));
  message.set_fingerprint(cluster.fingerprint(slot));
  EncodeSums(cluster, slot, &message);
  message.set_pod_count(cluster.pod_count(slot));
  message.set_kind(EncodeNodeKind(cluster.traits(slot).kind));
  size_t bytes = message.ByteSizeLong();
  if (include_pods) {
    const NodePods& pods = cluster.pods(slot);
    for (const size_t i : SortedPods(cluster, pods)) {
      v1::PodState* const pod = message.add_pods();
      *pod = EncodePod(cluster, pods, i);
      bytes += pod->ByteSizeLong() + kEntryOverhead;
      if (bytes > max_bytes) return std::nullopt;
    }
  }
  if (bytes > max_bytes) return std::nullopt;
  return message;
}

}  // namespace loadline
