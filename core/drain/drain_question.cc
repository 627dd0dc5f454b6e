#include "core/drain/drain_question.h"

namespace loadline {

absl::string_view Name(DrainBrake brake) {
  switch (brake) {
    case DrainBrake::kNone:
      return "None";
    case DrainBrake::kDoubt:
      return "ClusterNotKnown";
    case DrainBrake::kUnhealthy:
      return "ClusterUnhealthy";
    case DrainBrake::kPodsVanished:
      return "PodsVanished";
    case DrainBrake::kNodesVanished:
      return "NodesVanished";
    case DrainBrake::kClockWentBack:
      return "ClockWentBack";
    case DrainBrake::kNodesBeingDeleted:
      return "NodesBeingDeleted";
    case DrainBrake::kRecentEvictions:
      return "RecentEvictions";
    case DrainBrake::kNotVerified:
      return "NotVerified";
  }
  return "invalid brake";
}

}  // namespace loadline
