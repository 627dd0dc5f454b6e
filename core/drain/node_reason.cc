#include "core/drain/node_reason.h"

namespace loadline {

absl::string_view Name(NodeReason reason) {
  switch (reason) {
    case NodeReason::kNone:
      return "None";
    case NodeReason::kScaleDownDisabledAnnotation:
      return "ScaleDownDisabledAnnotation";
    case NodeReason::kScaleDownUnreadyDisabled:
      return "ScaleDownUnreadyDisabled";
    case NodeReason::kNotAutoscaled:
      return "NotAutoscaled";
    case NodeReason::kNotUnneededLongEnough:
      return "NotUnneededLongEnough";
    case NodeReason::kNotUnreadyLongEnough:
      return "NotUnreadyLongEnough";
    case NodeReason::kNodeGroupMinSizeReached:
      return "NodeGroupMinSizeReached";
    case NodeReason::kNodeGroupMaxDeletionCountReached:
      return "NodeGroupMaxDeletionCountReached";
    case NodeReason::kAtomicScaleDownFailed:
      return "AtomicScaleDownFailed";
    case NodeReason::kMinimalResourceLimitExceeded:
      return "MinimalResourceLimitExceeded";
    case NodeReason::kCurrentlyBeingDeleted:
      return "CurrentlyBeingDeleted";
    case NodeReason::kNotUnderutilized:
      return "NotUnderutilized";
    case NodeReason::kNotUnneededOtherReason:
      return "NotUnneededOtherReason";
    case NodeReason::kRecentlyUnremovable:
      return "RecentlyUnremovable";
    case NodeReason::kNoPlaceToMovePods:
      return "NoPlaceToMovePods";
    case NodeReason::kBlockedByPod:
      return "BlockedByPod";
    case NodeReason::kUnexpectedError:
      return "UnexpectedError";
    case NodeReason::kNoNodeInfo:
      return "NoNodeInfo";
    case NodeReason::kBlockedByOnCompletionPod:
      return "BlockedByOnCompletionPod";
    case NodeReason::kAlreadyADestination:
      return "AlreadyADestination";
    case NodeReason::kNotEvaluated:
      return "NotEvaluated";
    case NodeReason::kRecentEvictionsWait:
      return "RecentEvictionsWait";
    case NodeReason::kScaleDownThrottled:
      return "ScaleDownThrottled";
    case NodeReason::kWaitsForOtherDrains:
      return "WaitsForOtherDrains";
    case NodeReason::kPlaceholdersNeedRoom:
      return "PlaceholdersNeedRoom";
    case NodeReason::kSizedByUtilization:
      return "SizedByUtilization";
  }
  return "invalid reason";
}

}  // namespace loadline
