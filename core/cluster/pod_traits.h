// The traits of pods and nodes that planners read beside what fits where: who owns a pod, what it says about
// being moved, and in what state it is.
#ifndef LOADLINE_CORE_CLUSTER_POD_TRAITS_H_
#define LOADLINE_CORE_CLUSTER_POD_TRAITS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/cpu_memory.h"
#include "core/base/fingerprint.h"
#include "core/base/resource_list.h"

namespace loadline {

enum class NodeKind : int8_t;  // see node_kind.h

// The controller of a pod, as its owner reference names it.
struct PodOwner {
  std::string kind;         // "ReplicaSet"
  std::string api_version;  // "apps/v1"
  std::string name;
  std::string uid;
  friend bool operator==(const PodOwner&, const PodOwner&) = default;
};

// The workload that a pod belongs to, and the template that it was made from: the annotation
// loadline.dev/workload. A profile of expected use is found by both.
struct PodWorkload {
  std::string name;           // "Deployment/web"; empty: none
  uint64_t pod_template = 0;  // 0: not stated
  friend bool operator==(const PodWorkload&, const PodWorkload&) = default;
};

// The annotation cluster-autoscaler.kubernetes.io/safe-to-evict; a value that is not known is as "false".
enum class SafeToEvict { kUnstated, kYes, kNo, kOnCompletion };

// The phase of a pod, as far as decisions depend on it. kPending: it has a node, and no container has
// started.
enum class PodPhase { kUnfinished, kPending, kSucceeded, kFailed };
constexpr bool HasFinished(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

// The wish of a pod or a workload about the slack to be kept for it.
struct SlackWish {
  // loadline.dev/slack: "false".
  bool opted_out = false;
  // loadline.dev/slack-copies: how many copies are to be kept free. [0, 2^31).
  std::optional<int32_t> copies;
  // The fault of the annotations; such a wish counts as none.
  std::string error;
  friend bool operator==(const SlackWish&, const SlackWish&) = default;
};

// Times in seconds since 1970.
struct PodTraits {
  std::optional<PodOwner> owner;
  PodWorkload workload;
  PodPhase phase = PodPhase::kUnfinished;
  // The condition Ready is True.
  bool ready = false;
  // metadata.deletionTimestamp, spec.terminationGracePeriodSeconds.
  std::optional<int64_t> deleted_s;
  std::optional<int64_t> grace_s;
  // Set for pods in kube-system only: nothing depends on the age of others.
  std::optional<int64_t> created_s;
  int32_t priority = 0;
  // Annotation kubernetes.io/config.mirror is there; kubernetes.io/config.source is "file".
  bool mirror = false;
  bool static_pod = false;
  // Annotation cluster-autoscaler.kubernetes.io/daemonset-pod: "true".
  bool daemon_by_annotation = false;
  SafeToEvict safe_to_evict = SafeToEvict::kUnstated;
  // Annotation karpenter.sh/do-not-disrupt, or karpenter.sh/do-not-evict as it was called: with any value but
  // "false".
  bool do_not_disrupt = false;
  // Until when, if it states for how long after the start of the pod: at a full minute, so that pods which
  // start together stay alike. nullopt: for ever, or as long as nobody knows when the pod started.
  std::optional<int64_t> do_not_disrupt_until_s;
  // The annotations that protect the pod by a value which nobody knows, as `key: "value"`; empty: none.
  std::string unknown_protection;
  // Annotation controller.kubernetes.io/pod-deletion-cost: what is lost with the pod, compared with others of
  // its ReplicaSet. 0 where it is no number of 32 bits, as for Kubernetes.
  int32_t deletion_cost = 0;
  // Annotation cluster-autoscaler.kubernetes.io/enable-ds-eviction, where it is "true" or "false".
  std::optional<bool> evict_daemon;
  // The first volume that lies on the node: hostPath, or emptyDir other than in memory, which
  // cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes does not list. Empty: none.
  std::string local_volume;
  // It is a placeholder of slack, by more than its label loadline.dev/placeholder, which anybody can write.
  bool placeholder = false;
  // Any part of spec.affinity, also preferred terms.
  bool states_affinity = false;
  // The result of SimpleRequests() for the pod, where it has more than containers without a status of theirs.
  std::optional<CpuMemory> container_requests;
  SlackWish slack;
  // The part of the pod that could not be read; the shape has the rest. Empty: all was read.
  std::string unreadable;

  // Adds all of it.
  void AddTo(FingerprintBuilder* builder) const;
  friend bool operator==(const PodTraits&, const PodTraits&) = default;
};

// Returns whether karpenter.sh/do-not-disrupt protects the pod now.
bool IsDisruptionForbidden(const PodTraits& traits, int64_t now_s);

// Returns whether the pod says that a DaemonSet, or the annotation in its place, runs it; see also
// OfKnownDaemonSet().
bool IsDaemonPod(const PodTraits& traits);

// Returns whether a pod has been terminating for so long that it counts as gone: 30 s beyond its grace
// period, which is 30 s where it states none.
bool IsLongTerminating(std::optional<int64_t> deleted_s, std::optional<int64_t> grace_s, int64_t now_s);
inline bool IsLongTerminating(const PodTraits& traits, int64_t now_s) {
  return IsLongTerminating(traits.deleted_s, traits.grace_s, now_s);
}

// The traits of one node that planners read.
struct NodeTraits {
  std::string uid;
  std::string provider_id;
  std::optional<int64_t> created_s;
  // It reports to be ready; as Cluster Autoscaler reads its conditions. Taints may say otherwise.
  bool ready = true;
  // Its deletion was asked for at this time, seconds since 1970: finalizers keep it. nullopt: it was not.
  std::optional<int64_t> deleted_s;
  // One bit for each NodeAnnotation; see node_annotations.h.
  uint32_t annotations = 0;
  // The same as PodTraits::unknown_protection.
  std::string unknown_protection = {};
  // The kind of the node by its own labels, taints and provider ID; see KindForPlan().
  NodeKind kind{};
  // The amounts of the machine, reservations included; empty: those that the node offers to pods. Only
  // prices, and the names of groups that are derived, read it.
  ResourceAmounts capacity;
  // The set of machines that made it, where annotations alone state it; empty: none does.
  std::string machine_set;
  // Annotation loadline.dev/node-usd-per-hour, as it is; empty: there is none.
  std::string stated_price;
  // Same as in PodTraits.
  std::string unreadable;

  // Returns whether nothing is known but the capacity: scores and filters of a scheduler read no more.
  bool Plain() const;
  // Adds all but the capacity.
  void AddTo(FingerprintBuilder* builder) const;
  friend bool operator==(const NodeTraits&, const NodeTraits&) = default;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_POD_TRAITS_H_
