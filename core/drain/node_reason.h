// Why a node stays.
#ifndef LOADLINE_CORE_DRAIN_NODE_REASON_H_
#define LOADLINE_CORE_DRAIN_NODE_REASON_H_

#include "absl/strings/string_view.h"

namespace loadline {

// Cluster Autoscaler's reasons under its names, and ours behind them.
enum class NodeReason {
  kNone,  // it may go
  kScaleDownDisabledAnnotation,
  kScaleDownUnreadyDisabled,
  kNotAutoscaled,
  kNotUnneededLongEnough,
  kNotUnreadyLongEnough,
  kNodeGroupMinSizeReached,
  kNodeGroupMaxDeletionCountReached,
  kAtomicScaleDownFailed,
  kMinimalResourceLimitExceeded,
  kCurrentlyBeingDeleted,
  kNotUnderutilized,
  kNotUnneededOtherReason,
  kRecentlyUnremovable,
  kNoPlaceToMovePods,
  kBlockedByPod,
  kUnexpectedError,
  kNoNodeInfo,
  kBlockedByOnCompletionPod,

  kAlreadyADestination,   // pods of nodes that go are to move there
  kNotEvaluated,          // the work ended before it was this node's turn
  kRecentEvictionsWait,   // replacements of evicted pods fit nowhere: nothing new is drained
  kScaleDownThrottled,    // as many nodes go at once as may
  kWaitsForOtherDrains,   // it goes alone: its budgets do not allow all of its pods at once
  kPlaceholdersNeedRoom,  // placeholders of slack would fit nowhere else
  kSizedByUtilization,    // its group is sized by how full it is, and not by what fits elsewhere
};

// As Cluster Autoscaler writes it: "NotUnderutilized".
absl::string_view Name(NodeReason reason);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_REASON_H_
