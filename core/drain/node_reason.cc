#include "core/drain/node_reason.h"

namespace loadline {

NodeReasonEntry EntryOf(NodeReason reason) {
  switch (reason) {  // no default: a new reason must fail the build here
    case NodeReason::kNone:
      return {"None", "it may go", ""};
    case NodeReason::kScaleDownDisabledAnnotation:
      return {"ScaleDownDisabledAnnotation", "an annotation keeps it",
              "take the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled, or "
              "atlassian.com/no-delete, off it"};
    case NodeReason::kScaleDownUnreadyDisabled:
      return {"ScaleDownUnreadyDisabled", "it is not ready, and such nodes stay",
              "set scale-down-unready-enabled, or get it ready"};
    case NodeReason::kNotAutoscaled:
      return {"NotAutoscaled", "it is in no node group", "put it into a node group"};
    case NodeReason::kNotUnneededLongEnough:
      return {"NotUnneededLongEnough", "it has not been unneeded for long enough", "wait for its timer"};
    case NodeReason::kNotUnreadyLongEnough:
      return {"NotUnreadyLongEnough", "it is not ready, and has not been unneeded for long enough",
              "wait for its timer"};
    case NodeReason::kNodeGroupMinSizeReached:
      return {"NodeGroupMinSizeReached", "its group is at its minimum", "a smaller minimum of its group"};
    case NodeReason::kNodeGroupMaxDeletionCountReached:
      return {"NodeGroupMaxDeletionCountReached", "as many nodes of its group go at once as may",
              "wait until other nodes of its group are gone"};
    case NodeReason::kAtomicScaleDownFailed:
      return {"AtomicScaleDownFailed", "its group goes as a whole or not at all",
              "all other nodes of its group have to go as well"};
    case NodeReason::kMinimalResourceLimitExceeded:
      return {"MinimalResourceLimitExceeded", "the cluster is at its minimum",
              "a smaller minimum of cores, memory, GPUs or nodes of the cluster"};
    case NodeReason::kCurrentlyBeingDeleted:
      return {"CurrentlyBeingDeleted", "its deletion has begun", "wait until it is gone"};
    case NodeReason::kNotUnderutilized:
      return {"NotUnderutilized", "more is requested on it than the threshold",
              "less requested on it than the threshold"};
    case NodeReason::kNotUnneededOtherReason:
      return {"NotUnneededOtherReason", "a brake holds all nodes", "what the brake names has to pass"};
    case NodeReason::kRecentlyUnremovable:
      return {"RecentlyUnremovable", "its drain was tried in vain a short time ago",
              "wait until it is tried again"};
    case NodeReason::kNoPlaceToMovePods:
      return {"NoPlaceToMovePods", "a pod of it fits nowhere else", "more room on nodes that stay"};
    case NodeReason::kBlockedByPod:
      return {"BlockedByPod", "a pod of it must not be moved", "move the pod that blocks by hand"};
    case NodeReason::kUnexpectedError:
      return {"UnexpectedError", "how full it is cannot be computed",
              "it has to report allocatable cpu and memory above 0"};
    case NodeReason::kNoNodeInfo:
      return {"NoNodeInfo", "nothing is known of it", "it has to be among the nodes of the cluster"};
    case NodeReason::kBlockedByOnCompletionPod:
      return {"BlockedByOnCompletionPod", "a pod of it is to run to completion first",
              "its pods have to run to completion"};
    case NodeReason::kAlreadyADestination:
      return {"AlreadyADestination", "pods of nodes that go are to move there",
              "pods of nodes that go move here; it may go later"};
    case NodeReason::kNotEvaluated:
      return {"NotEvaluated", "the work ended before it was its turn",
              "more time: the next loop begins with it"};
    case NodeReason::kRecentEvictionsWait:
      return {"RecentEvictionsWait", "replacements of evicted pods fit nowhere, and nothing new is drained",
              "room for the replacements of evicted pods"};
    case NodeReason::kScaleDownThrottled:
      return {"ScaleDownThrottled", "as many nodes go at once as may",
              "wait until other nodes are gone, or raise max-scale-down-parallelism, "
              "max-drain-parallelism or the budget of nodes that holds it"};
    case NodeReason::kWaitsForOtherDrains:
      return {"WaitsForOtherDrains",
              "its budgets do not allow all of its pods at once, so it is drained alone",
              "wait until the other drains are over, or let its disruption budgets allow more"};
    case NodeReason::kPlaceholdersNeedRoom:
      return {"PlaceholdersNeedRoom", "a placeholder of slack on it fits nowhere else",
              "more room on nodes that stay"};
    case NodeReason::kSizedByUtilization:
      return {"SizedByUtilization", "its group is sized by how full it is, not by what fits elsewhere",
              "its group goes by how full it is: a node is tainted first, and goes after its grace period"};
    case NodeReason::kGroupsGrow:
      return {"GroupsGrow", "groups grow in this loop", "wait until no group grows"};
    case NodeReason::kHoldsRoomForWaitingPods:
      return {"HoldsRoomForWaitingPods", "pods wait for nodes on their way, and would need it if none came",
              "wait until the nodes on their way have come"};
    case NodeReason::kUnreadable:
      return {"Unreadable", "not all of it could be read", "correct the node"};
    case NodeReason::kDoNotDisrupt:
      return {"DoNotDisrupt", "Karpenter's annotation keeps it",
              "take the annotation karpenter.sh/do-not-disrupt off it"};
    case NodeReason::kHoldsRoomForNominatedPods:
      return {"HoldsRoomForNominatedPods", "the scheduler makes room on it for pods by preempting others",
              "wait until these pods run there: a node is held for ten minutes at most"};
    case NodeReason::kPartOfReplacement:
      return {"PartOfReplacement", "it takes pods of nodes that are being replaced",
              "wait until the nodes that are being replaced are gone"};
    case NodeReason::kControlPlane:
      return {"ControlPlane", "it is a node of the control plane, which is nobody's to remove",
              "name a node group that has it, if it is to be treated as a machine"};
    case NodeReason::kVirtualNode:
      return {"VirtualNode", "it is a virtual node, and no machine",
              "remove it where it is configured: what is paid for are its pods"};
  }
  return {};
}

absl::string_view Name(NodeReason reason) {
  const absl::string_view name = EntryOf(reason).name;
  return name.empty() ? absl::string_view("invalid reason") : name;
}

std::optional<NodeReason> NodeReasonNamed(absl::string_view name) {
  for (const NodeReason reason : AllNodeReasons()) {
    if (Name(reason) == name) return reason;
  }
  return std::nullopt;
}

std::vector<NodeReason> AllNodeReasons() {
  std::vector<NodeReason> reasons;
  for (int i = 0; !EntryOf(NodeReason{i}).name.empty(); ++i) reasons.push_back(NodeReason{i});
  return reasons;
}

}  // namespace loadline
