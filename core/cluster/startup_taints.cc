#include "core/cluster/startup_taints.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace loadline {
namespace {

// A key that ends in "/" is the beginning of keys.
struct TaintRow {
  const char* key;
  TaintKind kind;
  bool not_ready = false;      // see SaysNotReady()
  bool being_deleted = false;  // see SaysBeingDeleted()
};

// Keys of the conditions of nodes.
constexpr char kConditionPrefix[] = "node.kubernetes.io/";

// The first row that applies counts.
constexpr TaintRow kWellKnown[] = {
    {"startup-taint.cluster-autoscaler.kubernetes.io/", TaintKind::kStartup},
    {"ignore-taint.cluster-autoscaler.kubernetes.io/", TaintKind::kStartup},
    {"readiness.k8s.io/", TaintKind::kStartup},
    {"node.cloudprovider.kubernetes.io/uninitialized", TaintKind::kStartup},
    {"node.cluster.x-k8s.io/uninitialized", TaintKind::kStartup},
    {"karpenter.sh/unregistered", TaintKind::kStartup},
    {"cni.istio.io/not-ready", TaintKind::kStartup},
    {"node.kubernetes.io/not-ready", TaintKind::kStartup, /*not_ready=*/true},
    {"node.kubernetes.io/network-unavailable", TaintKind::kStartup, /*not_ready=*/true},
    // Labels under which pools of machines are tainted as well.
    {"node.kubernetes.io/os", TaintKind::kLasting},
    {"node.kubernetes.io/arch", TaintKind::kLasting},
    {"node.kubernetes.io/instance-type", TaintKind::kLasting},
    {"node.kubernetes.io/windows-build", TaintKind::kLasting},
    {"node.kubernetes.io/lifecycle", TaintKind::kLasting},
    {"node.kubernetes.io/role", TaintKind::kLasting},
    // Conditions, whatever value somebody gives them.
    {"node.kubernetes.io/out-of-service", TaintKind::kCondition},
    {"node.kubernetes.io/unreachable", TaintKind::kCondition},
    {"node.kubernetes.io/unschedulable", TaintKind::kCondition},
    {"node.kubernetes.io/memory-pressure", TaintKind::kCondition},
    {"node.kubernetes.io/disk-pressure", TaintKind::kCondition, /*not_ready=*/true},
    {"node.kubernetes.io/pid-pressure", TaintKind::kCondition},
    {kConditionPrefix, TaintKind::kCondition},
    {"node.cloudprovider.kubernetes.io/", TaintKind::kCondition},
    {"status-taint.cluster-autoscaler.kubernetes.io/", TaintKind::kCondition},
    {"node.cluster.x-k8s.io/outdated-revision", TaintKind::kCondition},
    // Updates, maintenance and repairs of a node, after which it is as before.
    {"UpdateInProgress", TaintKind::kCondition},
    {"medik8s.io/drain", TaintKind::kCondition},
    {"medik8s.io/remediation", TaintKind::kCondition},
    {"kubevirt.io/drain", TaintKind::kCondition},
    {"remediator.kubernetes.azure.com/", TaintKind::kCondition},
    {"remediator.aks.microsoft.com/", TaintKind::kCondition},
    {kToBeDeletedTaint, TaintKind::kLeaving},
    {kDeletionCandidateTaint, TaintKind::kLeaving},
    {kRemovalTaint, TaintKind::kLeaving},
    {"atlassian.com/escalator-force", TaintKind::kLeaving},
    {"karpenter.sh/disrupted", TaintKind::kLeaving, false, /*being_deleted=*/true},
    {"karpenter.sh/disruption", TaintKind::kLeaving, false, /*being_deleted=*/true},
    {"aws-node-termination-handler/", TaintKind::kLeaving, false, /*being_deleted=*/true},
    {"cloud.google.com/impending-node-termination", TaintKind::kLeaving, false, /*being_deleted=*/true},
};

// The name that agents give to the taint under which they let pods wait for them: those of Cilium
// (node.cilium.io/agent-not-ready) and of CSI drivers (ebs.csi.aws.com/agent-not-ready).
constexpr absl::string_view kAgentNotReady = "/agent-not-ready";

bool Applies(const TaintRow& row, absl::string_view key) {
  return absl::EndsWith(row.key, "/") ? absl::StartsWith(key, row.key) : key == row.key;
}

}  // namespace

TaintKind KindOfTaint(const Taint& taint, const StartupTaints& names) {
  const absl::string_view key = taint.key;
  const bool is_startup = absl::c_linear_search(names.startup, key) ||
                          absl::c_any_of(names.startup_prefixes, [&](const std::string& prefix) {
                            return absl::StartsWith(key, prefix);
                          });
  if (is_startup) return TaintKind::kStartup;
  if (absl::c_linear_search(names.status, key)) return TaintKind::kCondition;
  if (absl::EndsWith(key, kAgentNotReady)) return TaintKind::kStartup;
  for (const TaintRow& row : kWellKnown) {
    if (!Applies(row, key)) continue;
    return absl::string_view(row.key) == kConditionPrefix && !taint.value.empty() ? TaintKind::kLasting
                                                                                  : row.kind;
  }
  return TaintKind::kLasting;
}

bool SaysNotReady(const Taint& taint) {
  return absl::c_any_of(kWellKnown,
                        [&](const TaintRow& row) { return row.not_ready && taint.key == row.key; });
}

bool SaysBeingDeleted(const Taint& taint) {
  return taint.Repels() && absl::c_any_of(kWellKnown, [&](const TaintRow& row) {
           return row.being_deleted && Applies(row, taint.key);
         });
}

bool HasTaintOf(TaintKind kind, const NodeShape& node, const StartupTaints& names) {
  return absl::c_any_of(node.taints, [&](const Taint& taint) { return KindOfTaint(taint, names) == kind; });
}

std::vector<Taint> LastingTaints(const std::vector<Taint>& taints, const StartupTaints& names) {
  std::vector<Taint> lasting;
  absl::c_copy_if(taints, std::back_inserter(lasting),
                  [&](const Taint& taint) { return KindOfTaint(taint, names) == TaintKind::kLasting; });
  return lasting;
}

NodeShape WithoutPassingTaints(const NodeShape& node, const StartupTaints& names) {
  return Retainted(node, LastingTaints(node.taints, names), /*unschedulable=*/false);
}

}  // namespace loadline
