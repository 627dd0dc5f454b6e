#include "core/sim/node_load.h"

#include <algorithm>
#include <cstddef>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

constexpr int64_t kHundredths = 100;
constexpr int64_t kMillionths = 1'000'000;
constexpr int64_t kUseHourMs = 3'600'000;

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
    : world_(*world),
      cpu_(kHighest * kHundredths + 1),
      memory_(kHighest * kHundredths + 1),
      chance_(world->scenario().seed, SimPurpose::kUse) {
  if (!world_.scenario().StatesUse()) return;
  for (const SimWorkload& workload : world_.scenario().workloads) reported_.push_back(HoursOf(workload));
  use_.resize(reported_.size());
  NextHour();
}

void NodeLoadWatch::PodChanged(SimPodIndex pod) {
  if (!node_of_.Contains(pod)) node_of_.resize(IndexOf(pod) + 1);
  const OptionalIndex<SimNodeIndex> now = world_.pod(pod).on();
  OptionalIndex<SimNodeIndex>& before = node_of_[pod];
  if (now == before) return;
  const SimWorkloadIndex workload = world_.pod(pod).workload;
  const CpuMemory& limit = world_.workload(workload).limit;
  if (before.has_value()) {
    ChangeUse(*before, workload, /*added=*/false);
    CpuMemory& limits = limits_[*before];
    limits = Minus(limits, limit);
  }
  if (now.has_value()) {
    ChangeUse(*now, workload, /*added=*/true);
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
    const CpuMemory& allocatable = AllocatableOf(node);
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
  if (reported_.empty()) return load;
  Overload sums = overload_;
  for (const SimNodeIndex node : world_.nodes()) AddUntilNow(node, &sums);
  const auto volume = [](absl::int128 sum) { return static_cast<double>(sum) / kMillionths / kUseHourMs; };
  load.overload = SimOverload{static_cast<double>(sums.cpu_ms) / kUseHourMs,
                              static_cast<double>(sums.memory_ms) / kUseHourMs, volume(sums.cpu_volume),
                              volume(sums.memory_volume)};
  return load;
}

// Returns the use in this hour; a pod uses what it requests where nothing is stated.
int64_t NodeLoadWatch::RealUse(int64_t reported, int64_t request, int64_t limit, int64_t percent) const {
  if (reported == 0) return request;
  const absl::int128 use = absl::int128(reported) * percent / kHundredths;
  return static_cast<int64_t>(std::min<absl::int128>(use, limit > 0 ? limit : kMaxAmount));
}

void NodeLoadWatch::NextHour() {
  const size_t hour = static_cast<size_t>(world_.now_ms() / kUseHourMs) % kHoursOfDay;
  for (const SimWorkloadIndex i : use_.indices()) {
    const SimWorkload& workload = world_.workload(i);
    const int64_t most = workload.use.has_value() ? workload.use->deviation_percent : 0;
    const int64_t percent = std::max<int64_t>(0, kHundredths + chance_.Between(-most, most));
    const SimHours& reported = reported_[i];
    use_[i] = {RealUse(reported.cpu[hour], workload.request.cpu, workload.limit.cpu, percent),
               RealUse(reported.memory[hour], workload.request.memory, workload.limit.memory, percent)};
  }
  for (const SimNodeIndex node : world_.nodes()) {
    if (!nodes_use_.Contains(node)) continue;
    AddUntilNow(node, &overload_);
    nodes_use_[node] = {{}, world_.now_ms()};
    CpuMemory& now = nodes_use_[node].now;
    for (const SimPodIndex pod : world_.node(node).pods) now = Plus(now, use_[world_.pod(pod).workload]);
  }
}

void NodeLoadWatch::ChangeUse(SimNodeIndex node, SimWorkloadIndex workload, bool added) {
  if (reported_.empty()) return;
  if (!nodes_use_.Contains(node)) nodes_use_.resize(IndexOf(node) + 1);
  AddUntilNow(node, &overload_);
  NodeUse& use = nodes_use_[node];
  use.now = added ? Plus(use.now, use_[workload]) : Minus(use.now, use_[workload]);
  use.since_ms = world_.now_ms();
}

// A node that is gone has no pods, and nothing to add.
void NodeLoadWatch::AddUntilNow(SimNodeIndex node, Overload* overload) const {
  if (!nodes_use_.Contains(node)) return;
  const NodeUse& use = nodes_use_[node];
  const CpuMemory& allocatable = AllocatableOf(node);
  const int64_t ms = world_.now_ms() - use.since_ms;
  const auto add = [&](int64_t amount, int64_t offered, int64_t percent, int64_t* over_ms,
                       absl::int128* volume) {
    if (absl::int128(amount) * kHundredths > absl::int128(offered) * percent) *over_ms += ms;
    if (amount > offered) *volume += absl::int128(amount - offered) * kMillionths / offered * ms;
  };
  add(use.now.cpu, allocatable.cpu, kHundredths, &overload->cpu_ms, &overload->cpu_volume);
  add(use.now.memory, allocatable.memory, kMemoryPercent, &overload->memory_ms, &overload->memory_volume);
}

SimUseNow NodeLoadWatch::UseNow() const {
  SimUseNow result;
  for (const SimNodeIndex node : world_.nodes()) {
    if (!nodes_use_.Contains(node)) continue;
    const CpuMemory& use = nodes_use_[node].now;
    const CpuMemory& allocatable = AllocatableOf(node);
    const double cpu = static_cast<double>(use.cpu) / static_cast<double>(allocatable.cpu);
    const double memory = static_cast<double>(use.memory) / static_cast<double>(allocatable.memory);
    result.busiest_cpu = std::max(result.busiest_cpu, cpu);
    result.busiest_memory = std::max(result.busiest_memory, memory);
    result.overloaded += cpu > 1 || memory > static_cast<double>(kMemoryPercent) / kHundredths ? 1 : 0;
  }
  return result;
}

}  // namespace loadline
