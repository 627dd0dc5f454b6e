#include "core/cluster/view.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/packed_labels.h"

namespace loadline {
namespace {

std::string Describe(const NodeRecord& node) {
  return absl::StrCat("node \"", absl::CHexEscape(node.name), "\" (slot ", static_cast<int32_t>(node.slot),
                      ")");
}

std::string Describe(const Revision& revision) {
  return absl::StrCat("epoch ", revision.epoch, " revision ", revision.revision);
}

constexpr char kOtherRule[] = "counts resized pods by another rule than";

absl::Status CheckSlot(Slot slot, int32_t max_nodes, absl::string_view what) {
  const int32_t value = static_cast<int32_t>(slot);
  if (value < 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": slot ", value, " is negative"));
  }
  if (value >= max_nodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": slot ", value, " is beyond the limit of ", max_nodes, " nodes"));
  }
  return absl::OkStatus();
}

}  // namespace

View::Content::Content(const Content& other)
    : cluster(std::make_unique<ClusterState>(*other.cluster)),
      resize_rule(other.resize_rule),
      shapes(other.shapes),
      unreadable_shapes(other.unreadable_shapes),
      label_keys(other.label_keys),
      keys_of_namespace(other.keys_of_namespace),
      bytes(other.bytes),
      bytes_of_node(other.bytes_of_node) {}

std::unique_ptr<View> View::Fork() const {
  std::unique_ptr<View> fork(new View(*this));
  ++fork->version_;  // what is kept of a view refers to its cluster
  return fork;
}

const ResourceNames& View::names_for(const std::optional<FullListChunk>& full_list) const {
  static const ResourceNames* const kNone = new ResourceNames;
  if (!full_list.has_value()) return cluster().resource_names();
  if (full_list->index == 0 || staging_ == nullptr) return *kNone;
  return staging_->content.cluster->resource_names();
}

absl::Status View::Apply(const Batch& batch) {
  absl::Status status = batch.full_list.has_value() ? ApplyChunk(batch) : ApplyChanges(batch);
  if (status.ok()) AdvanceTime(batch.time_s);
  return status;
}

absl::Status View::CheckState(const Batch& batch) const {
  if (batch.epoch != revision_.epoch) return Refused(batch, "is of another epoch than");
  if (batch.revision < revision_.revision) return Refused(batch, "is older than");
  if (batch.base_revision > revision_.revision) return Refused(batch, "builds on a later state than");
  return absl::OkStatus();
}

absl::Status View::ApplyChanges(const Batch& batch) {
  if (absl::Status status = CheckState(batch); !status.ok()) return status;
  if (batch.revision == revision_.revision) return absl::OkStatus();
  if (batch.resize_rule != content_.resize_rule) return Refused(batch, kOtherRule);
  if (absl::Status status = CheckContent(batch, content_); !status.ok()) return status;
  half_applied_ = true;  // until the end: what throws in between leaves it set
  ApplyContent(batch, &content_);
  ++version_;
  half_applied_ = false;
  revision_.revision = batch.revision;
  clamped_amounts_ += batch.clamped_amounts;
  return absl::OkStatus();
}

absl::Status View::ApplyChunk(const Batch& batch) {
  const Revision target{batch.epoch, batch.revision};
  if (target == revision_) return absl::OkStatus();
  if (target < revision_) return Refused(batch, "is a full list older than");
  const int32_t index = batch.full_list->index;
  if (index == 0) {
    staging_ = std::make_shared<Staging>();
    staging_->revision = target;
    staging_->content.resize_rule = batch.resize_rule;
  }
  if (staging_ == nullptr || staging_->revision != target) {
    return absl::FailedPreconditionError(absl::StrCat("chunk ", index, " belongs to a full list for ",
                                                      Describe(target), ", which has not been started"));
  }
  if (index + 1 == staging_->next_chunk) return absl::OkStatus();  // a repeat
  if (index != staging_->next_chunk) {
    return absl::FailedPreconditionError(absl::StrCat("chunk ", index, " of the full list for ",
                                                      Describe(target), " arrived where chunk ",
                                                      staging_->next_chunk, " was due"));
  }
  if (batch.resize_rule != staging_->content.resize_rule) return Refused(batch, kOtherRule);
  if (absl::Status status = CheckContent(batch, staging_->content); !status.ok()) return status;
  half_applied_ = true;
  ApplyContent(batch, &staging_->content);
  staging_->clamped_amounts += batch.clamped_amounts;
  ++staging_->next_chunk;
  if (batch.full_list->last) {
    // Only now: the state that is replaced may have changed since the first chunk.
    staging_->content.cluster->RestartJournal(cluster().change_count() + 1);
    // Above all of both, as they count up by one with each object.
    ClusterObjects& objects = staging_->content.cluster->objects();
    objects.set_usage_version(objects.usage_version() + cluster().objects().usage_version() + 1);
    content_ = std::move(staging_->content);
    ++version_;
    ++cluster_number_;
    revision_ = target;
    clamped_amounts_ += staging_->clamped_amounts;
    staging_.reset();
  }
  half_applied_ = false;
  return absl::OkStatus();
}

absl::Status View::Refused(const Batch& batch, absl::string_view reason) const {
  return absl::FailedPreconditionError(
      absl::StrCat("the batch ", Describe(Revision{batch.epoch, batch.base_revision}), " -> ", batch.revision,
                   " ", reason, " the view, which is at ", Describe(revision_), "; send a full list"));
}

absl::Status View::CheckContent(const Batch& batch, const Content& content) const {
  const size_t other = batch.resource_names.Find(kOtherResources).has_value() ? 1 : 0;
  if (batch.resource_names.size() - other > static_cast<size_t>(limits_.resources)) {
    return absl::ResourceExhaustedError(absl::StrCat("the view has ", batch.resource_names.size() - other,
                                                     " distinct resource names, the limit is ",
                                                     limits_.resources));
  }
  for (const Slot slot : batch.removed_slots) {
    if (absl::Status status = CheckSlot(slot, limits_.nodes, "removed slots"); !status.ok()) return status;
  }
  if (absl::Status status = CheckAmounts(batch, content); !status.ok()) return status;
  if (absl::Status status = CheckShapes(batch, content); !status.ok()) return status;
  // Counts every object as new; near the limit an exact count is not worth its cost.
  const int64_t objects = content.cluster->objects().size() + static_cast<int64_t>(batch.objects.size());
  if (objects > limits_.objects) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the view would hold ", objects, " objects, the limit is ", limits_.objects));
  }
  return CheckNodes(batch, content);
}

// A column has a cell for each slot, so that few bytes could ask for much memory.
absl::Status View::CheckAmounts(const Batch& batch, const Content& content) const {
  int64_t slots = content.cluster->slot_end();
  for (const NodeRecord& node : batch.nodes) {
    slots = std::max(slots, static_cast<int64_t>(node.slot) + 1);
  }
  const int64_t amounts = slots * static_cast<int64_t>(batch.resource_names.size());
  if (amounts <= limits_.amounts) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(slots, " slots and ", batch.resource_names.size(),
                                                   " distinct resource names make ", amounts,
                                                   " amounts, the limit is ", limits_.amounts));
}

std::optional<int32_t> View::ShapeOf(int32_t id) const {
  const size_t i = static_cast<size_t>(id);
  if (id < 0 || i >= content_.shapes.size() || content_.shapes[i].shape < 0) return std::nullopt;
  return content_.shapes[i].shape;
}

// Returns whether a record has the content of the shape with its id.
bool View::IsUnchanged(const PodShapeRecord& record, const Content& content) {
  const ClientShape& client_shape = content.shapes[static_cast<size_t>(record.id)];
  const uint64_t fingerprint = FingerprintWithLabels(record.shape.fingerprint, record.labels);
  if (client_shape.fingerprint != fingerprint) return false;
  if (client_shape.reduced) return true;  // it is not as it was sent
  if (client_shape.labels != PackLabels(record.labels)) return false;
  PodShape shape = record.shape;
  SelectLabels(record.labels, content.label_keys, &shape);
  return content.cluster->pod_shapes()[client_shape.shape] == shape;
}

absl::Status View::CheckShapes(const Batch& batch, const Content& content) const {
  absl::flat_hash_set<int32_t> ids;
  ids.reserve(batch.pod_shapes.size());
  for (const PodShapeRecord& record : batch.pod_shapes) {
    if (record.id < 0) {
      return absl::InvalidArgumentError(absl::StrCat("pod shape id ", record.id, " is negative"));
    }
    if (record.id >= limits_.pod_shapes) {
      return absl::ResourceExhaustedError(absl::StrCat("pod shape id ", record.id, " is beyond the limit of ",
                                                       limits_.pod_shapes, " pod shapes"));
    }
    if (!ids.insert(record.id).second) {
      return absl::InvalidArgumentError(absl::StrCat("pod shape ", record.id, " is sent twice in one batch"));
    }
    const size_t id = static_cast<size_t>(record.id);
    if (id >= content.shapes.size() || content.shapes[id].pods == 0) continue;
    if (IsUnchanged(record, content)) continue;
    return absl::InvalidArgumentError(absl::StrCat("pod shape ", record.id,
                                                   " is given another content while ",
                                                   content.shapes[id].pods, " pods refer to it"));
  }
  return absl::OkStatus();
}

absl::Status View::CheckNodes(const Batch& batch, const Content& content) const {
  const ClusterState& cluster = *content.cluster;
  absl::flat_hash_set<int32_t> new_shapes;
  for (const PodShapeRecord& record : batch.pod_shapes) new_shapes.insert(record.id);
  const auto known = [&](int32_t id) {
    if (id < 0) return false;
    const size_t i = static_cast<size_t>(id);
    return (i < content.shapes.size() && content.shapes[i].shape >= 0) || new_shapes.contains(id);
  };

  absl::flat_hash_set<Slot> touched;
  for (const Slot slot : batch.removed_slots) touched.insert(slot);
  absl::flat_hash_set<Slot> slots;
  absl::flat_hash_map<absl::string_view, Slot> names;
  int64_t pods = cluster.total_pods();
  for (const NodeRecord& node : batch.nodes) {
    if (absl::Status status = CheckSlot(node.slot, limits_.nodes, Describe(node)); !status.ok())
      return status;
    if (!slots.insert(node.slot).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(node), ": the slot is sent twice in one batch"));
    }
    const auto [other, is_new] = names.insert({node.name, node.slot});
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(node), ": slot ", static_cast<int32_t>(other->second), " has a node of the same name"));
    }
    for (size_t i = 0; i < node.pods.size(); ++i) {
      if (known(node.pods[i].shape)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(node), ": pod ", i, " \"", absl::CHexEscape(node.pods[i].name),
                       "\" refers to pod shape ", node.pods[i].shape, ", which was never sent"));
    }
    touched.insert(node.slot);
    pods += static_cast<int64_t>(node.pods.size());
  }
  for (const NodeRecord& node : batch.nodes) {
    const std::optional<Slot> other = cluster.Find(node.name);
    if (!other.has_value() || touched.contains(*other)) continue;
    return absl::InvalidArgumentError(absl::StrCat(Describe(node), ": slot ", static_cast<int32_t>(*other),
                                                   " has a node of the same name"));
  }
  for (const Slot slot : touched) {
    if (cluster.Occupied(slot)) pods -= static_cast<int64_t>(cluster.pods(slot).pods().size());
  }
  if (pods > limits_.pods) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the view would hold ", pods, " pods, the limit is ", limits_.pods));
  }
  return absl::OkStatus();
}

}  // namespace loadline
