#include "core/slack/slack_wishes.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

// system-cluster-critical and above.
constexpr int32_t kSystemPriority = 2'000'000'000;
constexpr int64_t kMostCopies = int64_t{1} << 31;
constexpr char kTemplateHash[] = "pod-template-hash";

constexpr ObjectKind kAsking[] = {ObjectKind::kDeployment, ObjectKind::kReplicaSet,
                                  ObjectKind::kReplicationController, ObjectKind::kStatefulSet,
                                  ObjectKind::kJob};

absl::string_view KindName(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kDeployment:
      return "Deployment";
    case ObjectKind::kReplicaSet:
      return "ReplicaSet";
    case ObjectKind::kReplicationController:
      return "ReplicationController";
    case ObjectKind::kStatefulSet:
      return "StatefulSet";
    case ObjectKind::kJob:
      return "Job";
    default:
      return "object";
  }
}

const Workload* FindOwner(const PodTraits& traits, const std::string& namespace_name,
                          const ClusterObjects& objects) {
  if (!traits.owner.has_value()) return nullptr;
  for (const ObjectKind kind : kAsking) {
    if (traits.owner->kind != KindName(kind)) continue;
    const Workload* const found = objects.FindWorkload(kind, namespace_name, traits.owner->name);
    return found != nullptr && found->uid == traits.owner->uid ? found : nullptr;
  }
  return nullptr;
}

// Whether a ReplicaSet is one of a Deployment: which speaks for it, or it is one that was rolled over.
bool IsOfDeployment(const ObjectKey& key, const Workload& workload, const ClusterObjects& objects) {
  if (key.kind != ObjectKind::kReplicaSet || !workload.pod.has_value()) return false;
  const std::string* const hash = workload.pod->labels.Find(kTemplateHash);
  if (hash == nullptr || !absl::EndsWith(key.name, absl::StrCat("-", *hash))) return false;
  const std::string name = key.name.substr(0, key.name.size() - hash->size() - 1);
  return workload.target_replicas == 0 ||
         objects.FindWorkload(ObjectKind::kDeployment, key.namespace_name, name) != nullptr;
}

class Collector {
 public:
  Collector(const ClusterState& cluster, const SlackRooms& rooms) : cluster_(cluster), rooms_(rooms) {}

  SlackWishes Collect() {
    for (const ObjectKind kind : kAsking) {
      for (const auto& [key, object] : cluster_.objects().of(kind)) {
        const auto* const workload = std::get_if<Workload>(&object.content);
        if (workload == nullptr || workload->slack == SlackWish()) continue;
        if (!IsOfDeployment(key, *workload, cluster_.objects())) Read(key, *workload);
      }
    }
    for (const size_t slot : rooms_.with_wishes()) ReadPods(Slot{static_cast<int32_t>(slot)});
    for (auto& [owner, wish] : owned_) Add(wish.source, *wish.shape, wish.copies);
    SlackWishes wishes;
    for (auto& [key, pod] : pods_) {
      std::sort(pod.sources.begin(), pod.sources.end());
      wishes.pods.push_back(std::move(pod));
    }
    std::sort(errors_.begin(), errors_.end(), [](const WishError& a, const WishError& b) {
      return std::tie(a.source, a.text) < std::tie(b.source, b.text);
    });
    errors_.erase(std::unique(errors_.begin(), errors_.end()), errors_.end());
    wishes.errors = std::move(errors_);
    return wishes;
  }

 private:
  // What the pods of one owner say together.
  struct Owned {
    std::string source;
    int32_t copies = 0;
    const PodShape* shape = nullptr;
  };

  void Read(const ObjectKey& key, const Workload& workload) {
    const std::string source = absl::StrCat(KindName(key.kind), " ", key.namespace_name, "/", key.name);
    if (!workload.slack.error.empty()) {
      errors_.push_back({source, workload.slack.error});
    } else if (workload.slack.copies.value_or(0) > 0) {
      if (workload.pod.has_value()) {
        Add(source, *workload.pod, *workload.slack.copies);
      } else {
        errors_.push_back({source, "its pod template is not known"});
      }
    }
  }

  void ReadPods(Slot slot) {
    const NodePods& pods = cluster_.pods(slot);
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      const PodShape& shape = cluster_.pod_shapes()[pods.pods()[i].shape];
      const PodTraits& traits = TraitsOf(shape);
      if (shape.finished || traits.placeholder || traits.slack == SlackWish()) continue;
      if (IsDaemonPod(traits) || FindOwner(traits, shape.namespace_name, cluster_.objects()) != nullptr)
        continue;
      const std::string pod = absl::StrCat("Pod ", shape.namespace_name, "/", pods.name(i));
      const std::string source =
          traits.owner.has_value()
              ? absl::StrCat(traits.owner->kind, " ", shape.namespace_name, "/", traits.owner->name)
              : pod;
      if (!traits.slack.error.empty()) errors_.push_back({source, traits.slack.error});
      const int32_t copies = traits.slack.copies.value_or(0);
      if (!traits.slack.error.empty() || copies == 0) continue;
      Owned& wish = owned_[traits.owner.has_value() ? traits.owner->uid : pod];
      // Of pods that differ the one that asks for most, whatever their order.
      if (wish.shape == nullptr ||
          std::tie(copies, shape.fingerprint) > std::tie(wish.copies, wish.shape->fingerprint)) {
        wish = {source, copies, &shape};
      }
    }
  }

  void Add(const std::string& source, const PodShape& shape, int64_t copies) {
    const std::string key = absl::StrCat("pod-", absl::Hex(shape.fingerprint, absl::kZeroPad16));
    MirroredPod& pod = pods_[key];
    if (pod.sources.empty()) {
      pod.key = key;
      pod.shape = shape;
      pod.size = CpuMemoryOf(shape.requests);
    }
    pod.copies = std::min(pod.copies + copies, kMostCopies);
    pod.sources.push_back(source);
  }

  const ClusterState& cluster_;
  const SlackRooms& rooms_;
  absl::btree_map<std::string, MirroredPod> pods_;
  absl::btree_map<std::string, Owned> owned_;
  std::vector<WishError> errors_;
};

}  // namespace

SlackWishes CollectWishes(const ClusterState& cluster, const SlackRooms& rooms) {
  return Collector(cluster, rooms).Collect();
}

LabelKeys SlackLabelKeys(const ClusterObjects& objects) {
  LabelKeys keys;
  for (const ObjectKind kind : kAsking) {
    for (const auto& [key, object] : objects.of(kind)) {
      const auto* const workload = std::get_if<Workload>(&object.content);
      if (workload == nullptr || workload->slack.copies.value_or(0) == 0) continue;
      if (workload->pod.has_value() && workload->pod->rules != nullptr) {
        workload->pod->rules->AddLabelKeys(&keys);
      }
    }
  }
  return keys;
}

bool IsEligible(const SlackPod& pod, const SlackRooms& rooms, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(pod.shape);
  if (pod.placeholder || pod.overhead || traits.slack.opted_out || traits.priority >= kSystemPriority) {
    return false;
  }
  if (!traits.owner.has_value() || traits.owner->kind == "StatefulSet") return false;
  if (pod.shape.rules != nullptr && !pod.shape.rules->volumes.empty()) return false;
  const Workload* const owner = FindOwner(traits, pod.shape.namespace_name, objects);
  if (owner == nullptr) return rooms.PodsOf(traits.owner->uid) > 1;
  return owner->target_replicas > 1 && !owner->slack.opted_out;
}

std::vector<CpuMemory> EligibleSizes(const SlackClass& of, const SlackRooms& rooms,
                                     const ClusterObjects& objects) {
  std::vector<CpuMemory> sizes;
  for (const auto& [number, count] : of.pods) {
    const SlackPod& pod = rooms.pod(number);
    if (IsEligible(pod, rooms, objects)) sizes.push_back(pod.requests);
  }
  const auto order = [](const CpuMemory& a, const CpuMemory& b) {
    return a.cpu != b.cpu ? a.cpu < b.cpu : a.memory < b.memory;
  };
  std::sort(sizes.begin(), sizes.end(), order);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace loadline
