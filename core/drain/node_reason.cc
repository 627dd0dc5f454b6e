#include "core/drain/node_reason.h"

namespace loadline {

NodeReasonEntry EntryOf(NodeReason reason) {
  switch (reason) {  // no default: a new reason must fail the build here
    case NodeReason::kNone:
      return {"None", "it may be removed", ""};
    case NodeReason::kScaleDownDisabledAnnotation:
      return {"ScaleDownDisabledAnnotation", "an annotation keeps it",
              "remove the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled, or "
              "atlassian.com/no-delete, from it"};
    case NodeReason::kScaleDownUnreadyDisabled:
      return {"ScaleDownUnreadyDisabled", "it is not ready, and such nodes stay",
              "set scale-down-unready-enabled, or make it ready"};
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
      return {"NodeGroupMaxDeletionCountReached", "no more nodes of its group may be removed at once",
              "wait until other nodes of its group are removed"};
    case NodeReason::kAtomicScaleDownFailed:
      return {"AtomicScaleDownFailed", "its group is removed as a whole or not at all",
              "all other nodes of its group have to be removable as well"};
    case NodeReason::kMinimalResourceLimitExceeded:
      return {"MinimalResourceLimitExceeded", "the cluster is at its minimum",
              "a smaller minimum of cores, memory, GPUs or nodes of the cluster"};
    case NodeReason::kCurrentlyBeingDeleted:
      return {"CurrentlyBeingDeleted", "its deletion has begun", "wait until it is deleted"};
    case NodeReason::kNotUnderutilized:
      return {"NotUnderutilized", "its utilization is not below the threshold",
              "less requested on it than the threshold"};
    case NodeReason::kNotUnneededOtherReason:
      return {"NotUnneededOtherReason", "a brake stops all removals", "what the brake names has to pass"};
    case NodeReason::kRecentlyUnremovable:
      return {"RecentlyUnremovable", "its drain failed a short time ago", "wait until it is tried again"};
    case NodeReason::kNoPlaceToMovePods:
      return {"NoPlaceToMovePods", "a pod of it fits nowhere else", "more room on nodes that stay"};
    case NodeReason::kBlockedByPod:
      return {"BlockedByPod", "a pod of it must not be moved", "move the pod that blocks by hand"};
    case NodeReason::kUnexpectedError:
      return {"UnexpectedError", "its utilization cannot be computed",
              "it has to report allocatable cpu and memory above 0"};
    case NodeReason::kNoNodeInfo:
      return {"NoNodeInfo", "nothing is known of it", "it has to be among the nodes of the cluster"};
    case NodeReason::kBlockedByOnCompletionPod:
      return {"BlockedByOnCompletionPod", "a pod of it is to run to completion first",
              "its pods have to run to completion"};
    case NodeReason::kAlreadyADestination:
      return {"AlreadyADestination", "pods of nodes that are removed move there",
              "pods of nodes that are removed move here; it may be removed later"};
    case NodeReason::kNotEvaluated:
      return {"NotEvaluated", "the budget of work ended before it was evaluated",
              "more time: the next loop begins with it"};
    case NodeReason::kRecentEvictionsWait:
      return {"RecentEvictionsWait",
              "the replacements of evicted pods fit nowhere, so that no new drain starts",
              "room for the replacements of evicted pods"};
    case NodeReason::kScaleDownThrottled:
      return {"ScaleDownThrottled", "no more nodes may be removed at once",
              "wait until other nodes are removed, or raise max-scale-down-parallelism, "
              "max-drain-parallelism or the node budget that defers it"};
    case NodeReason::kWaitsForOtherDrains:
      return {"WaitsForOtherDrains",
              "its budgets do not allow to evict all of its pods at once, so it is drained alone",
              "wait until the other drains are over, or let its disruption budgets allow more"};
    case NodeReason::kPlaceholdersNeedRoom:
      return {"PlaceholdersNeedRoom",
              "the room that it keeps, for a waiting pod or as slack, is nowhere else",
              "more room on nodes that stay"};
    case NodeReason::kSizedByUtilization:
      return {"SizedByUtilization", "its group is sized by its utilization, not by what fits elsewhere",
              "its group shrinks by its utilization: a node is tainted first, and removed after its grace "
              "period"};
    case NodeReason::kGroupsGrow:
      return {"GroupsGrow", "groups grow in this loop", "wait until no group grows"};
    case NodeReason::kHoldsRoomForWaitingPods:
      return {"HoldsRoomForWaitingPods",
              "pods wait for nodes on their way, and would need it if none arrived",
              "wait until the nodes on their way are ready"};
    case NodeReason::kUnreadable:
      return {"Unreadable", "not all of it could be read", "correct the node"};
    case NodeReason::kDoNotDisrupt:
      return {"DoNotDisrupt", "Karpenter's annotation keeps it",
              "remove the annotation karpenter.sh/do-not-disrupt from it"};
    case NodeReason::kHoldsRoomForNominatedPods:
      return {"HoldsRoomForNominatedPods", "the scheduler makes room on it for pods by preempting others",
              "wait until these pods run there: the node waits for ten minutes at most"};
    case NodeReason::kPartOfReplacement:
      return {"PartOfReplacement", "it takes pods of nodes that are being replaced",
              "wait until the nodes that are being replaced are removed"};
    case NodeReason::kControlPlane:
      return {"ControlPlane", "it is a node of the control plane, which is never removed",
              "name a node group that contains it, if it is to be treated as a machine"};
    case NodeReason::kVirtualNode:
      return {"VirtualNode", "it is a virtual node, not a machine",
              "remove it where it is configured: its pods are what is paid for"};
    case NodeReason::kNotStarted:
      return {"NotStarted", "it has not started yet, and counts as a node on its way",
              "wait until it is ready, has no startup taint and offers the devices of its group"};
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
