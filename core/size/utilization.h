// How full a node group is, and how many nodes it lacks: the arithmetic of Escalator, as shipped and exact.
#ifndef LOADLINE_CORE_SIZE_UTILIZATION_H_
#define LOADLINE_CORE_SIZE_UTILIZATION_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "core/base/cpu_memory.h"

namespace loadline {

// The largest number of nodes in an answer: a larger one means "as many as there are".
inline constexpr int64_t kMostNodes = std::numeric_limits<int32_t>::max();

// The kinds of a utilization: only the first one is a percentage.
enum class UsageKind {
  kPercent,
  kFromZero,    // something is requested and no node is there: no percentage can say how much
  kNoCapacity,  // nodes are there and offer nothing in one dimension
};

// Requests over capacity, in percent of capacity; 0 unless kPercent.
struct Usage {
  UsageKind kind = UsageKind::kPercent;
  double cpu = 0;
  double memory = 0;
};

// Returns requests / capacity * 100 per dimension, in doubles in this order, as Escalator shows and compares
// it. `nodes`: how many the capacity is of.
// Memory is compared in thousandths of a byte there; beyond 9.2 PB, where that wraps, this saturates.
// Source: atlassian/escalator 043bb1b, pkg/controller/util.go:59-82.
Usage ShippedUsage(const CpuMemory& requests, const CpuMemory& capacity, int64_t nodes);

// Nodes that the group lacks to come to at most `threshold_percent` in both dimensions: per dimension
//   ceil(nodes * ((percent - threshold) / threshold)), and from zero ceil(requests / node / threshold * 100),
// of which the larger one; 1 where `new_node` is not known or has none of one dimension. In doubles, in this
// order and without fused multiply-add: exactly integral answers may come out one too large.
// `usage`: kPercent or kFromZero. Result: [0, kMostNodes].
// Source: the same, util.go:14.
int64_t ShippedDelta(const Usage& usage, int64_t nodes, const CpuMemory& requests, int32_t threshold_percent,
                     const std::optional<CpuMemory>& new_node);

// The same question in whole numbers: the smallest d with
//   100 * requests <= threshold * (capacity + d * node)
// in both dimensions, where a node is `new_node`, or the average one where that is not known; 1 from zero
// when it is not known. nullopt: no number of such nodes would do, because a node has none of what is
// lacking. `threshold_percent` >= 1. Result: [0, kMostNodes].
std::optional<int64_t> ExactDelta(const CpuMemory& requests, const CpuMemory& capacity, int64_t nodes,
                                  int32_t threshold_percent, const std::optional<CpuMemory>& new_node);

// Returns whether the larger one of both percentages is above, or below, the threshold: exact. A capacity of
// 0 is above any threshold when something is requested, and else 0 %.
bool IsAbove(const CpuMemory& requests, const CpuMemory& capacity, int32_t threshold_percent);
bool IsBelow(const CpuMemory& requests, const CpuMemory& capacity, int32_t threshold_percent);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_UTILIZATION_H_
