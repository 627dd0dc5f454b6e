#include "plugin/convert/changes.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/node.h"
#include "plugin/convert/objects.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr size_t kMaxViewName = 63;
constexpr int64_t kMaxRevision = int64_t{1} << 62;
constexpr int64_t kMaxTimeS = int64_t{1} << 40;

// Returns whether there is no content: the batch only names the state in which a question is asked.
bool OnlyNamesState(const v1::Changes& changes) {
  return !changes.has_full_list() && changes.removed_slots().empty() && changes.pod_shapes().empty() &&
         changes.nodes().empty() && changes.objects().empty() && changes.removed_objects().empty() &&
         changes.complete_kinds().empty();
}

// Shapes are decoded in their order, and one that occurs twice is refused before it costs anything: an
// empty one has 2 bytes on the wire and a hundred times as many here.
absl::Status DecodePodShapes(const v1::Changes& changes, ResourceReader* resources, Batch* batch) {
  PodDecoder decoder(resources);
  absl::flat_hash_set<int32_t> ids;
  batch->pod_shapes.reserve(static_cast<size_t>(changes.pod_shapes_size()));
  for (const v1::PodShape& message : changes.pod_shapes()) {
    if (!ids.insert(message.id()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("pod shape ", message.id(), " is sent twice in one batch"));
    }
    PodShape shape = decoder.DecodeBound(message.pod());
    Labels labels = shape.finished ? Labels() : decoder.labels();
    batch->pod_shapes.push_back({message.id(), std::move(shape), std::move(labels)});
  }
  return absl::OkStatus();
}

// A pod whose name is none keeps its node, which is then unreadable.
void DecodePods(const v1::NodeRecord& message, NodeRecord* node, std::deque<std::string>* names) {
  node->pods.reserve(static_cast<size_t>(message.pods_size()));
  for (int i = 0; i < message.pods_size(); ++i) {
    const v1::PodRecord& pod = message.pods(i);
    absl::Status status = CheckName(pod.name());
    if (status.ok()) status = CheckName(pod.uid());
    if (status.ok()) {
      node->pods.push_back({pod.shape(), pod.name(), pod.uid()});
      continue;
    }
    if (node->traits.unreadable.empty()) {
      node->traits.unreadable = ReasonOf(Annotate(status, absl::StrCat("pods[", i, "]")));
    }
    const std::string& name = names->emplace_back(StoredName(pod.name()));
    node->pods.push_back({pod.shape(), name, names->emplace_back(StoredName(pod.uid()))});
  }
}

absl::Status DecodeNodes(const v1::Changes& changes, ResourceReader* resources, DecodedBatch* decoded) {
  NodeDecoder decoder(resources);
  decoded->batch.nodes.reserve(static_cast<size_t>(changes.nodes_size()));
  for (const v1::NodeRecord& message : changes.nodes()) {
    absl::StatusOr<DecodedNode> content = decoder.DecodeBound(message.node());
    if (!content.ok()) {
      return Annotate(content.status(), absl::StrCat("node in slot ", message.slot()), " ");
    }
    const std::string& name = decoded->names.emplace_back(std::move(content->name));
    NodeRecord& node = decoded->batch.nodes.emplace_back();
    node.slot = Slot{message.slot()};
    node.name = name;
    node.shape = std::move(content->shape);
    node.hostname = std::move(content->hostname);
    node.traits = std::move(content->traits);
    DecodePods(message, &node, &decoded->names);
  }
  return absl::OkStatus();
}

absl::Status DecodeObjects(const v1::Changes& changes, ResourceReader* resources, Batch* batch) {
  for (int i = 0; i < changes.removed_objects_size(); ++i) {
    absl::StatusOr<ObjectKey> key = DecodeObjectKey(changes.removed_objects(i));
    if (!key.ok()) return Annotate(key.status(), absl::StrCat("removed_objects[", i, "]"));
    batch->removed_objects.push_back(*std::move(key));
  }
  std::set<ObjectKey> keys;
  for (int i = 0; i < changes.objects_size(); ++i) {
    absl::StatusOr<ClusterObject> object = DecodeObject(changes.objects(i), resources);
    if (!object.ok()) return Annotate(object.status(), absl::StrCat("objects[", i, "]"), " ");
    if (!keys.insert(object->key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("objects[", i, "] ", Quoted(object->key.name), " is sent twice in one batch"));
    }
    batch->objects.push_back(*std::move(object));
  }
  for (int i = 0; i < changes.complete_kinds_size(); ++i) {
    const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(changes.complete_kinds(i));
    if (!kind.ok()) return Annotate(kind.status(), absl::StrCat("complete_kinds[", i, "]"));
    batch->complete_kinds.push_back(*kind);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckViewName(absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '/' || c == '-';
  };
  if (!name.empty() && name.size() <= kMaxViewName && std::all_of(name.begin(), name.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("view: ", Quoted(name), " is not the name of a view: 1 to ",
                                                 kMaxViewName, " characters of [a-z0-9/-]"));
}

std::optional<FullListChunk> ChunkOf(const v1::Changes& changes) {
  if (!changes.has_full_list()) return std::nullopt;
  return FullListChunk{changes.full_list().index(), changes.full_list().last()};
}

bool NamesPresentState(const v1::Changes& changes) {
  return changes.epoch() == 0 && changes.base_revision() == 0 && changes.revision() == 0 &&
         changes.kubernetes_minor() == 0 && OnlyNamesState(changes);
}

absl::Status CheckHeader(const v1::Changes& changes) {
  absl::Status status = CheckViewName(changes.view());
  if (NamesPresentState(changes)) {
    return status.ok() ? CheckRange("time_s", changes.time_s(), 0, kMaxTimeS) : status;
  }
  if (status.ok()) status = CheckRange("epoch", changes.epoch(), 1, kMaxRevision);
  if (status.ok()) status = CheckRange("revision", changes.revision(), 1, kMaxRevision);
  if (status.ok()) status = CheckRange("base_revision", changes.base_revision(), 0, changes.revision());
  if (status.ok()) status = CheckRange("time_s", changes.time_s(), 0, kMaxTimeS);
  if (!status.ok()) return status;
  if (changes.has_full_list()) {
    status = CheckNotNegative("full_list.index", changes.full_list().index());
    if (!status.ok()) return status;
    return CheckRange("base_revision of a full list", changes.base_revision(), 0, 0);
  }
  if (changes.base_revision() == changes.revision() && !OnlyNamesState(changes)) {
    return absl::InvalidArgumentError(absl::StrCat("base_revision and revision are both ", changes.revision(),
                                                   ", but the batch holds changes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DecodedBatch> DecodeBatch(const v1::Changes& changes, ResourceNames names,
                                         const ReadOptions& options) {
  DecodedBatch decoded;
  Batch& batch = decoded.batch;
  batch.epoch = changes.epoch();
  batch.base_revision = changes.base_revision();
  batch.revision = changes.revision();
  batch.full_list = ChunkOf(changes);
  if (absl::Status status = CheckNotNegative("kubernetes_minor", changes.kubernetes_minor()); !status.ok()) {
    return status;
  }
  batch.time_s = changes.time_s();
  batch.resize_rule = ResizeRuleOf(changes.kubernetes_minor());
  batch.removed_slots.reserve(static_cast<size_t>(changes.removed_slots_size()));
  for (const int32_t slot : changes.removed_slots()) batch.removed_slots.push_back(Slot{slot});
  ReadOptions read = options;
  read.resize_rule = batch.resize_rule;
  ResourceReader resources(&names, read);
  // Nodes first: what they offer has its own names, whatever pods ask for.
  absl::Status status = DecodeNodes(changes, &resources, &decoded);
  if (status.ok()) status = DecodePodShapes(changes, &resources, &batch);
  if (status.ok()) status = DecodeObjects(changes, &resources, &batch);
  if (!status.ok()) return status;
  batch.resource_names = std::move(names);
  batch.clamped_amounts = resources.clamped_amounts();
  return decoded;
}

}  // namespace loadline
