#include "core/size/utilization.h"

#include <algorithm>
#include <cmath>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

// Thousandths, as a double.
double Milli(int64_t bytes) {
  const absl::int128 milli = absl::int128(bytes) * 1000;
  return static_cast<double>(
      static_cast<int64_t>(std::min<absl::int128>(milli, std::numeric_limits<int64_t>::max())));
}

int64_t CeilOf(double nodes) {
  // Also NaN, of 0 / 0, which no threshold above 0 gives.
  if (!(nodes > 0)) return 0;
  return nodes >= static_cast<double>(kMostNodes) ? kMostNodes : static_cast<int64_t>(std::ceil(nodes));
}

// Signs of 100 * requests - threshold * capacity.
absl::int128 Excess(int64_t requests, int64_t capacity, int32_t threshold_percent) {
  return absl::int128(requests) * 100 - absl::int128(capacity) * threshold_percent;
}

// Nodes of `node` / `parts` each that `excess`, in percent of an amount, takes: below 2^69 * 2^31.
std::optional<int64_t> NodesFor(absl::int128 excess, int64_t node, int64_t parts, int32_t threshold_percent) {
  if (excess <= 0) return 0;
  if (node == 0) return std::nullopt;
  const absl::int128 one = absl::int128(node) * threshold_percent;
  const absl::int128 nodes = (excess * parts + one - 1) / one;
  return static_cast<int64_t>(std::min<absl::int128>(nodes, kMostNodes));
}

}  // namespace

Usage ShippedUsage(const CpuMemory& requests, const CpuMemory& capacity, int64_t nodes) {
  if (requests == CpuMemory{} && capacity == CpuMemory{} && nodes == 0) return {};
  if (capacity.cpu == 0 || capacity.memory == 0) {
    return {.kind = nodes == 0 ? UsageKind::kFromZero : UsageKind::kNoCapacity};
  }
  return {.cpu = static_cast<double>(requests.cpu) / static_cast<double>(capacity.cpu) * 100,
          .memory = Milli(requests.memory) / Milli(capacity.memory) * 100};
}

int64_t ShippedDelta(const Usage& usage, int64_t nodes, const CpuMemory& requests, int32_t threshold_percent,
                     const std::optional<CpuMemory>& new_node) {
  const double threshold = threshold_percent;
  if (usage.kind == UsageKind::kFromZero) {
    if (!new_node.has_value() || new_node->cpu == 0 || new_node->memory == 0) return 1;
    const double cpu =
        static_cast<double>(requests.cpu) / static_cast<double>(new_node->cpu) / threshold * 100;
    const double memory = Milli(requests.memory) / Milli(new_node->memory) / threshold * 100;
    return std::max(CeilOf(cpu), CeilOf(memory));
  }
  const auto needed = [&](double percent) {
    const double decrease = (percent - threshold) / threshold;
    return CeilOf(static_cast<double>(nodes) * decrease);
  };
  return std::max(needed(usage.cpu), needed(usage.memory));
}

std::optional<int64_t> ExactDelta(const CpuMemory& requests, const CpuMemory& capacity, int64_t nodes,
                                  int32_t threshold_percent, const std::optional<CpuMemory>& new_node) {
  if (!new_node.has_value() && nodes == 0) return requests == CpuMemory{} ? 0 : 1;
  const CpuMemory node = new_node.value_or(capacity);
  const int64_t parts = new_node.has_value() ? 1 : nodes;
  const std::optional<int64_t> cpu =
      NodesFor(Excess(requests.cpu, capacity.cpu, threshold_percent), node.cpu, parts, threshold_percent);
  const std::optional<int64_t> memory = NodesFor(Excess(requests.memory, capacity.memory, threshold_percent),
                                                 node.memory, parts, threshold_percent);
  if (!cpu.has_value() || !memory.has_value()) return std::nullopt;
  return std::max(*cpu, *memory);
}

bool IsAbove(const CpuMemory& requests, const CpuMemory& capacity, int32_t threshold_percent) {
  return Excess(requests.cpu, capacity.cpu, threshold_percent) > 0 ||
         Excess(requests.memory, capacity.memory, threshold_percent) > 0;
}

bool IsBelow(const CpuMemory& requests, const CpuMemory& capacity, int32_t threshold_percent) {
  const auto below = [&](int64_t requested, int64_t offered) {
    if (requested == 0 && offered == 0) return threshold_percent > 0;
    return Excess(requested, offered, threshold_percent) < 0;
  };
  return below(requests.cpu, capacity.cpu) && below(requests.memory, capacity.memory);
}

}  // namespace loadline
