#include "core/cluster/objects.h"

#include <utility>

#include "core/base/fingerprint.h"

namespace loadline {
namespace {

std::string ToString(absl::string_view text) { return std::string(text.data(), text.size()); }

}  // namespace

bool IsNamespaced(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolumeClaim || kind == ObjectKind::kDisruptionBudget ||
         IsWorkload(kind);
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
  auto& objects = objects_[static_cast<size_t>(object.key.kind)];
  fingerprint_ += object.fingerprint;
  if (const auto found = objects.find(object.key); found != objects.end()) {
    fingerprint_ -= found->second.fingerprint;
    found->second = std::move(object);
  } else {
    ObjectKey key = object.key;
    objects.emplace(std::move(key), std::move(object));
  }
}

void ClusterObjects::Remove(const ObjectKey& key) {
  auto& objects = objects_[static_cast<size_t>(key.kind)];
  const auto found = objects.find(key);
  if (found == objects.end()) return;
  ++version_;
  fingerprint_ -= found->second.fingerprint;
  objects.erase(found);
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

template <typename Content>
const Content* ClusterObjects::Find(const ObjectKey& key) const {
  const auto& objects = objects_[static_cast<size_t>(key.kind)];
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : &std::get<Content>(found->second.content);
}

const Namespace* ClusterObjects::FindNamespace(absl::string_view name) const {
  return Find<Namespace>({ObjectKind::kNamespace, "", ToString(name)});
}

const PersistentVolume* ClusterObjects::FindVolume(absl::string_view name) const {
  return Find<PersistentVolume>({ObjectKind::kPersistentVolume, "", ToString(name)});
}

const PersistentVolumeClaim* ClusterObjects::FindClaim(absl::string_view namespace_name,
                                                       absl::string_view name) const {
  return Find<PersistentVolumeClaim>(
      {ObjectKind::kPersistentVolumeClaim, ToString(namespace_name), ToString(name)});
}

const StorageClass* ClusterObjects::FindStorageClass(absl::string_view name) const {
  return Find<StorageClass>({ObjectKind::kStorageClass, "", ToString(name)});
}

const CsiNode* ClusterObjects::FindCsiNode(absl::string_view name) const {
  return Find<CsiNode>({ObjectKind::kCsiNode, "", ToString(name)});
}

const Workload* ClusterObjects::FindWorkload(ObjectKind kind, absl::string_view namespace_name,
                                             absl::string_view name) const {
  return Find<Workload>({kind, ToString(namespace_name), ToString(name)});
}

int64_t ClusterObjects::size() const {
  size_t size = 0;
  for (const auto& objects : objects_) size += objects.size();
  return static_cast<int64_t>(size);
}

}  // namespace loadline
