#include "core/cluster/objects.h"

#include <utility>

#include "absl/strings/match.h"
#include "core/base/fingerprint.h"

namespace loadline {
namespace {

// Clients may leave out UIDs.
bool MayOwn(const Workload& workload, const PodOwner& owner) {
  return workload.uid.empty() || owner.uid.empty() || workload.uid == owner.uid;
}

}  // namespace

absl::string_view Name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kNamespace:
      return "Namespace";
    case ObjectKind::kPersistentVolume:
      return "PersistentVolume";
    case ObjectKind::kPersistentVolumeClaim:
      return "PersistentVolumeClaim";
    case ObjectKind::kStorageClass:
      return "StorageClass";
    case ObjectKind::kCsiNode:
      return "CSINode";
    case ObjectKind::kDisruptionBudget:
      return "PodDisruptionBudget";
    case ObjectKind::kReplicationController:
      return "ReplicationController";
    case ObjectKind::kReplicaSet:
      return "ReplicaSet";
    case ObjectKind::kStatefulSet:
      return "StatefulSet";
    case ObjectKind::kDaemonSet:
      return "DaemonSet";
    case ObjectKind::kJob:
      return "Job";
    case ObjectKind::kDeployment:
      return "Deployment";
    case ObjectKind::kCsiDriver:
      return "CSIDriver";
    case ObjectKind::kDeviceClass:
      return "DeviceClass";
    case ObjectKind::kWorkloadUsage:
      return "WorkloadUsage";
  }
  return "invalid kind";
}

bool IsNamespaced(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolumeClaim || kind == ObjectKind::kDisruptionBudget ||
         kind == ObjectKind::kWorkloadUsage || IsWorkload(kind);
}

bool IsWorkload(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kReplicationController:
    case ObjectKind::kReplicaSet:
    case ObjectKind::kStatefulSet:
    case ObjectKind::kDaemonSet:
    case ObjectKind::kJob:
    case ObjectKind::kDeployment:
      return true;
    default:
      return false;
  }
}

void ClusterObjects::Set(ClusterObject object) {
  ++version_;
  if (object.key.kind == ObjectKind::kWorkloadUsage) ++usage_version_;
  Forget(object.key);
  fingerprint_ += object.fingerprint;
  if (!object.unreadable.empty()) {
    // Many texts would take more memory than they are worth.
    int32_t& reasons = reasons_[static_cast<size_t>(object.key.kind)];
    const bool reported = reasons < kMostReasons;
    if (reported) ++reasons;
    unreadable_.emplace(object.key, reported ? std::move(object.unreadable) : std::string());
  }
  ObjectKey key = object.key;
  if (object.is_left_out) {
    left_out_.emplace(std::move(key), object.fingerprint);
  } else {
    objects_[static_cast<size_t>(key.kind)].emplace(std::move(key), std::move(object));
  }
}

void ClusterObjects::Remove(const ObjectKey& key) {
  const int64_t before = size();
  Forget(key);
  if (size() == before) return;
  ++version_;
  if (key.kind == ObjectKind::kWorkloadUsage) ++usage_version_;
}

// Takes the object out, if it is there.
void ClusterObjects::Forget(const ObjectKey& key) {
  auto& objects = objects_[static_cast<size_t>(key.kind)];
  if (const auto found = objects.find(key); found != objects.end()) {
    fingerprint_ -= found->second.fingerprint;
    objects.erase(found);
  } else if (const auto left_out = left_out_.find(key); left_out != left_out_.end()) {
    fingerprint_ -= left_out->second;
    left_out_.erase(left_out);
  }
  const auto unreadable = unreadable_.find(key);
  if (unreadable == unreadable_.end()) return;
  if (!unreadable->second.empty()) --reasons_[static_cast<size_t>(key.kind)];
  unreadable_.erase(unreadable);
}

void ClusterObjects::SetComplete(ObjectKind kind) {
  bool& complete = complete_[static_cast<size_t>(kind)];
  if (complete) return;
  complete = true;
  ++version_;
  FingerprintBuilder builder;
  builder.Add("complete");
  builder.Add(static_cast<int64_t>(kind));
  fingerprint_ += builder.Finish();
}

bool ClusterObjects::KnownMissing(ObjectKind kind, absl::string_view namespace_name,
                                  absl::string_view name) const {
  if (!complete(kind)) return false;
  const ObjectKey key{kind, std::string(namespace_name), std::string(name)};
  return !left_out_.contains(key) && !objects_[static_cast<size_t>(kind)].contains(key);
}

template <typename Content>
const Content* ClusterObjects::Find(const ObjectKey& key) const {
  const auto& objects = objects_[static_cast<size_t>(key.kind)];
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : &std::get<Content>(found->second.content);
}

const Namespace* ClusterObjects::FindNamespace(absl::string_view name) const {
  return Find<Namespace>({ObjectKind::kNamespace, "", std::string(name)});
}

const PersistentVolume* ClusterObjects::FindVolume(absl::string_view name) const {
  return Find<PersistentVolume>({ObjectKind::kPersistentVolume, "", std::string(name)});
}

const PersistentVolumeClaim* ClusterObjects::FindClaim(absl::string_view namespace_name,
                                                       absl::string_view name) const {
  return Find<PersistentVolumeClaim>(
      {ObjectKind::kPersistentVolumeClaim, std::string(namespace_name), std::string(name)});
}

const StorageClass* ClusterObjects::FindStorageClass(absl::string_view name) const {
  return Find<StorageClass>({ObjectKind::kStorageClass, "", std::string(name)});
}

const CsiNode* ClusterObjects::FindCsiNode(absl::string_view name) const {
  return Find<CsiNode>({ObjectKind::kCsiNode, "", std::string(name)});
}

const CsiDriver* ClusterObjects::FindCsiDriver(absl::string_view name) const {
  return Find<CsiDriver>({ObjectKind::kCsiDriver, "", std::string(name)});
}

const Workload* ClusterObjects::FindWorkload(ObjectKind kind, absl::string_view namespace_name,
                                             absl::string_view name) const {
  return Find<Workload>({kind, std::string(namespace_name), std::string(name)});
}

const Workload* ClusterObjects::FindOwner(ObjectKind kind, absl::string_view namespace_name,
                                          const PodOwner& owner) const {
  const Workload* const found = FindWorkload(kind, namespace_name, owner.name);
  return found != nullptr && MayOwn(*found, owner) ? found : nullptr;
}

bool OfKnownDaemonSet(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  if (!IsDaemonPod(traits) || traits.daemon_by_annotation) return traits.daemon_by_annotation;
  const PodOwner& owner = *traits.owner;
  // Clients may leave out what they have no use for.
  if (!owner.api_version.empty() && !absl::StartsWith(owner.api_version, "apps/")) return false;
  if (objects.KnownMissing(ObjectKind::kDaemonSet, shape.namespace_name, owner.name)) return false;
  const Workload* const found =
      objects.FindWorkload(ObjectKind::kDaemonSet, shape.namespace_name, owner.name);
  return found == nullptr || !objects.complete(ObjectKind::kDaemonSet) || MayOwn(*found, owner);
}

int64_t ClusterObjects::size() const {
  size_t size = left_out_.size();
  for (const auto& objects : objects_) size += objects.size();
  return static_cast<int64_t>(size);
}

bool BelongsToNode(const PodShape& shape, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(shape);
  return OfKnownDaemonSet(shape, objects) || traits.static_pod || traits.mirror;
}

bool IsKubeletsMirror(const PodShape& shape) {
  const PodTraits& traits = TraitsOf(shape);
  const bool of_node = traits.owner.has_value() && traits.owner->kind == "Node";
  return traits.mirror && (of_node || shape.namespace_name == "kube-system");
}

}  // namespace loadline
