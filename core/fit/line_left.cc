#include "core/fit/line_left.h"

#include <algorithm>

namespace loadline {

LineLeft::LineLeft(const LoadLine& line, const NodeShape& node) : line_(line), node_(node) {
  for (size_t r = 0; r < line.lines.size(); ++r) {
    const ResourceId id = line.sums.resources[r].id;
    const int64_t ceiling = LimitCeiling(LineOn(line, r, node.labels), node.allocatable.Get(id));
    if (id == kCpu) cpu_ = ceiling;
    if (id == kMemory) memory_ = ceiling;
  }
}

CpuMemory LineLeft::Counted(const PodShape& pod) const {
  CpuMemory counted;
  const LimitCounting counting{PodLimits::kEffective, MissingLimitScope::kAllPods,
                               line_.sums.max_limit_ratio};
  for (const LimitSumsSpec::Resource& resource : line_.sums.resources) {
    const PodLimit limit = PodLimitOf(counting, resource.rules, resource.id, pod, PodRole::kExisting);
    const int64_t amount =
        CountOnNode(line_.sums.max_limit_ratio, limit, node_.allocatable.Get(resource.id)).amount;
    if (resource.id == kCpu) counted.cpu = amount;
    if (resource.id == kMemory) counted.memory = amount;
  }
  return counted;
}

void LineLeft::Add(const PodShape& pod) {
  if (line_.empty()) return;
  const CpuMemory counted = Counted(pod);
  cpu_ -= counted.cpu;
  memory_ -= counted.memory;
}

CpuMemory LineLeft::Left() const {
  const absl::int128 nothing = 0;
  return {static_cast<int64_t>(std::max(nothing, cpu_)), static_cast<int64_t>(std::max(nothing, memory_))};
}

CpuMemory LineLeft::TakenBy(const PodShape& pod) const {
  const CpuMemory requests{pod.requests.Get(kCpu), pod.requests.Get(kMemory)};
  return line_.empty() ? requests : Larger(requests, Counted(pod));
}

}  // namespace loadline
