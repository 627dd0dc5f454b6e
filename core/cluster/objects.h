// Objects beside nodes and pods that decisions read: namespaces, what volumes are made of, disruption
// budgets, and the workloads that own pods.
#ifndef LOADLINE_CORE_CLUSTER_OBJECTS_H_
#define LOADLINE_CORE_CLUSTER_OBJECTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"
#include "core/base/fingerprint.h"
#include "core/base/quantity.h"
#include "core/cluster/labels.h"
#include "core/cluster/pod_traits.h"
#include "core/cluster/shapes.h"

namespace loadline {

// The kinds of objects beside nodes and pods that a view takes.
enum class ObjectKind {
  kNamespace,
  kPersistentVolume,
  kPersistentVolumeClaim,
  kStorageClass,
  kCsiNode,
  kDisruptionBudget,
  kReplicationController,
  kReplicaSet,
  kStatefulSet,
  kDaemonSet,
  kJob,
  kDeployment,
  kCsiDriver,
  kDeviceClass,
  kWorkloadUsage,
};
inline constexpr size_t kObjectKinds = 15;

// In Kubernetes: "PodDisruptionBudget".
absl::string_view Name(ObjectKind kind);
// Returns whether objects of the kind live in namespaces.
bool IsNamespaced(ObjectKind kind);
// Returns whether objects of the kind are Workload.
bool IsWorkload(ObjectKind kind);

// The identity of an object in its cluster.
struct ObjectKey {
  ObjectKind kind = ObjectKind::kNamespace;
  std::string namespace_name;  // empty unless IsNamespaced()
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

struct Namespace {
  Labels labels;
};

// The source of a persistent volume's data.
enum class VolumeSource {
  kCsi,
  kGcePersistentDisk,
  kAwsElasticBlockStore,
  kOtherMigrated,  // as VolumeKind::kOtherMigrated
  kOther,
};

struct PersistentVolume {
  struct ClaimReference {
    std::string namespace_name;
    std::string name;
    std::string uid;
  };
  std::string name;
  Labels labels;
  VolumeSource source = VolumeSource::kOther;
  std::string driver;  // kCsi
  std::string handle;  // kCsi: the volume handle; GCE and AWS: what identifies the disk
  std::vector<std::string> access_modes;
  std::optional<ClaimReference> claim;
  std::string storage_class;
  std::string volume_mode = "Filesystem";
  std::string attributes_class;
  std::optional<NodeSelector> node_affinity;
  std::optional<Quantity> capacity;
  bool available = false;  // phase
  bool deleting = false;
};

struct PersistentVolumeClaim {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string owner_uid;    // of its controller, or empty
  std::string volume_name;  // empty: not bound
  bool bind_completed = false;
  bool lost = false;  // phase
  bool deleting = false;
  std::vector<std::string> access_modes;
  std::optional<Quantity> request;
  std::optional<std::string> selected_node;
  std::string storage_class;  // empty: none
  std::string volume_mode = "Filesystem";
  std::string attributes_class;
  std::optional<LabelSelector> selector;
  std::string selector_error;
};

struct StorageClass {
  enum class Binding { kUnset, kImmediate, kWaitForFirstConsumer };
  struct TopologyTerm {
    bool invalid = false;  // it does not parse, and matches nothing
    std::vector<Requirement> requirements;
  };
  std::string provisioner;
  Binding binding = Binding::kUnset;
  std::vector<TopologyTerm> allowed_topologies;
};

struct CsiNode {
  struct Driver {
    std::string name;
    std::optional<int32_t> count;  // most volumes that may be attached
  };
  std::vector<Driver> drivers;
  // In-tree plugins whose volumes a CSI driver serves on this node.
  std::vector<std::string> migrated_plugins;
};

struct CsiDriver {
  // spec.preventPodSchedulingIfMissing: no pod may use it on a node whose CSINode does not list it.
  bool must_be_on_node = false;
};

// A resource.k8s.io/v1 DeviceClass.
struct DeviceClass {
  // The extended resource under which pods may ask for its devices; empty: none.
  std::string extended_resource;
};

// A policy/v1 PodDisruptionBudget. Counts are as the status states them, which may be any number.
struct DisruptionBudget {
  enum class UnhealthyPolicy { kIfHealthyBudget, kAlwaysAllow };
  struct DisruptedPod {
    std::string name;
    int64_t since_s = 0;  // seconds since 1970
  };
  LabelSelector selector;
  std::string selector_error;  // the selector does not parse, and matches nothing
  UnhealthyPolicy unhealthy_policy = UnhealthyPolicy::kIfHealthyBudget;
  int64_t generation = 0;
  int64_t observed_generation = 0;
  int32_t disruptions_allowed = 0;
  int32_t current_healthy = 0;
  int32_t desired_healthy = 0;
  int32_t expected_pods = 0;
  std::vector<DisruptedPod> disrupted_pods;  // sorted by name
};

// An object that runs pods as replicas. Its kind is that of the key.
struct Workload {
  std::string uid;
  // The numbers of pods that it is to have, and has: of a Job min(parallelism, completions - succeeded) and
  // active pods, of a StatefulSet spec.replicas and status.currentReplicas; of a DaemonSet
  // desiredNumberScheduled and currentNumberScheduled.
  int64_t target_replicas = 0;
  int64_t current_replicas = 0;
  // The wish that its annotations, and those of its pod template, state.
  SlackWish slack;
  // A pod of its template, as an incoming one, with all labels; nullopt: the client did not send it.
  std::optional<PodShape> pod;
};

// An amount for each hour of the day, UTC.
inline constexpr size_t kHoursOfDay = 24;
using HourlyAmounts = std::array<int64_t, kHoursOfDay>;

// The measured use of one pod of a workload, whose key is "KIND/NAME"; see message WorkloadUsage.
struct WorkloadUsage {
  uint64_t pod_template = 0;        // for which it holds; 0: for all
  HourlyAmounts cpu_milli = {};     // [0, 2^62]; 0: not known
  HourlyAmounts memory_bytes = {};  // likewise
  int64_t cpu_limit_milli = 0;      // of one pod, [0, 2^62]; 0: not known
  int64_t memory_limit_bytes = 0;   // likewise
  int32_t days = 0;                 // of the hour that was measured on the fewest days
  int64_t newest_s = 0;             // seconds since 1970, [0, 2^40]
};

struct ClusterObject {
  ObjectKey key;
  std::variant<Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass, CsiNode, DisruptionBudget,
               Workload, CsiDriver, DeviceClass, WorkloadUsage>
      content;
  // Hash of kind and content, as it was sent.
  uint64_t fingerprint = 0;
  // The part of it that could not be read; empty: all was.
  std::string unreadable = {};
  // Nothing could be read but its key: it is there, and `content` says nothing.
  bool is_left_out = false;
};

// The objects of one cluster. Order is that of the keys.
class ClusterObjects {
 public:
  void Set(ClusterObject object);
  void Remove(const ObjectKey& key);
  void SetComplete(ObjectKind kind);

  // The objects that could not be read, or not in full, and why. At most kMostReasons of a kind have a
  // reason.
  const absl::btree_map<ObjectKey, std::string>& unreadable() const { return unreadable_; }
  static constexpr int32_t kMostReasons = 256;

  // The object, or nullptr.
  const Namespace* FindNamespace(absl::string_view name) const;
  const PersistentVolume* FindVolume(absl::string_view name) const;
  const PersistentVolumeClaim* FindClaim(absl::string_view namespace_name, absl::string_view name) const;
  const StorageClass* FindStorageClass(absl::string_view name) const;
  const CsiNode* FindCsiNode(absl::string_view name) const;
  const CsiDriver* FindCsiDriver(absl::string_view name) const;
  const Workload* FindWorkload(ObjectKind kind, absl::string_view namespace_name,
                               absl::string_view name) const;

  // The workload of `kind` that `owner`, the controller of a pod in `namespace_name`, names. nullptr: there
  // is none of that name, or one with another UID has taken it. Where either UID is empty, the name decides.
  const Workload* FindOwner(ObjectKind kind, absl::string_view namespace_name, const PodOwner& owner) const;

  // All of one kind, in key order, but those that are left out.
  const absl::btree_map<ObjectKey, ClusterObject>& of(ObjectKind kind) const {
    return objects_[static_cast<size_t>(kind)];
  }
  // Returns whether an object of this kind that is not here is known not to exist.
  bool complete(ObjectKind kind) const { return complete_[static_cast<size_t>(kind)]; }
  // Returns whether one object is known not to exist. Its namespace is empty unless IsNamespaced().
  bool KnownMissing(ObjectKind kind, absl::string_view namespace_name, absl::string_view name) const;
  // Also those that are left out.
  int64_t size() const;
  // Hash of all objects and of what is complete, whatever the order in which they came.
  uint64_t fingerprint() const { return fingerprint_; }
  // Counts up with each change.
  int64_t version() const { return version_; }
  // Counts up with each change of a profile of expected use. A number of one cluster is never that of another
  // that takes its place: see set_usage_version().
  int64_t usage_version() const { return usage_version_; }
  void set_usage_version(int64_t version) { usage_version_ = version; }

 private:
  template <typename Content>
  const Content* Find(const ObjectKey& key) const;
  void Forget(const ObjectKey& key);

  std::array<absl::btree_map<ObjectKey, ClusterObject>, kObjectKinds> objects_;
  absl::btree_map<ObjectKey, uint64_t> left_out_;  // fingerprints
  absl::btree_map<ObjectKey, std::string> unreadable_;
  std::array<int32_t, kObjectKinds> reasons_ = {};  // that unreadable_ holds
  std::array<bool, kObjectKinds> complete_ = {};
  uint64_t fingerprint_ = 0;
  int64_t version_ = 0;
  int64_t usage_version_ = 0;
};

// IsDaemonPod(), where it matters that an owner reference can be forged: if all DaemonSets are known, the one
// that the pod names has to exist under its UID.
bool OfKnownDaemonSet(const PodShape& shape, const ClusterObjects& objects);

// Returns whether a pod runs by its node: it is no demand, and no reason to keep a node.
bool BelongsToNode(const PodShape& shape, const ClusterObjects& objects);

// Returns whether a pod is the mirror of a static pod, which kubelet makes with its node as the owner.
// Stricter than BelongsToNode(): anybody may write the annotations, so that an owner counts, or a namespace
// of the cluster's own.
bool IsKubeletsMirror(const PodShape& shape);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_OBJECTS_H_
