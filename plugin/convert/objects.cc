#include "plugin/convert/objects.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fingerprint.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/plain_objects.h"
#include "plugin/convert/pod.h"
#include "plugin/convert/resources.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"
#include "plugin/convert/usage.h"

namespace loadline {
namespace {

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

// Returns the wish that the annotations of a workload state, completed by those of its template.
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
  // The API server fills in these fields for the pods, but for the owner: a template gets that of the
  // workload, such as the CronJob of a Job, and its age.
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
    auto content = ReadObject(message);
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
  absl::Status status = CheckObjectSize(bytes);
  if (!status.ok()) {
    ReadName(bytes, message.mutable_metadata());
  } else {
    status = ParseObject(bytes, type, &message);
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
      *text = StoredName(*text);
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
    case v1::CSI_DRIVER:
      return ObjectKind::kCsiDriver;
    case v1::DEVICE_CLASS:
      return ObjectKind::kDeviceClass;
    case v1::WORKLOAD_USAGE:
      return ObjectKind::kWorkloadUsage;
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
    case ObjectKind::kCsiDriver:
      return v1::CSI_DRIVER;
    case ObjectKind::kDeviceClass:
      return v1::DEVICE_CLASS;
    case ObjectKind::kWorkloadUsage:
      return v1::WORKLOAD_USAGE;
  }
  return v1::OBJECT_KIND_UNSPECIFIED;
}

absl::StatusOr<ObjectKey> DecodeObjectKey(const v1::ObjectKey& message) {
  const absl::StatusOr<ObjectKind> kind = DecodeObjectKind(message.kind());
  if (!kind.ok()) return kind.status();
  if (message.name().empty()) return absl::InvalidArgumentError("name: is empty");
  return ObjectKey{*kind, IsNamespaced(*kind) ? StoredName(message.namespace_()) : "",
                   StoredName(message.name())};
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
    case ObjectKind::kCsiDriver:
      return DecodeAs<k8s::v1::CSIDriver>(bytes, *kind, "k8s.io.api.storage.v1.CSIDriver", resources);
    case ObjectKind::kDeviceClass:
      return DecodeAs<k8s::v1::DeviceClass>(bytes, *kind, "k8s.io.api.resource.v1.DeviceClass", resources);
    case ObjectKind::kWorkloadUsage:
      return DecodeWorkloadUsage(bytes);
  }
  return absl::InternalError("a kind of objects without a reader");
}

}  // namespace loadline
