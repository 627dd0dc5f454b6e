#include "core/cluster/node_kind.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/platform_labels.h"

namespace loadline {
namespace {

// Roles of nodes that run what the cluster itself consists of. "controlplane" is RKE's spelling, "api-server"
// that of kOps for nodes which run nothing else, and "arbiter" that of OpenShift for a third member of etcd.
constexpr absl::string_view kControlPlaneRoles[] = {"control-plane", "controlplane", "master",
                                                    "etcd",          "api-server",   "arbiter"};

bool IsControlPlaneRole(absl::string_view role) {
  return std::find(std::begin(kControlPlaneRoles), std::end(kControlPlaneRoles), role) !=
         std::end(kControlPlaneRoles);
}

bool SaysControlPlane(absl::string_view key, absl::string_view value) {
  if (absl::EqualsIgnoreCase(value, "false")) return false;
  if (absl::ConsumePrefix(&key, kNodeRolePrefix)) return IsControlPlaneRole(key);
  // Kubernetes before 1.16, and kOps and others that have kept it, state the role as a value.
  if (key == "kubernetes.io/role" || key == "node.k0sproject.io/role") return IsControlPlaneRole(value);
  return key == "node.kubernetes.io/microk8s-controlplane";
}

bool SaysVirtual(absl::string_view key, absl::string_view value) {
  if (absl::EqualsIgnoreCase(value, "false")) return false;
  // Liqo, and providers that follow it or virtual-kubelet, have domains of their own.
  if (absl::StartsWith(key, "virtual-kubelet.io/") || absl::StartsWith(key, "virtual-node.")) return true;
  if (key == "type" || key == "liqo.io/type") return value == "virtual-kubelet" || value == "virtual-node";
  // Other values of it, "auto" and "hybrid", are machines.
  if (key == "eks.amazonaws.com/compute-type") return value == "fargate";
  if (IsInstanceTypeLabel(key)) {
    return value == "eklet" || value == "virtual-kubelet" || value == "virtual-node";
  }
  // Nodes of a virtual cluster stand for those of the cluster that it runs in.
  return key == "eks.tke.cloud.tencent.com/eklet" || key == "vci.vke.volcengine.com/node-type" ||
         key == "vcluster.loft.sh/fake-node";
}

// Recognizes the provider ids of Fargate ("aws:///us-east-1a/f2b1/fargate-ip-10-0-1-2.ec2.internal") and of
// OKE's virtual nodes ("ocid1.virtualnode.oc1.iad.abc").
bool IsVirtualProvider(absl::string_view provider_id) {
  return (absl::StartsWith(provider_id, "aws://") && absl::StrContains(provider_id, "/fargate-")) ||
         absl::StrContains(provider_id, "ocid1.virtualnode.");
}

template <typename Says>
bool AnySays(const Labels& labels, std::span<const Taint> taints, Says says) {
  return std::any_of(labels.begin(), labels.end(),
                     [&](const Label& label) { return says(label.key, label.value); }) ||
         std::any_of(taints.begin(), taints.end(),
                     [&](const Taint& taint) { return says(taint.key, taint.value); });
}

}  // namespace

NodeKind KindOfNode(const Labels& labels, std::span<const Taint> taints, absl::string_view provider_id) {
  // A virtual node may carry the roles of the nodes behind it.
  if (IsVirtualProvider(provider_id) || AnySays(labels, taints, SaysVirtual)) return NodeKind::kVirtual;
  return AnySays(labels, taints, SaysControlPlane) ? NodeKind::kControlPlane : NodeKind::kMachine;
}

absl::string_view Name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kMachine:
      return "machine";
    case NodeKind::kControlPlane:
      return "control plane";
    case NodeKind::kVirtual:
      return "virtual";
  }
  return "invalid kind";
}

NodeKind KindForPlan(const ClusterState& cluster, Slot slot, const GroupsOfNodes& group_of) {
  return group_of[slot].has_value() ? NodeKind::kMachine : cluster.traits(slot).kind;
}

bool MayBeInGroup(const ClusterState& cluster, Slot slot) {
  return cluster.traits(slot).kind != NodeKind::kVirtual;
}

std::vector<Slot> NamedAsMachines(const ClusterState& cluster, const GroupsOfNodes& group_of) {
  std::vector<Slot> named;
  for (const auto [slot, group] : group_of) {
    if (cluster.Occupied(slot) && cluster.traits(slot).kind != NodeKind::kMachine) named.push_back(slot);
  }
  return named;
}

OtherNodes FindOtherNodes(const ClusterState& cluster, const GroupsOfNodes& group_of) {
  OtherNodes others;
  std::vector<Slot> slots;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (!cluster.Occupied(slot)) continue;
    const NodeKind kind = KindForPlan(cluster, slot, group_of);
    if (kind == NodeKind::kMachine) continue;
    ++(kind == NodeKind::kVirtual ? others.virtual_nodes : others.control_plane);
    slots.push_back(slot);
  }
  const size_t named = std::min(slots.size(), kMostOtherNodes);
  std::partial_sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(named), slots.end(),
                    [&](Slot a, Slot b) { return cluster.name(a) < cluster.name(b); });
  for (const Slot slot : std::span(slots).first(named)) {
    others.first.push_back({std::string(cluster.name(slot)), KindForPlan(cluster, slot, group_of)});
  }
  return others;
}

}  // namespace loadline
