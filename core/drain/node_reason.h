// The reasons for which a node stays.
#ifndef LOADLINE_CORE_DRAIN_NODE_REASON_H_
#define LOADLINE_CORE_DRAIN_NODE_REASON_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace loadline {

// Cluster Autoscaler's reasons under its names, and ours behind them. EntryOf() says what each one means.
enum class NodeReason {
  kNone,
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

  kAlreadyADestination,
  kNotEvaluated,
  kRecentEvictionsWait,
  kScaleDownThrottled,
  kWaitsForOtherDrains,
  kPlaceholdersNeedRoom,
  kSizedByUtilization,
  kGroupsGrow,
  kHoldsRoomForWaitingPods,
  kUnreadable,
  kDoNotDisrupt,
  kHoldsRoomForNominatedPods,
  kPartOfReplacement,
  kControlPlane,
  kVirtualNode,
  kNotStarted,
};

// The properties of a reason that are the same on every node.
struct NodeReasonEntry {
  absl::string_view name;     // as Cluster Autoscaler writes it: "NotUnderutilized"
  absl::string_view meaning;  // why the node stays
  // The change that would help. WhatWouldHelp() says it more exactly where the node tells more.
  absl::string_view advice;
};
// The table of all reasons. Of a number that is no reason, the name is empty.
NodeReasonEntry EntryOf(NodeReason reason);

// Its name; "invalid reason" of a number that is no reason.
absl::string_view Name(NodeReason reason);
// The reason of this name; nullopt: there is none.
std::optional<NodeReason> NodeReasonNamed(absl::string_view name);
// All of them, in their order, kNone being the first one.
std::vector<NodeReason> AllNodeReasons();

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_REASON_H_
