#include "plugin/convert/plain_objects.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_split.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"

namespace loadline {
namespace {

constexpr char kClassAnnotation[] = "volume.beta.kubernetes.io/storage-class";

absl::StatusOr<std::optional<Quantity>> ReadStorage(const QuantityEntries& entries, absl::string_view field) {
  std::optional<Quantity> storage;
  for (const k8s::v1::QuantityEntry& entry : entries) {
    if (entry.key() != "storage") continue;
    const absl::StatusOr<ParsedQuantity> parsed = ParseQuantity(entry.value().string());
    if (!parsed.ok()) return Annotate(parsed.status(), field);
    storage = parsed->value;
  }
  return storage;
}

std::string ClassOf(const k8s::v1::ObjectMeta& metadata, const std::string& field) {
  const std::string* const annotation = FindEntry(metadata.annotations(), kClassAnnotation);
  return annotation != nullptr ? *annotation : field;
}

void ReadSource(const k8s::v1::PersistentVolumeSource& source, PersistentVolume* volume) {
  if (source.has_csi()) {
    volume->source = VolumeSource::kCsi;
    volume->driver = source.csi().driver();
    volume->handle = source.csi().volume_handle();
  } else if (source.has_gce_persistent_disk()) {
    volume->source = VolumeSource::kGcePersistentDisk;
    volume->handle = source.gce_persistent_disk().pd_name();
  } else if (source.has_aws_elastic_block_store()) {
    volume->source = VolumeSource::kAwsElasticBlockStore;
    volume->handle = source.aws_elastic_block_store().volume_id();
  } else if (source.has_cinder() || source.has_azure_file() || source.has_vsphere_volume() ||
             source.has_azure_disk() || source.has_portworx_volume()) {
    volume->source = VolumeSource::kOtherMigrated;
  }
}

}  // namespace

absl::StatusOr<Namespace> ReadObject(const k8s::v1::Namespace& message) {
  return Namespace{ReadLabels(message.metadata().labels())};
}

absl::StatusOr<PersistentVolume> ReadObject(const k8s::v1::PersistentVolume& message) {
  const k8s::v1::PersistentVolumeSpec& spec = message.spec();
  PersistentVolume volume;
  volume.name = message.metadata().name();
  volume.labels = ReadLabels(message.metadata().labels());
  volume.deleting = message.metadata().has_deletion_timestamp();
  ReadSource(spec.persistent_volume_source(), &volume);
  volume.access_modes.assign(spec.access_modes().begin(), spec.access_modes().end());
  if (spec.has_claim_ref()) {
    volume.claim = {spec.claim_ref().namespace_(), spec.claim_ref().name(), spec.claim_ref().uid()};
  }
  volume.storage_class = ClassOf(message.metadata(), spec.storage_class_name());
  if (spec.has_volume_mode()) volume.volume_mode = spec.volume_mode();
  volume.attributes_class = spec.volume_attributes_class_name();
  if (absl::Status status = CheckSelectorSize(spec.node_affinity().required()); !status.ok()) return status;
  if (spec.node_affinity().has_required())
    volume.node_affinity = ReadNodeSelector(spec.node_affinity().required());
  volume.available = message.status().phase() == "Available";
  absl::StatusOr<std::optional<Quantity>> capacity =
      ReadStorage(spec.capacity(), "spec.capacity[\"storage\"]");
  if (!capacity.ok()) return capacity.status();
  volume.capacity = *capacity;
  return volume;
}

absl::StatusOr<PersistentVolumeClaim> ReadObject(const k8s::v1::PersistentVolumeClaim& message) {
  const k8s::v1::ObjectMeta& metadata = message.metadata();
  const k8s::v1::PersistentVolumeClaimSpec& spec = message.spec();
  PersistentVolumeClaim claim;
  claim.namespace_name = metadata.namespace_();
  claim.name = metadata.name();
  claim.uid = metadata.uid();
  for (const k8s::v1::OwnerReference& owner : metadata.owner_references()) {
    if (!owner.controller()) continue;
    claim.owner_uid = owner.uid();
    break;
  }
  claim.volume_name = spec.volume_name();
  claim.bind_completed = FindEntry(metadata.annotations(), "pv.kubernetes.io/bind-completed") != nullptr;
  if (const std::string* node = FindEntry(metadata.annotations(), "volume.kubernetes.io/selected-node")) {
    claim.selected_node = *node;
  }
  claim.lost = message.status().phase() == "Lost";
  claim.deleting = metadata.has_deletion_timestamp();
  claim.access_modes.assign(spec.access_modes().begin(), spec.access_modes().end());
  claim.storage_class = ClassOf(metadata, spec.storage_class_name());
  if (spec.has_volume_mode()) claim.volume_mode = spec.volume_mode();
  claim.attributes_class = spec.volume_attributes_class_name();
  if (absl::Status status = CheckSelectorSize(spec.selector()); !status.ok()) return status;
  if (spec.has_selector()) claim.selector = ReadLabelSelector(spec.selector(), true, &claim.selector_error);
  absl::StatusOr<std::optional<Quantity>> request =
      ReadStorage(spec.resources().requests(), "spec.resources.requests[\"storage\"]");
  if (!request.ok()) return request.status();
  claim.request = *request;
  return claim;
}

absl::StatusOr<StorageClass> ReadObject(const k8s::v1::StorageClass& message) {
  StorageClass storage_class;
  storage_class.provisioner = message.provisioner();
  if (message.has_volume_binding_mode()) {
    storage_class.binding = message.volume_binding_mode() == "WaitForFirstConsumer"
                                ? StorageClass::Binding::kWaitForFirstConsumer
                                : StorageClass::Binding::kImmediate;
  }
  for (const k8s::v1::TopologySelectorTerm& term : message.allowed_topologies()) {
    StorageClass::TopologyTerm& read = storage_class.allowed_topologies.emplace_back();
    for (const k8s::v1::TopologySelectorLabelRequirement& expression : term.match_label_expressions()) {
      if (!ReadInRequirement(expression.key(), expression.values(), &read.requirements.emplace_back())) {
        read.invalid = true;
      }
    }
  }
  return storage_class;
}

absl::StatusOr<CsiNode> ReadObject(const k8s::v1::CSINode& message) {
  CsiNode node;
  for (const k8s::v1::CSINodeDriver& driver : message.spec().drivers()) {
    CsiNode::Driver& read = node.drivers.emplace_back();
    read.name = driver.name();
    if (driver.allocatable().has_count()) read.count = driver.allocatable().count();
  }
  const std::string* const plugins =
      FindEntry(message.metadata().annotations(), "storage.alpha.kubernetes.io/migrated-plugins");
  if (plugins != nullptr && !plugins->empty()) node.migrated_plugins = absl::StrSplit(*plugins, ',');
  return node;
}

absl::StatusOr<CsiDriver> ReadObject(const k8s::v1::CSIDriver& message) {
  return CsiDriver{message.spec().prevent_pod_scheduling_if_missing()};
}

absl::StatusOr<DeviceClass> ReadObject(const k8s::v1::DeviceClass& message) {
  return DeviceClass{message.spec().extended_resource_name()};
}

absl::StatusOr<DisruptionBudget> ReadObject(const k8s::v1::PodDisruptionBudget& message) {
  if (absl::Status size = CheckSelectorSize(message.spec().selector()); !size.ok()) return size;
  const k8s::v1::PodDisruptionBudgetStatus& status = message.status();
  DisruptionBudget budget;
  budget.selector =
      ReadLabelSelector(message.spec().selector(), message.spec().has_selector(), &budget.selector_error);
  if (message.spec().unhealthy_pod_eviction_policy() == "AlwaysAllow") {
    budget.unhealthy_policy = DisruptionBudget::UnhealthyPolicy::kAlwaysAllow;
  }
  budget.generation = message.metadata().generation();
  budget.observed_generation = status.observed_generation();
  budget.disruptions_allowed = status.disruptions_allowed();
  budget.current_healthy = status.current_healthy();
  budget.desired_healthy = status.desired_healthy();
  budget.expected_pods = status.expected_pods();
  for (const k8s::v1::TimeEntry& entry : status.disrupted_pods()) {
    budget.disrupted_pods.push_back({entry.key(), entry.value().seconds()});
  }
  std::stable_sort(budget.disrupted_pods.begin(), budget.disrupted_pods.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  return budget;
}

}  // namespace loadline
