// The two resources that autoscalers plan by.
#ifndef LOADLINE_CORE_BASE_CPU_MEMORY_H_
#define LOADLINE_CORE_BASE_CPU_MEMORY_H_

#include <algorithm>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {

// CPU in millicores and memory in bytes, each in [0, kMaxAmount].
struct CpuMemory {
  int64_t cpu = 0;
  int64_t memory = 0;
  friend bool operator==(const CpuMemory&, const CpuMemory&) = default;
};

// Each per dimension. Sums and products saturate, a difference is at least 0.
inline CpuMemory Plus(const CpuMemory& a, const CpuMemory& b) {
  return {SaturatingAdd(a.cpu, b.cpu), SaturatingAdd(a.memory, b.memory)};
}
inline CpuMemory Minus(const CpuMemory& a, const CpuMemory& b) {
  return {std::max<int64_t>(0, a.cpu - b.cpu), std::max<int64_t>(0, a.memory - b.memory)};
}
inline CpuMemory Times(const CpuMemory& a, int64_t n) {
  const auto times = [&](int64_t amount) {
    return static_cast<int64_t>(std::min<absl::int128>(absl::int128(amount) * n, kMaxAmount));
  };
  return {times(a.cpu), times(a.memory)};
}
inline CpuMemory Larger(const CpuMemory& a, const CpuMemory& b) {
  return {std::max(a.cpu, b.cpu), std::max(a.memory, b.memory)};
}
inline CpuMemory Smaller(const CpuMemory& a, const CpuMemory& b) {
  return {std::min(a.cpu, b.cpu), std::min(a.memory, b.memory)};
}

// Returns whether `small` is at most `large` in both dimensions.
inline bool Within(const CpuMemory& small, const CpuMemory& large) {
  return small.cpu <= large.cpu && small.memory <= large.memory;
}

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_CPU_MEMORY_H_
