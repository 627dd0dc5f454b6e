#include "core/slack/slack_wishes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

// Published: the priority of system-cluster-critical, and the lowest that is reserved for the system.
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

// Copies cost money, so the owner has to be known by its UID: its name alone does not do.
const Workload* FindOwner(const PodTraits& traits, const std::string& namespace_name,
                          const ClusterObjects& objects) {
  if (!traits.owner.has_value()) return nullptr;
  for (const ObjectKind kind : kAsking) {
    if (traits.owner->kind != KindName(kind)) continue;
    const Workload* const found = objects.FindOwner(kind, namespace_name, *traits.owner);
    return found != nullptr && found->uid == traits.owner->uid ? found : nullptr;
  }
  return nullptr;
}

// Labels that tell the replicas, or the runs, of one workload apart.
constexpr absl::string_view kOfOneRun[] = {
    "pod-template-hash", "rollouts-pod-template-hash",         "controller-uid",
    "job-name",          "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"};

// Names come from whoever may write a pod: as long as names of Kubernetes, and of its characters.
std::string Reported(absl::string_view text) {
  constexpr size_t kMostBytes = 253;
  std::string reported(text.substr(0, kMostBytes));
  for (char& c : reported) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kMostBytes ? absl::StrCat(reported, "...") : reported;
}

// The owner that makes one such workload after the other: a Deployment or Rollout its ReplicaSets, a CronJob
// its Jobs. Conversion puts the owner of a workload in the field for that of a pod.
const PodOwner* OwnerOf(const ObjectKey& key, const Workload& workload) {
  if (!workload.pod.has_value()) return nullptr;
  const std::optional<PodOwner>& owner = TraitsOf(*workload.pod).owner;
  if (!owner.has_value()) return nullptr;
  const bool of_runs = key.kind == ObjectKind::kJob && owner->kind == "CronJob";
  return key.kind == ObjectKind::kReplicaSet || of_runs ? &*owner : nullptr;
}

// `unlabelled`: whether a known namespace without the label allows them.
bool IsAllowed(const ClusterObjects& objects, const std::string& namespace_name, bool unlabelled) {
  const Namespace* const found = objects.FindNamespace(namespace_name);
  if (found == nullptr) return false;
  const std::string* const value = found->labels.Find(kCopiesLabel);
  return value != nullptr ? *value == kCopiesAllowed : unlabelled;
}

// A Deployment that a ReplicaSet is of: by its owner, or by its name.
const Workload* DeploymentOf(const ObjectKey& key, const Workload& workload, const ClusterObjects& objects) {
  if (key.kind != ObjectKind::kReplicaSet || !workload.pod.has_value()) return nullptr;
  if (const PodOwner* const owner = OwnerOf(key, workload); owner != nullptr) {
    if (owner->kind != "Deployment") return nullptr;
    return objects.FindWorkload(ObjectKind::kDeployment, key.namespace_name, owner->name);
  }
  const std::string* const hash = workload.pod->labels.Find(kTemplateHash);
  if (hash == nullptr || !absl::EndsWith(key.name, absl::StrCat("-", *hash))) return nullptr;
  const std::string name = key.name.substr(0, key.name.size() - hash->size() - 1);
  return objects.FindWorkload(ObjectKind::kDeployment, key.namespace_name, name);
}

// A copy takes no ports of the node: it only keeps room, and would keep other pods off the ports.
PodShape WithoutHostPorts(PodShape shape) {
  if (shape.rules == nullptr || shape.rules->host_ports.empty()) return shape;
  PodRules rules = *shape.rules;
  rules.host_ports.clear();
  shape.rules = rules.IsPlain() ? nullptr : std::make_shared<const PodRules>(std::move(rules));
  for (uint64_t* const fingerprint : {&shape.base_fingerprint, &shape.fingerprint}) {
    FingerprintBuilder builder;
    builder.Add(static_cast<int64_t>(*fingerprint));
    builder.Add(absl::string_view("without host ports"));
    *fingerprint = builder.Finish();
  }
  return shape;
}

std::string KeyOf(const FingerprintBuilder& builder) {
  return absl::StrCat("pod-", absl::Hex(builder.Finish(), absl::kZeroPad16));
}

std::string KeyOfTemplate(const PodShape& shape, const ResourceNames& names) {
  FingerprintBuilder builder;
  builder.Add(absl::string_view(shape.namespace_name));
  for (const auto& [resource, amount] : shape.requests) {
    builder.Add(names.name(resource));
    builder.Add(amount);
  }
  if (shape.rules != nullptr) shape.rules->AddTo(&builder);
  Labels labels = shape.labels;
  for (const absl::string_view key : kOfOneRun) labels.Take(key);
  labels.AddTo(&builder);
  return KeyOf(builder);
}

std::string KeyOfOwner(absl::string_view source) {
  FingerprintBuilder builder;
  builder.Add(absl::string_view("pods of"));
  builder.Add(source);
  return KeyOf(builder);
}

class Collector {
 public:
  Collector(const ClusterState& cluster, const SlackRooms& rooms)
      : cluster_(cluster), objects_(cluster.objects()), rooms_(rooms) {}

  SlackWishes Collect() {
    FindNewest();
    ForEachWish([this](const ObjectKey& key, const Workload& workload) {
      if (Speaks(key, workload)) Read(key, workload);
    });
    for (const size_t slot : rooms_.with_wishes()) ReadPods(Slot{static_cast<int32_t>(slot)});
    for (auto& [owner, wish] : owned_) Add(KeyOfOwner(owner), wish.source, *wish.shape, wish.copies);
    SlackWishes wishes;
    for (auto& [key, pod] : pods_) {
      std::sort(pod.sources.begin(), pod.sources.end());
      if (wishes.pods.size() < kMostMirrored) {
        if (pod.sources.size() > kMostSources) pod.sources.resize(kMostSources);
        wishes.pods.push_back(std::move(pod));
      } else {
        Refuse(pod.sources.front(), absl::StrCat("copies of at most ", kMostMirrored, " pods are kept"));
      }
    }
    std::sort(errors_.begin(), errors_.end(), [](const WishError& a, const WishError& b) {
      return std::tie(a.source, a.text) < std::tie(b.source, b.text);
    });
    errors_.erase(std::unique(errors_.begin(), errors_.end()), errors_.end());
    wishes.errors_total = static_cast<int64_t>(errors_.size());
    if (errors_.size() > kMostWishErrors) errors_.resize(kMostWishErrors);
    wishes.errors = std::move(errors_);
    return wishes;
  }

 private:
  // The wishes that the pods of one owner state together.
  struct Owned {
    std::string source;
    int32_t copies = 0;
    const PodShape* shape = nullptr;
  };
  using Age = std::pair<int64_t, absl::string_view>;  // when it was made, and its name

  template <typename Take>
  void ForEachWish(Take take) const {
    for (const ObjectKind kind : kAsking) {
      for (const auto& [key, object] : objects_.of(kind)) {
        const auto* const workload = std::get_if<Workload>(&object.content);
        if (workload != nullptr && workload->slack != SlackWish()) take(key, *workload);
      }
    }
  }

  static Age AgeOf(const ObjectKey& key, const Workload& workload) {
    return {TraitsOf(*workload.pod).created_s.value_or(0), key.name};
  }

  // Finds the newest workload of each owner, among those that are to have pods.
  void FindNewest() {
    ForEachWish([this](const ObjectKey& key, const Workload& workload) {
      const PodOwner* const owner = OwnerOf(key, workload);
      if (owner == nullptr || workload.target_replicas <= 0) return;
      const auto [newest, added] =
          newest_.try_emplace({key.namespace_name, owner->uid}, AgeOf(key, workload));
      if (!added) newest->second = std::max(newest->second, AgeOf(key, workload));
    });
  }

  // Returns whether this workload, and not another one, speaks for its pods.
  bool Speaks(const ObjectKey& key, const Workload& workload) const {
    if (key.kind == ObjectKind::kReplicaSet && workload.target_replicas <= 0) return false;
    if (DeploymentOf(key, workload, objects_) != nullptr) return false;
    const PodOwner* const owner = OwnerOf(key, workload);
    if (owner == nullptr) return true;
    const auto newest = newest_.find({key.namespace_name, owner->uid});
    return newest == newest_.end() || newest->second == AgeOf(key, workload);
  }

  void Refuse(const std::string& source, std::string text) { errors_.push_back({source, std::move(text)}); }

  // Returns false, and reports it, if copies may not be kept.
  bool MayAsk(const std::string& source, const std::string& namespace_name, bool is_buffer = false) {
    if (IsAllowed(objects_, namespace_name, /*unlabelled=*/is_buffer)) return true;
    Refuse(source, absl::StrCat("no copies: namespace ", Reported(namespace_name),
                                " does not carry the label ", kCopiesLabel, "=", kCopiesAllowed));
    return false;
  }

  void Read(const ObjectKey& key, const Workload& workload) {
    const std::string source =
        absl::StrCat(KindName(key.kind), " ", Reported(key.namespace_name), "/", Reported(key.name));
    if (!workload.slack.error.empty()) return Refuse(source, Reported(workload.slack.error));
    const bool is_buffer = key.kind == ObjectKind::kDeployment && absl::StartsWith(key.name, kBufferPrefix);
    if (workload.slack.copies.value_or(0) <= 0 || !MayAsk(source, key.namespace_name, is_buffer)) return;
    if (!workload.pod.has_value()) return Refuse(source, "its pod template is not known");
    Add(KeyOfTemplate(*workload.pod, cluster_.resource_names()), source, *workload.pod,
        *workload.slack.copies);
  }

  void ReadPods(Slot slot) {
    const NodePods& pods = cluster_.pods(slot);
    for (size_t i = 0; i < pods.pods().size(); ++i) {
      const PodShape& shape = cluster_.pod_shapes()[pods.pods()[i].shape];
      const PodTraits& traits = TraitsOf(shape);
      if (shape.finished || traits.placeholder || traits.slack == SlackWish()) continue;
      if (OfKnownDaemonSet(shape, objects_)) continue;
      const Workload* const owner = FindOwner(traits, shape.namespace_name, objects_);
      // A workload that says something speaks for its pods, and so does the one that came after it.
      if (owner != nullptr && (owner->slack != SlackWish() || owner->target_replicas <= 0)) continue;
      ReadPod(shape, absl::StrCat("Pod ", Reported(shape.namespace_name), "/", Reported(pods.name(i))));
    }
  }

  void ReadPod(const PodShape& shape, const std::string& pod) {
    const PodTraits& traits = TraitsOf(shape);
    const std::string source = traits.owner.has_value() ? absl::StrCat(Reported(traits.owner->kind), " ",
                                                                       Reported(shape.namespace_name), "/",
                                                                       Reported(traits.owner->name))
                                                        : pod;
    if (!traits.slack.error.empty()) return Refuse(source, Reported(traits.slack.error));
    const int32_t copies = traits.slack.copies.value_or(0);
    if (copies == 0 || !MayAsk(source, shape.namespace_name)) return;
    Owned& wish = owned_[traits.owner.has_value() ? traits.owner->uid : pod];
    // If pods differ, the one that asks for most counts, whatever their order.
    if (wish.shape == nullptr ||
        std::tie(copies, shape.fingerprint) > std::tie(wish.copies, wish.shape->fingerprint)) {
      wish = {source, copies, &shape};
    }
  }

  void Add(std::string key, const std::string& source, const PodShape& shape, int64_t copies) {
    MirroredPod& pod = pods_[key];
    if (pod.sources.empty()) {
      pod.key = std::move(key);
      pod.shape = WithoutHostPorts(shape);
      pod.size = CpuMemoryOf(shape.requests);
    }
    pod.copies = std::min(pod.copies + copies, kMostCopies);
    pod.sources.push_back(source);
  }

  const ClusterState& cluster_;
  const ClusterObjects& objects_;
  const SlackRooms& rooms_;
  absl::btree_map<std::pair<std::string, std::string>, Age> newest_;  // by namespace and UID of the owner
  absl::btree_map<std::string, MirroredPod> pods_;
  absl::btree_map<std::string, Owned> owned_;
  std::vector<WishError> errors_;
};

}  // namespace

SlackWishes CollectWishes(const ClusterState& cluster, const SlackRooms& rooms) {
  return Collector(cluster, rooms).Collect();
}

bool IsEligible(const SlackPod& pod, const SlackRooms& rooms, const ClusterObjects& objects) {
  const PodTraits& traits = TraitsOf(pod.shape);
  if (pod.gives_way || pod.overhead || traits.slack.opted_out || traits.priority >= kSystemPriority) {
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
