#include "core/drain/size_limits.h"

#include "core/drain/node_reason.h"

namespace loadline {

SizeLimits::SizeLimits(std::span<const DrainGroup> groups, const ClusterMinimum& minimum)
    : groups_(groups), minimum_(minimum), counts_(groups.size()) {}

void SizeLimits::AddNode(int32_t group, const CpuMemory& allocatable, bool being_deleted) {
  if (group >= 0) {
    Count& count = counts_[static_cast<size_t>(group)];
    ++count.registered;
    if (being_deleted) ++count.deleting;
  }
  if (being_deleted) return;
  ++nodes_;
  cpu_ += allocatable.cpu;
  memory_ += allocatable.memory;
}

NodeReason SizeLimits::Take(int32_t group, const CpuMemory& allocatable) {
  if (group < 0) return NodeReason::kNotAutoscaled;
  const DrainGroup& limits = groups_[static_cast<size_t>(group)];
  Count& count = counts_[static_cast<size_t>(group)];
  const int64_t going = count.deleting + count.taken;
  if (limits.target - going <= limits.min_nodes || count.registered - going <= limits.min_nodes) {
    return NodeReason::kNodeGroupMinSizeReached;
  }
  if (nodes_ - 1 < minimum_.nodes || cpu_ - allocatable.cpu < minimum_.amounts.cpu ||
      memory_ - allocatable.memory < minimum_.amounts.memory) {
    return NodeReason::kMinimalResourceLimitExceeded;
  }
  ++count.taken;
  --nodes_;
  cpu_ -= allocatable.cpu;
  memory_ -= allocatable.memory;
  return NodeReason::kNone;
}

void SizeLimits::GiveBack(int32_t group, const CpuMemory& allocatable) {
  --counts_[static_cast<size_t>(group)].taken;
  ++nodes_;
  cpu_ += allocatable.cpu;
  memory_ += allocatable.memory;
}

bool SizeLimits::AreWholeGroup(int32_t group, int64_t nodes) const {
  const Count& count = counts_[static_cast<size_t>(group)];
  const int64_t going = nodes + count.deleting;
  const DrainGroup& limits = groups_[static_cast<size_t>(group)];
  return going == limits.target || going == count.registered + limits.upcoming;
}

}  // namespace loadline
