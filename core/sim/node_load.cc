#include "core/sim/node_load.h"

#include <algorithm>
#include <cstddef>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

constexpr int64_t kHundredths = 100;

// limit / allocatable in hundredths, rounded up.
size_t HundredthsOf(int64_t limit, int64_t allocatable) {
  constexpr int64_t kMost = NodeLoadWatch::kHighest * kHundredths;
  if (limit == 0) return 0;
  if (allocatable == 0) return static_cast<size_t>(kMost);
  const absl::int128 hundredths = (absl::int128(limit) * kHundredths + allocatable - 1) / allocatable;
  return static_cast<size_t>(std::min<absl::int128>(hundredths, kMost));
}

double P99(const std::vector<int64_t>& counts, int64_t all) {
  const int64_t rank = (all * 99 + 99) / 100;
  int64_t below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    if (below >= rank && below > 0) return static_cast<double>(i) / kHundredths;
  }
  return 0;
}

}  // namespace

NodeLoadWatch::NodeLoadWatch(const World* world)
    : world_(*world), cpu_(kHighest * kHundredths + 1), memory_(kHighest * kHundredths + 1) {}

void NodeLoadWatch::PodChanged(SimPodIndex pod) {
  if (!node_of_.Contains(pod)) node_of_.resize(IndexOf(pod) + 1);
  const OptionalIndex<SimNodeIndex> now = world_.pod(pod).on();
  OptionalIndex<SimNodeIndex>& before = node_of_[pod];
  if (now == before) return;
  const CpuMemory& limit = world_.workload(world_.pod(pod).workload).limit;
  if (before.has_value()) {
    CpuMemory& limits = limits_[*before];
    limits = Minus(limits, limit);
  }
  if (now.has_value()) {
    if (!limits_.Contains(*now)) limits_.resize(IndexOf(*now) + 1);
    CpuMemory& limits = limits_[*now];
    limits = Plus(limits, limit);
  }
  before = now;
}

void NodeLoadWatch::Look() {
  const int64_t nodes = static_cast<int64_t>(world_.nodes().size());
  ++moments_;
  nodes_ += nodes;
  nodes_max_ = std::max(nodes_max_, nodes);
  for (const SimNodeIndex node : world_.nodes()) {
    const CpuMemory limits = limits_.Contains(node) ? limits_[node] : CpuMemory{};
    const CpuMemory& allocatable = world_.group(world_.node(node).group).allocatable;
    ++cpu_[HundredthsOf(limits.cpu, allocatable.cpu)];
    ++memory_[HundredthsOf(limits.memory, allocatable.memory)];
  }
}

SimLoad NodeLoadWatch::Load() const {
  SimLoad load;
  load.cpu_p99 = P99(cpu_, nodes_);
  load.memory_p99 = P99(memory_, nodes_);
  if (moments_ > 0) load.nodes_mean = static_cast<double>(nodes_) / static_cast<double>(moments_);
  load.nodes_max = nodes_max_;
  return load;
}

}  // namespace loadline
