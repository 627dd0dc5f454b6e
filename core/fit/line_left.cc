#include "core/fit/line_left.h"

#include <algorithm>
#include <cstddef>

namespace loadline {

LineLeft::LineLeft(const LoadLine& line, const NodeShape& node) : line_(line), node_(node), sums_(line.sums) {
  for (size_t r = 0; r < line.lines.size(); ++r) {
    const int64_t allocatable = node.allocatable.Get(line.sums.resources[r].id);
    left_.push_back(LimitCeiling(LineOn(line, r, node.labels), allocatable));
  }
}

void LineLeft::Add(const PodShape& pod) {
  for (size_t r = 0; r < left_.size(); ++r) left_[r] -= sums_.Counted(pod, node_, r).amount;
}

CpuMemory LineLeft::Left() const {
  CpuMemory room{kMaxAmount, kMaxAmount};
  for (size_t r = 0; r < left_.size(); ++r) {
    const int64_t left = static_cast<int64_t>(std::max<absl::int128>(0, left_[r]));
    const ResourceId id = line_.sums.resources[r].id;
    if (id == kCpu) room.cpu = std::min(room.cpu, left);
    if (id == kMemory) room.memory = std::min(room.memory, left);
  }
  return room;
}

CpuMemory LineLeft::TakenBy(const PodShape& pod) const {
  CpuMemory taken{pod.requests.Get(kCpu), pod.requests.Get(kMemory)};
  for (size_t r = 0; r < left_.size(); ++r) {
    const int64_t counted = sums_.Counted(pod, node_, r).amount;
    const ResourceId id = line_.sums.resources[r].id;
    if (id == kCpu) taken.cpu = std::max(taken.cpu, counted);
    if (id == kMemory) taken.memory = std::max(taken.memory, counted);
  }
  return taken;
}

}  // namespace loadline
