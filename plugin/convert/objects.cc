#include "plugin/convert/objects.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/fingerprint.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/selectors.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"

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

absl::StatusOr<Namespace> Read(const k8s::v1::Namespace& message) {
  return Namespace{ReadLabels(message.metadata().labels())};
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

absl::StatusOr<PersistentVolume> Read(const k8s::v1::PersistentVolume& message) {
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

absl::StatusOr<PersistentVolumeClaim> Read(const k8s::v1::PersistentVolumeClaim& message) {
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

absl::StatusOr<StorageClass> Read(const k8s::v1::StorageClass& message) {
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

absl::StatusOr<CsiNode> Read(const k8s::v1::CSINode& message) {
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

absl::StatusOr<DisruptionBudget> Read(const k8s::v1::PodDisruptionBudget& message) {
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

// Counts as Cluster Autoscaler's replica counter takes them.
void ReadReplicas(const k8s::v1::ReplicaSet& message, Workload* workload) {
  workload->target_replicas = message.spec().has_replicas() ? message.spec().replicas() : 1;
  workload->current_replicas = message.status().replicas();
}

void ReadReplicas(const k8s::v1::StatefulSet& message, Workload* workload) {
  workload->target_replicas = message.spec().has_replicas() ? message.spec().replicas() : 1;
  workload->current_replicas = message.status().current_replicas();
}

void ReadReplicas(const k8s::v1::Deployment& message, Workload* workload) {
  workload->target_replicas = message.spec().has_replicas() ? message.spec().replicas() : 1;
  workload->current_replicas = message.status().replicas();
}

void ReadReplicas(const k8s::v1::DaemonSet& message, Workload* workload) {
  workload->target_replicas = message.status().desired_number_scheduled();
  workload->current_replicas = message.status().current_number_scheduled();
}

void ReadReplicas(const k8s::v1::Job& message, Workload* workload) {
  workload->target_replicas = message.spec().has_parallelism() ? message.spec().parallelism() : 1;
  if (message.spec().has_completions()) {
    workload->target_replicas =
        std::min(workload->target_replicas,
                 int64_t{message.spec().completions()} - int64_t{message.status().succeeded()});
  }
  workload->current_replicas = message.status().active();
  for (const k8s::v1::JobCondition& condition : message.status().conditions()) {
    const bool ends = condition.type() == "Complete" || condition.type() == "Failed";
    if (ends && condition.status() == "True") workload->target_replicas = 0;
  }
}

// A Job that has ended will have no more pods.
template <typename Message>
bool HasEnded(const Message&, const Workload&) {
  return false;
}
bool HasEnded(const k8s::v1::Job&, const Workload& workload) {
  return workload.target_replicas <= 0 && workload.current_replicas <= 0;
}

// What the annotations of a workload say, and what it leaves open those of its template.
SlackWish Prefer(SlackWish own, const SlackWish& of_template) {
  if (own == SlackWish()) return of_template;
  if (!own.copies.has_value()) own.copies = of_template.copies;
  own.opted_out |= of_template.opted_out;
  if (own.error.empty()) own.error = of_template.error;
  return own;
}

// A template that cannot be read is as one that was not sent, which `unreadable` tells.
template <typename Message>
Workload ReadWorkload(const Message& message, ResourceReader* resources, std::string* unreadable) {
  Workload workload;
  workload.uid = message.metadata().uid();
  ReadReplicas(message, &workload);
  workload.slack = ReadSlackWish(message.metadata().annotations());
  if (HasEnded(message, workload)) workload.slack = SlackWish();
  if (!message.spec().has_template_()) return workload;
  k8s::v1::Pod pod = message.spec().template_();
  if (!HasEnded(message, workload)) {
    workload.slack = Prefer(workload.slack, ReadSlackWish(pod.metadata().annotations()));
  }
  // What the API server fills in for the pods, but for the owner: of a template it is that of the workload,
  // such as the CronJob of a Job, and so is the age.
  pod.mutable_metadata()->set_namespace_(message.metadata().namespace_());
  *pod.mutable_metadata()->mutable_owner_references() = message.metadata().owner_references();
  PodDecoder decoder(resources);
  absl::StatusOr<PodShape> shape = decoder.Decode(pod.SerializeAsString(), PodRole::kIncoming);
  if (!shape.ok()) {
    *unreadable = ReasonOf(Annotate(shape.status(), "spec.template", " "));
    return workload;
  }
  SetLabels(decoder.labels(), &*shape);
  if (message.metadata().has_creation_timestamp()) {
    PodTraits traits = TraitsOf(*shape);
    traits.created_s = message.metadata().creation_timestamp().seconds();
    shape->traits = std::make_shared<const PodTraits>(std::move(traits));
  }
  workload.pod = *std::move(shape);
  return workload;
}

// An object that nobody can read. A budget of it covers all pods of its namespace, none of which it lets go.
void LeaveOut(const absl::Status& reason, ClusterObject* object) {
  object->unreadable = ReasonOf(reason);
  if (object->key.kind != ObjectKind::kDisruptionBudget) {
    object->is_left_out = true;
    return;
  }
  DisruptionBudget& budget = object->content.emplace<DisruptionBudget>();
  budget.selector.nothing = true;
  budget.selector_error = object->unreadable;
}

// Reads the content of an object with a key; `Message` has metadata.
template <typename Message>
void ReadContent(const Message& message, ResourceReader* resources, ClusterObject* object) {
  if constexpr (requires { message.spec().template_(); }) {
    object->content = ReadWorkload(message, resources, &object->unreadable);
  } else {
    auto content = Read(message);
    if (content.ok()) {
      object->content = *std::move(content);
    } else {
      LeaveOut(content.status(), object);
    }
  }
}

// Parses and reads one object.
template <typename Message>
absl::StatusOr<ClusterObject> DecodeAs(absl::string_view bytes, ObjectKind kind, absl::string_view type,
                                       ResourceReader* resources) {
  Message message;
  absl::Status status;
  if (bytes.size() > kMaxObjectBytes) {
    status = absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes, at most ", kMaxObjectBytes, " are allowed"));
    ReadName(bytes, message.mutable_metadata());
  } else {
    status = Parse(bytes, type, &message);
  }
  ClusterObject object;
  object.key = {kind, message.metadata().namespace_(), message.metadata().name()};
  if (!IsNamespaced(kind)) object.key.namespace_name.clear();
  if (object.key.name.empty()) {
    return status.ok() ? absl::InvalidArgumentError("has an empty metadata.name") : status;
  }
  for (std::string* const text : {&object.key.namespace_name, &object.key.name}) {
    if (absl::Status bad_name = CheckName(*text); !bad_name.ok()) {
      status.Update(Annotate(bad_name, "metadata"));
      *text = HeldName(*text);
    }
  }
  if (status.ok()) {
    ReadContent(message, resources, &object);
  } else {
    LeaveOut(status, &object);
  }
  FingerprintBuilder builder;
  builder.Add(static_cast<int64_t>(kind));
  builder.Add(bytes);
  object.fingerprint = builder.Finish();
  return object;
}

}  // namespace

absl::StatusOr<ObjectKind> DecodeObjectKind(v1::ObjectKind kind) {
  switch (kind) {
    case v1::NAMESPACE:
      return ObjectKind::kNamespace;
    case v1::PERSISTENT_VOLUME:
      return ObjectKind::kPersistentVolume;
    case v1::PERSISTENT_VOLUME_CLAIM:
      return ObjectKind::kPersistentVolumeClaim;
    case v1::STORAGE_CLASS:
      return ObjectKind::kStorageClass;
    case v1::CSI_NODE:
      return ObjectKind::kCsiNode;
    case v1::POD_DISRUPTION_BUDGET:
      return ObjectKind::kDisruptionBudget;
    case v1::REPLICATION_CONTROLLER:
      return ObjectKind::kReplicationController;
    case v1::REPLICA_SET:
      return ObjectKind::kReplicaSet;
    case v1::STATEFUL_SET:
      return ObjectKind::kStatefulSet;
    case v1::DAEMON_SET:
      return ObjectKind::kDaemonSet;
    case v1::JOB:
      return ObjectKind::kJob;
    case v1::DEPLOYMENT:
      return ObjectKind::kDeployment;
    default:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("kind: ", static_cast<int>(kind), " is not a kind of objects"));
}

v1::ObjectKind EncodeObjectKind(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kNamespace:
      return v1::NAMESPACE;
    case ObjectKind::kPersistentVolume:
      return v1::PERSISTENT_VOLUME;
    case ObjectKind::kPersistentVolumeClaim:
      return v1::PERSISTENT_VOLUME_CLAIM;
    case ObjectKind::kStorageClass:
      return v1::STORAGE_CLASS;
    case ObjectKind::kCsiNode:
      return v1::CSI_NODE;
    case ObjectKind::kDisruptionBudget:
      return v1::POD_DISRUPTION_BUDGET;
    case ObjectKind::kReplicationController:
      return v1::REPLICATION_CONTROLLER;
    case ObjectKind::kReplicaSet:
      return v1::REPLICA_SET;
    case ObjectKind::kStatefulSet:
      return v1::STATEFUL_SET;
    case ObjectKind::kDaemonSet:
      return v1::DAEMON_SET;
    case ObjectKind::kJob:
      return v1::JOB;
    case ObjectKind::kDeployment:
      return v1::DEPLOYMENT;
  }
  return v1::OBJECT_KIND_UNSPECIFIED;
}

absl::StatusOr<ObjectKey> DecodeObjectKey(const v1::ObjectKey& message) {
  const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(message.kind());
  if (!kind.ok()) return kind.status();
  if (message.name().empty()) return absl::InvalidArgumentError("name: is empty");
  return ObjectKey{*kind, IsNamespaced(*kind) ? HeldName(message.namespace_()) : "",
                   HeldName(message.name())};
}

absl::StatusOr<ClusterObject> DecodeObject(const v1::ClusterObject& message, ResourceReader* resources) {
  const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(message.kind());
  if (!kind.ok()) return kind.status();
  const std::string& bytes = message.object();
  switch (*kind) {
    case ObjectKind::kNamespace:
      return DecodeAs<k8s::v1::Namespace>(bytes, *kind, "k8s.io.api.core.v1.Namespace", resources);
    case ObjectKind::kPersistentVolume:
      return DecodeAs<k8s::v1::PersistentVolume>(bytes, *kind, "k8s.io.api.core.v1.PersistentVolume",
                                                 resources);
    case ObjectKind::kPersistentVolumeClaim:
      return DecodeAs<k8s::v1::PersistentVolumeClaim>(bytes, *kind,
                                                      "k8s.io.api.core.v1.PersistentVolumeClaim", resources);
    case ObjectKind::kStorageClass:
      return DecodeAs<k8s::v1::StorageClass>(bytes, *kind, "k8s.io.api.storage.v1.StorageClass", resources);
    case ObjectKind::kCsiNode:
      return DecodeAs<k8s::v1::CSINode>(bytes, *kind, "k8s.io.api.storage.v1.CSINode", resources);
    case ObjectKind::kDisruptionBudget:
      return DecodeAs<k8s::v1::PodDisruptionBudget>(bytes, *kind, "k8s.io.api.policy.v1.PodDisruptionBudget",
                                                    resources);
    case ObjectKind::kReplicationController:
      return DecodeAs<k8s::v1::ReplicaSet>(bytes, *kind, "k8s.io.api.core.v1.ReplicationController",
                                           resources);
    case ObjectKind::kReplicaSet:
      return DecodeAs<k8s::v1::ReplicaSet>(bytes, *kind, "k8s.io.api.apps.v1.ReplicaSet", resources);
    case ObjectKind::kStatefulSet:
      return DecodeAs<k8s::v1::StatefulSet>(bytes, *kind, "k8s.io.api.apps.v1.StatefulSet", resources);
    case ObjectKind::kDaemonSet:
      return DecodeAs<k8s::v1::DaemonSet>(bytes, *kind, "k8s.io.api.apps.v1.DaemonSet", resources);
    case ObjectKind::kJob:
      return DecodeAs<k8s::v1::Job>(bytes, *kind, "k8s.io.api.batch.v1.Job", resources);
    case ObjectKind::kDeployment:
      return DecodeAs<k8s::v1::Deployment>(bytes, *kind, "k8s.io.api.apps.v1.Deployment", resources);
  }
  return absl::InternalError("a kind of objects without a reader");
}

}  // namespace loadline
