#include "core/slack/slack_size.h"

#include <algorithm>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

int64_t CeilDiv(absl::int128 a, absl::int128 b) {
  return static_cast<int64_t>(std::min<absl::int128>((a + b - 1) / b, kMaxAmount));
}

// The largest CPU; among equals, the one with the most memory.
CpuMemory WithMostCpu(std::span<const CpuMemory> pods) {
  return *std::max_element(pods.begin(), pods.end(), [](const CpuMemory& a, const CpuMemory& b) {
    return a.cpu != b.cpu ? a.cpu < b.cpu : a.memory < b.memory;
  });
}

CpuMemory WithMostMemory(std::span<const CpuMemory> pods) {
  return *std::max_element(pods.begin(), pods.end(), [](const CpuMemory& a, const CpuMemory& b) {
    return a.memory != b.memory ? a.memory < b.memory : a.cpu < b.cpu;
  });
}

bool CpuFirst(const CpuMemory& a, const CpuMemory& b) {
  return a.cpu != b.cpu ? a.cpu > b.cpu : a.memory > b.memory;
}

}  // namespace

CpuMemory ExtraRoom(const CpuMemory& basis, int64_t rate) {
  return {CeilDiv(absl::int128(basis.cpu) * rate, kWholeRate),
          CeilDiv(absl::int128(basis.memory) * rate, kWholeRate)};
}

CpuMemory LargestPiece(const CpuMemory& node, int64_t granularity, const std::optional<CpuMemory>& bound) {
  const CpuMemory unit = {node.cpu / granularity, node.memory / granularity};
  return bound.has_value() ? Smaller(unit, *bound) : unit;
}

std::optional<Pieces> Share(const CpuMemory& room, const CpuMemory& unit) {
  if (room == CpuMemory{}) return Pieces{};
  if ((room.cpu > 0 && unit.cpu == 0) || (room.memory > 0 && unit.memory == 0)) return std::nullopt;
  int64_t count = 0;
  if (room.cpu > 0) count = CeilDiv(room.cpu, unit.cpu);
  if (room.memory > 0) count = std::max(count, CeilDiv(room.memory, unit.memory));
  return Pieces{count, {CeilDiv(room.cpu, count), CeilDiv(room.memory, count)}};
}

CpuMemory SumOfReserve(std::span<const CpuMemory> reserve, bool dedupe) {
  CpuMemory sum;
  for (size_t i = 0; i < reserve.size(); ++i) {
    const bool seen = std::find(reserve.begin(), reserve.begin() + static_cast<std::ptrdiff_t>(i),
                                reserve[i]) != reserve.begin() + static_cast<std::ptrdiff_t>(i);
    if (!dedupe || !seen) sum = Plus(sum, reserve[i]);
  }
  return sum;
}

std::vector<CpuMemory> ReserveFor(ReserveMode mode, std::vector<CpuMemory> pods, const CpuMemory& node) {
  std::erase_if(pods, [&](const CpuMemory& pod) { return pod == CpuMemory{} || !Within(pod, node); });
  if (pods.empty() || mode == ReserveMode::kNone) return {};
  std::vector<CpuMemory> reserve;
  const CpuMemory cpu = WithMostCpu(pods), memory = WithMostMemory(pods);
  const CpuMemory hull = Larger(cpu, memory);
  if (mode == ReserveMode::kPareto) {
    // By cpu, most first: a shape is undominated when it has more memory than all before it.
    std::sort(pods.begin(), pods.end(), CpuFirst);
    for (const CpuMemory& pod : pods) {
      if (reserve.empty() || pod.memory > reserve.back().memory) reserve.push_back(pod);
    }
  } else if (mode == ReserveMode::kHull && Within(hull, node)) {
    reserve = {hull};
  } else {
    reserve = {cpu};
    if (memory != cpu) reserve.push_back(memory);
  }
  return reserve;
}

bool FitsOneOf(const CpuMemory& pod, std::span<const CpuMemory> holes) {
  return std::any_of(holes.begin(), holes.end(), [&](const CpuMemory& hole) { return Within(pod, hole); });
}

std::optional<int64_t> NodesAtRest(int64_t requested, int64_t node, int64_t rate, SlackBasis basis) {
  if (node <= 0) return std::nullopt;
  if (basis == SlackBasis::kRequested) {
    return CeilDiv(absl::int128(requested) * (kWholeRate + rate), absl::int128(node) * kWholeRate);
  }
  // C >= W + r * C
  if (rate >= kWholeRate) return std::nullopt;
  return CeilDiv(absl::int128(requested) * kWholeRate, absl::int128(node) * (kWholeRate - rate));
}

LiteralSlack LiteralStandard(const CpuMemory& capacity, int64_t nodes, int64_t granularity) {
  if (nodes == 0) return {};
  const double parts = static_cast<double>(nodes) * static_cast<double>(granularity);
  return {nodes * granularity, static_cast<double>(capacity.cpu) / parts,
          static_cast<double>(capacity.memory) / parts};
}

LiteralRoom LiteralRemaining(const CpuMemory& capacity, int64_t rate, std::span<const CpuMemory> reserve) {
  const double share = static_cast<double>(rate) / static_cast<double>(kWholeRate);
  LiteralRoom room{static_cast<double>(capacity.cpu) * share, static_cast<double>(capacity.memory) * share};
  for (const CpuMemory& pod : reserve) {
    room.cpu -= static_cast<double>(pod.cpu);
    room.memory -= static_cast<double>(pod.memory);
  }
  return room;
}

}  // namespace loadline
