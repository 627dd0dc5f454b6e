// Utilization counted anew, for tests: shares no code with core/size.
#ifndef LOADLINE_TEST_CORE_SIZE_NAIVE_USAGE_H_
#define LOADLINE_TEST_CORE_SIZE_NAIVE_USAGE_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/base/cpu_memory.h"

namespace loadline {

// Returns whether more than so many percent of what equal nodes offer is requested, of cpu or of memory.
// Exact.
inline bool ExceedsPercent(const CpuMemory& requests, const CpuMemory& node, int64_t nodes, int64_t percent) {
  const auto exceeds = [&](int64_t requested, int64_t of_one) {
    return absl::int128(requested) * 100 > absl::int128(of_one) * nodes * percent;
  };
  return exceeds(requests.cpu, node.cpu) || exceeds(requests.memory, node.memory);
}

}  // namespace loadline

#endif  // LOADLINE_TEST_CORE_SIZE_NAIVE_USAGE_H_
