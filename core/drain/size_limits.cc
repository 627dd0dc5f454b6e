#include "core/drain/size_limits.h"

#include "core/drain/node_reason.h"

namespace loadline {

NodeReason SizeLimits::Take(std::optional<GroupIndex> group, const NodeOffer& node) {
  if (!group.has_value()) return NodeReason::kNotAutoscaled;
  switch (sizes_.Reached(*group, node)) {
    case MinimumReached::kOfGroup:
      return NodeReason::kNodeGroupMinSizeReached;
    case MinimumReached::kOfCluster:
      return NodeReason::kMinimalResourceLimitExceeded;
    case MinimumReached::kNone:
      break;
  }
  sizes_.Remove(*group, node);
  return NodeReason::kNone;
}

}  // namespace loadline
