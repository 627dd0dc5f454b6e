// The meaning of a taint: a property of the node, or a state in the node's life that ends.
#ifndef LOADLINE_CORE_CLUSTER_STARTUP_TAINTS_H_
#define LOADLINE_CORE_CLUSTER_STARTUP_TAINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/shapes.h"

namespace loadline {

// The taint, with effect NoSchedule, of a node that is about to be deleted. Its value is a time in seconds
// since 1970.
inline constexpr char kToBeDeletedTaint[] = "ToBeDeletedByClusterAutoscaler";
// The taint, with effect PreferNoSchedule, of a node that is not needed. Its value is a time as well.
inline constexpr char kDeletionCandidateTaint[] = "DeletionCandidateOfClusterAutoscaler";
// The taint of Escalator, with effect NoSchedule, of a node that is to be removed.
inline constexpr char kRemovalTaint[] = "atlassian.com/escalator";

// The meaning of a taint for plans.
enum class TaintKind {
  kLasting,    // every node of its group has it, for all of its life
  kStartup,    // a new node has it until it can run pods
  kCondition,  // it says how the node is now
  kLeaving,    // somebody is about to take the node away
};

// The time that a node may take to start where no option says so. Published: --max-node-startup-time of
// Cluster Autoscaler is 15 minutes by default.
inline constexpr int64_t kStartupMs = 15 * 60 * 1000;

// Names that a cluster uses beside the well-known ones: what Cluster Autoscaler takes by --startup-taint and
// --ignore-taint, --startup-taint-prefix, and --status-taint; and the time that its nodes may take to start.
struct StartupTaints {
  std::vector<std::string> startup;
  std::vector<std::string> startup_prefixes;
  std::vector<std::string> status;  // kCondition: they do not keep a node from counting as started
  int64_t max_startup_ms = kStartupMs;
  friend bool operator==(const StartupTaints&, const StartupTaints&) = default;
};

// Returns what a taint says of its node. Its effect does not count, as for Cluster Autoscaler and Karpenter:
// who wants pods to stay away until a node has started may say so softly. Its value counts for unknown keys
// below node.kubernetes.io/ alone: conditions of Kubernetes have none, and pools of machines have one
// (node.kubernetes.io/pool=gpu).
//
// Cost: O(names). Pure.
// Source: utils/taints/taints.go of Cluster Autoscaler, pkg/scheduling/taints.go of Karpenter, and the
//         documentation of Cilium, Istio, the CSI drivers for AWS, OpenShift, Medik8s, KubeVirt and AKS.
TaintKind KindOfTaint(const Taint& taint, const StartupTaints& names);

// Returns whether a node with this taint is not ready, as Cluster Autoscaler counts: the node's conditions
// Ready and NetworkUnavailable say it, or DiskPressure. Source: utils/kubernetes/ready.go.
bool SaysNotReady(const Taint& taint);

// Returns whether a taint that keeps pods away says, without a time, that somebody else deletes the node:
// Karpenter, a handler of terminations, or the cloud. Marks of a scale-down may be old, or be taken back.
bool SaysBeingDeleted(const Taint& taint);

// Returns whether the node carries a taint of this kind.
bool HasTaintOf(TaintKind kind, const NodeShape& node, const StartupTaints& names);

// Returns those of the taints that a new node of the same group will keep, in their order.
std::vector<Taint> LastingTaints(const std::vector<Taint>& taints, const StartupTaints& names);

// Returns the node without all that is temporary: passing taints, and a cordon.
NodeShape WithoutPassingTaints(const NodeShape& node, const StartupTaints& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_STARTUP_TAINTS_H_
