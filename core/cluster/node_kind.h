// Tells machines from nodes that nobody adds or removes as machines.
#ifndef LOADLINE_CORE_CLUSTER_NODE_KIND_H_
#define LOADLINE_CORE_CLUSTER_NODE_KIND_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cluster/shapes.h"

namespace loadline {

class ClusterState;
class GroupsOfNodes;
enum class Slot : int32_t;

// The kinds of nodes.
enum class NodeKind : int8_t {
  kMachine,
  kControlPlane,
  // No machine is behind what it offers: a cloud, or another cluster, runs its pods.
  kVirtual,
};

// Returns what a node is by itself. A taint says it as a label does. A label of a role whose value is "false"
// states that the node does not have the role; any other value, also none, states that it has.
//
// Cost: O(labels + taints). Source: labels, taints and provider IDs that kubeadm, k3s, RKE, k0s, MicroK8s,
// kOps, OpenShift and Talos put on nodes of the control plane, and virtual-kubelet with its providers,
// EKS Fargate, Liqo, TKE, OKE and vcluster on virtual nodes.
NodeKind KindOfNode(const Labels& labels, std::span<const Taint> taints, absl::string_view provider_id);

// "machine", "control plane", "virtual".
absl::string_view Name(NodeKind kind);

// Returns what the node is for a plan: the members of a named group are machines.
NodeKind KindForPlan(const ClusterState& cluster, Slot slot, const GroupsOfNodes& group_of);

// Returns whether a group may have the node as a machine: a virtual node is nobody's, whatever selects it.
bool MayBeInGroup(const ClusterState& cluster, Slot slot);

// Returns the nodes of groups that by themselves are no machines, by slot. Cost: O(nodes).
std::vector<Slot> NamedAsMachines(const ClusterState& cluster, const GroupsOfNodes& group_of);

// Nodes of a plan that are no machines: they are never removed, cost nothing that is known, form no group and
// hold no slack.
struct OtherNodes {
  struct Node {
    std::string name;
    NodeKind kind;
  };
  int64_t control_plane = 0;
  int64_t virtual_nodes = 0;
  std::vector<Node> first;  // at most kMostOtherNodes, by name
};
inline constexpr size_t kMostOtherNodes = 256;  // chosen as LeftOutList::kMostNamed; all others are counted

// Returns all nodes that are no machines for a plan. Cost: O(nodes).
OtherNodes FindOtherNodes(const ClusterState& cluster, const GroupsOfNodes& group_of);

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_KIND_H_
