#include "plugin/convert/node.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/cluster/node_kind.h"
#include "plugin/convert/known_fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"

namespace loadline {
namespace {

// Returns what the node has of the resources that it offers; empty: just that. An amount that cannot be read
// is as what is offered: only prices read it.
ResourceAmounts ReadCapacity(const QuantityEntries& entries, const ResourceAmounts& offered,
                             const ResourceNames& names) {
  ResourceList capacity;
  for (const k8s::v1::QuantityEntry& entry : entries) {
    const std::optional<ResourceId> id = names.Find(entry.key());
    if (!id.has_value() || offered.Find(*id) == nullptr) continue;
    const absl::StatusOr<ParsedQuantity> amount = ParseAmount(entry.value().string());
    if (amount.ok()) capacity[*id] = amount->value;
  }
  ResourceAmounts amounts = offered;
  for (const auto& [id, amount] : ToAmounts(capacity)) amounts[id] = amount;
  return amounts == offered ? ResourceAmounts() : amounts;
}

}  // namespace

NodeShape WithVolumeLimits(NodeShape shape, const ResourceNames& names) {
  ResourceAmounts others;
  for (const auto& [resource, amount] : shape.allocatable) {
    absl::string_view driver = names.name(resource);
    if (absl::ConsumePrefix(&driver, "attachable-volumes-csi-")) {
      shape.volume_limits[std::string(driver)] = amount;
    } else {
      others[resource] = amount;
    }
  }
  if (shape.volume_limits.empty()) return shape;
  shape.allocatable = std::move(others);
  return CompleteNodeShape(std::move(shape), names);
}

absl::StatusOr<DecodedNode> NodeDecoder::Decode(absl::string_view bytes) {
  absl::StatusOr<DecodedNode> node = DecodeBound(bytes);
  if (!node.ok() || node->traits.unreadable.empty()) return node;
  return absl::InvalidArgumentError(node->traits.unreadable);
}

absl::StatusOr<DecodedNode> NodeDecoder::DecodeBound(absl::string_view bytes) {
  message_.Clear();
  absl::Status status = CheckObjectSize(bytes);
  if (!status.ok()) {
    ReadName(bytes, message_.mutable_metadata());
    if (message_.metadata().name().empty()) return status;
  } else {
    status = ParseObject(bytes, "k8s.io.api.core.v1.Node", &message_);
  }
  const std::string& name = message_.metadata().name();
  if (!status.ok() && name.empty()) return status;
  if (name.empty()) return absl::InvalidArgumentError("has an empty metadata.name");
  if (absl::Status bad_name = CheckName(name); !bad_name.ok()) {
    status.Update(Annotate(bad_name, "metadata.name"));
  }
  const k8s::v1::NodeStatus& node_status = message_.status();
  const bool has_allocatable = !node_status.allocatable().empty();
  ResourceList offered;
  resources_->OfNode();
  const absl::Status amounts =
      has_allocatable ? resources_->Read(node_status.allocatable(), "status.allocatable", &offered)
                      : resources_->Read(node_status.capacity(), "status.capacity", &offered);
  if (!amounts.ok()) status.Update(Annotate(amounts, absl::StrCat("(", Quoted(name), ")")));
  Labels labels = ReadLabels(message_.metadata().labels());
  std::optional<std::string> hostname = labels.Take(kHostnameLabel);
  std::vector<Taint> taints;
  for (const k8s::v1::Taint& taint : message_.spec().taints()) {
    taints.push_back({taint.key(), taint.value(), taint.effect()});
  }
  NodeShape shape;
  shape.allocatable = ToAmounts(offered);
  shape.labels = std::move(labels);
  shape.taints = std::move(taints);
  shape.unschedulable = message_.spec().unschedulable();
  shape.declared_features = {node_status.declared_features().begin(), node_status.declared_features().end()};
  shape.unknown_field = UnknownFieldOf(message_);
  DecodedNode node{StoredName(name), CompleteNodeShape(std::move(shape), resources_->names()),
                   std::move(hostname), ReadNodeTraits(message_)};
  node.traits.kind = KindOfNode(node.shape.labels, node.shape.taints, message_.spec().provider_id());
  if (has_allocatable)
    node.traits.capacity = ReadCapacity(node_status.capacity(), node.shape.allocatable, resources_->names());
  if (!status.ok()) node.traits.unreadable = ReasonOf(status);
  return node;
}

}  // namespace loadline
