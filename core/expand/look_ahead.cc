#include "core/expand/look_ahead.h"

#include <algorithm>
#include <cstddef>

#include "core/base/resource_names.h"

namespace loadline {
namespace {

// The part of the price per round by which a node has to be cheaper than the plan for the pods that wait
// alone. Chosen: less is not worth a larger node, which nobody may come to fill.
constexpr double kWorthwhile = 0.05;
constexpr double kRounding = 1e-9;  // between prices per round, relative
// The further pods that growth expects. Chosen by `make bench-arrivals`: 8 to 32 pods, and one to four times
// the preferred node, cost within 3 % of each other in the median of its rows.
constexpr int64_t kMostFurtherPods = 16;
constexpr int64_t kPreferredNodes = 2;

}  // namespace

FurtherPods FurtherPodsOf(int64_t cluster_nodes) {
  const NodeCapacity preferred = TablePreferredNode(PreferredTable::kProposal, cluster_nodes);
  return {kMostFurtherPods,
          {kPreferredNodes * preferred.milli_cpu, kPreferredNodes * preferred.memory_bytes}};
}

int64_t LookAhead::FurtherRounds(const std::vector<int64_t>& placed) const {
  double milli_cpu = 0, bytes = 0;
  for (size_t pods = 0; pods < placed.size(); ++pods) {
    if (placed[pods] == 0) continue;
    const PodShape& shape = estimator->pods()[pods].pod.shape;
    const std::optional<PodOwner>& owner = TraitsOf(shape).owner;
    if (owner.has_value() && owner->kind == "Job") return 0;
    const ResourceAmounts& requests = shape.requests;
    milli_cpu += static_cast<double>(requests.Get(kCpu)) * static_cast<double>(placed[pods]);
    bytes += static_cast<double>(requests.Get(kMemory)) * static_cast<double>(placed[pods]);
  }
  auto rounds = static_cast<double>(further.most / std::max<int64_t>(1, Total(placed)));
  if (milli_cpu > 0) rounds = std::min(rounds, static_cast<double>(further.room.milli_cpu) / milli_cpu);
  if (bytes > 0) rounds = std::min(rounds, static_cast<double>(further.room.memory_bytes) / bytes);
  return static_cast<int64_t>(rounds);
}

std::optional<NodeEstimate> LookAhead::OneNode(GrowableIndex group, const std::vector<int64_t>& placed,
                                               int64_t rounds) const {
  std::vector<int64_t> counts = placed;
  for (int64_t& count : counts) count *= rounds;
  estimator->set_counts(counts);
  const NodeThreshold limits[] = {{.max_nodes = 1}};
  NodeEstimate estimate = estimator->Estimate(groups[group], NodeLimiter(limits), budget);
  if (estimate.placed != counts || estimate.nodes != 1 || !estimate.existing.empty()) return std::nullopt;
  return estimate;
}

int64_t LookAhead::RoundsOn(GrowableIndex group, const std::vector<int64_t>& placed, int64_t most) const {
  int64_t low = 0, high = most;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (OneNode(group, placed, middle).has_value()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

double LookAhead::UsdPerRound(const std::vector<PlannedNodes>& alone, const std::vector<int64_t>& placed,
                              int64_t most) const {
  double usd = 0;
  for (const PlannedNodes& nodes : alone)
    usd += UsdOf(groups[nodes.group]) * static_cast<double>(nodes.nodes);
  if (alone.size() > 1 || alone.front().nodes > 1) return usd;
  return usd / static_cast<double>(std::max<int64_t>(1, RoundsOn(alone.front().group, placed, most)));
}

std::optional<WantedNodes> LookAhead::Choose(const std::vector<int64_t>& placed,
                                             const std::vector<PlannedNodes>& alone,
                                             const StrongVector<GrowableIndex, int64_t>& room) const {
  const int64_t further_rounds = Total(placed) > 0 ? FurtherRounds(placed) : 0;
  if (further_rounds == 0) return std::nullopt;
  double least = UsdPerRound(alone, placed, further_rounds + 1) * (1 - kWorthwhile);
  std::optional<GrowableIndex> best;
  for (const GrowableIndex group : groups.indices()) {
    if (room[group] == 0 || groups[group].atomic || groups[group].has_gpu) continue;
    const int64_t rounds = RoundsOn(group, placed, further_rounds + 1);
    if (rounds == 0) continue;
    const double per_round = UsdOf(groups[group]) / static_cast<double>(rounds);
    const bool smaller = best.has_value() && UsdOf(groups[group]) < UsdOf(groups[*best]);
    if (per_round > least * (smaller ? 1 + kRounding : 1 - kRounding)) continue;
    least = per_round;
    best = group;
  }
  if (!best.has_value()) return std::nullopt;
  const std::optional<NodeEstimate> node = OneNode(*best, placed, 1);
  if (!node.has_value()) return std::nullopt;
  return NodesOf(*best, *node).front();
}

}  // namespace loadline
