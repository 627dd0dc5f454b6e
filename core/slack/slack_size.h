// Sizes placeholders: by our own rule, and by the literal formulas of the resource slack proposal.
#ifndef LOADLINE_CORE_SLACK_SLACK_SIZE_H_
#define LOADLINE_CORE_SLACK_SLACK_SIZE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/cpu_memory.h"

namespace loadline {

// The amount of which the rate of extra room is a share.
enum class SlackBasis {
  kRequested,  // what pods request
  kCapacity,   // what nodes offer: converges for rates below 1 only
};

// A rate in billionths: whole numbers, so that 10 % of 6000 is 600 and not 601.
inline constexpr int64_t kWholeRate = 1'000'000'000;

// Equal placeholders, each of `size`.
struct Pieces {
  int64_t count = 0;
  CpuMemory size;
  friend bool operator==(const Pieces&, const Pieces&) = default;
};

// ceil(rate * basis) per dimension.
CpuMemory ExtraRoom(const CpuMemory& basis, int64_t rate);

// Returns the largest size of one placeholder: floor(node / granularity), and at most `bound` where there is
// one.
CpuMemory LargestPiece(const CpuMemory& node, int64_t granularity, const std::optional<CpuMemory>& bound);

// Shares `room` among as few placeholders as `unit` allows: count = max over dimensions of
// ceil(room / unit), size = ceil(room / count). So room <= count * size <= room + count - 1, and size <=
// unit. nullopt: room is wanted in a dimension of which a placeholder may have none. No room: no placeholder.
std::optional<Pieces> Share(const CpuMemory& room, const CpuMemory& unit);

// The sum of shapes that are kept free; `dedupe`: equal ones count once.
CpuMemory SumOfReserve(std::span<const CpuMemory> reserve, bool dedupe);

// The reserve that is kept for the pods of a class.
enum class ReserveMode {
  kNone,     // version 1
  kBiggest,  // version 2, first idea: the pod with the most cpu, and the one with the most memory
  kHull,  // second idea: one hole for (most cpu, most memory), where it fits an empty node; else as kBiggest
  kPareto,  // every pod shape that no other one exceeds in both
};
// Each shape once; largest cpu first. Pods that do not fit `node` are left out.
std::vector<CpuMemory> ReserveFor(ReserveMode mode, std::vector<CpuMemory> pods, const CpuMemory& node);

// Returns whether `pod` fits into one of several holes, each by itself.
bool FitsOneOf(const CpuMemory& pod, std::span<const CpuMemory> holes);

// The number of equal nodes at which an autoscaler that keeps `rate` extra rests; nullopt: at none.
std::optional<int64_t> NodesAtRest(int64_t requested, int64_t node, int64_t rate, SlackBasis basis);

// --- the proposal's formulas as they stand, in real numbers
// -------------------------------------------------

// Version 1: granularity placeholders of average / granularity for each node, which is the whole cluster over
// again. Without nodes all 0.
struct LiteralSlack {
  int64_t count = 0;
  double cpu = 0;  // of one placeholder
  double memory = 0;
};
LiteralSlack LiteralStandard(const CpuMemory& capacity, int64_t nodes, int64_t granularity);

// Version 2: what is left of the extra room after the reserve, which may be less than nothing.
struct LiteralRoom {
  double cpu = 0;
  double memory = 0;
};
LiteralRoom LiteralRemaining(const CpuMemory& capacity, int64_t rate, std::span<const CpuMemory> reserve);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_SLACK_SIZE_H_
