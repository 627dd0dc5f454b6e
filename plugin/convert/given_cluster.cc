#include "plugin/convert/given_cluster.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/core.pb.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/known_fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/object_schema.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

std::string NameOf(const k8s::v1::ObjectMeta& metadata) {
  return metadata.namespace_().empty() ? metadata.name()
                                       : absl::StrCat(metadata.namespace_(), "/", metadata.name());
}

// Parses a node or pod, notes fields that nobody here knows, and checks that it has a name.
template <typename Message>
absl::Status ReadGiven(absl::string_view bytes, absl::string_view kind, Message* message) {
  if (absl::Status status = CheckObjectSize(bytes); !status.ok()) {
    k8s::v1::ObjectMeta metadata;
    ReadName(bytes, &metadata);
    return WithObject(Annotate(status, Quoted(NameOf(metadata)), " "), kind, metadata.namespace_(),
                      metadata.name());
  }
  const std::string type = absl::StrCat("k8s.io.api.core.v1.", kind);
  if (absl::Status status = ParseObject(bytes, type, message); !status.ok()) return status;
  if (message->metadata().name().empty()) return absl::InvalidArgumentError("metadata.name: is missing");
  const std::string unknown = UnknownFieldOf(*message);
  if (!unknown.empty() && FindEntry(message->metadata().annotations(), kUnknownFieldsAnnotation) == nullptr) {
    k8s::v1::StringEntry* const note = message->mutable_metadata()->add_annotations();
    note->set_key(kUnknownFieldsAnnotation);
    note->set_value(unknown);
  }
  return absl::OkStatus();
}

// Returns the bytes of what the engine reads of a message.
template <typename Message>
std::string EngineBytes(const Message& message) {
  const ObjectSchema& schema = ObjectSchema::OfThisEngine();
  return schema.KeepRead(*schema.Find(message.GetTypeName()), message.SerializeAsString());
}

// Names that were there, with the field that had each.
class GivenNames {
 public:
  absl::Status Add(absl::string_view kind, const k8s::v1::ObjectMeta& metadata, const std::string& field) {
    const auto [first, is_new] = fields_.emplace(NameOf(metadata), field);
    if (is_new) return absl::OkStatus();
    return WithObject(absl::InvalidArgumentError(absl::StrCat("metadata.name: ", Quoted(first->first),
                                                              " is also that of ", first->second)),
                      kind, metadata.namespace_(), metadata.name());
  }

 private:
  absl::flat_hash_map<std::string, std::string> fields_;
};

absl::Status ReadNodes(const v1::SetClusterRequest& request, GivenCluster* cluster) {
  GivenNames names;
  k8s::v1::Node node;
  for (int i = 0; i < request.nodes_size(); ++i) {
    const std::string field = absl::StrCat("nodes[", i, "]");
    absl::Status status = ReadGiven(request.nodes(i), "Node", &node);
    if (status.ok()) status = names.Add("Node", node.metadata(), field);
    if (!status.ok()) return Annotate(status, field);
    cluster->nodes.push_back({node.metadata().name(), EngineBytes(node), {}});
  }
  return absl::OkStatus();
}

// Takes off what tells apart pods that are the same for every decision, and returns the rest.
std::string ShapeOf(k8s::v1::Pod* pod) {
  pod->mutable_metadata()->clear_name();
  pod->mutable_metadata()->clear_uid();
  const std::string& phase = pod->status().phase();
  const bool starts = phase == "Pending" && !pod->spec().node_name().empty();
  if (!starts && phase != "Succeeded" && phase != "Failed" && pod->has_status())
    pod->mutable_status()->clear_phase();
  pod->mutable_spec()->clear_node_name();
  return EngineBytes(*pod);
}

absl::Status ReadPods(const v1::SetClusterRequest& request, GivenCluster* cluster) {
  absl::flat_hash_map<std::string, size_t> node_of, shape_of;
  for (size_t i = 0; i < cluster->nodes.size(); ++i) node_of.emplace(cluster->nodes[i].name, i);
  GivenNames names;
  k8s::v1::Pod pod;
  for (int i = 0; i < request.pods_size(); ++i) {
    const std::string field = absl::StrCat("pods[", i, "]");
    absl::Status status = ReadGiven(request.pods(i), "Pod", &pod);
    if (status.ok()) status = names.Add("Pod", pod.metadata(), field);
    if (!status.ok()) return Annotate(status, field);
    const auto node = node_of.find(pod.spec().node_name());
    if (node == node_of.end()) {
      ++(pod.spec().node_name().empty() ? cluster->pods_without_node : cluster->pods_of_unknown_nodes);
      continue;
    }
    GivenPod given{0, pod.metadata().name(), pod.metadata().uid()};
    const auto [shape, is_new] = shape_of.emplace(ShapeOf(&pod), cluster->shapes.size());
    if (is_new) cluster->shapes.push_back(shape->first);
    given.shape = shape->second;
    cluster->nodes[node->second].pods.push_back(std::move(given));
  }
  for (GivenNode& node : cluster->nodes) {
    std::sort(node.pods.begin(), node.pods.end(), [](const GivenPod& a, const GivenPod& b) {
      return std::tie(a.name, a.uid, a.shape) < std::tie(b.name, b.uid, b.shape);
    });
  }
  return absl::OkStatus();
}

absl::Status ReadObjects(const v1::SetClusterRequest& request, GivenCluster* cluster) {
  ResourceNames scratch;  // only the keys are of interest here
  ResourceReader resources(&scratch);
  std::map<ObjectKey, std::string> fields;
  for (int i = 0; i < request.objects_size(); ++i) {
    const std::string field = absl::StrCat("objects[", i, "]");
    const v1::ClusterObject& message = request.objects(i);
    const absl::StatusOr<ClusterObject> object = DecodeObject(message, &resources);
    if (!object.ok()) return Annotate(object.status(), field);
    if (const auto [first, is_new] = fields.emplace(object->key, field); !is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": ", Quoted(object->key.name), " is of the kind and name of ", first->second));
    }
    cluster->objects.push_back({object->key, message});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GivenCluster> ReadGivenCluster(const v1::SetClusterRequest& request) {
  GivenCluster cluster;
  absl::Status status = ReadNodes(request, &cluster);
  if (status.ok()) status = ReadPods(request, &cluster);
  if (status.ok()) status = ReadObjects(request, &cluster);
  if (!status.ok()) return status;
  return cluster;
}

}  // namespace loadline
