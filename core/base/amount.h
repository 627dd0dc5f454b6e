#ifndef LOADLINE_CORE_BASE_AMOUNT_H_
#define LOADLINE_CORE_BASE_AMOUNT_H_

#include <algorithm>
#include <cstdint>

namespace loadline {

// The largest amount of one resource: 2^62, half of what int64 holds. An amount is cpu in millicores,
// anything else in its own unit (bytes, devices), and lies in [0, kMaxAmount]. An amount of kMaxAmount is
// read as "that much or more".
inline constexpr int64_t kMaxAmount = int64_t{1} << 62;

// Returns a + b, at most kMaxAmount. Both lie in [0, kMaxAmount], so the sum is at most 2^63 and is worked
// out unsigned: a node whose pods state absurd limits must look full, and a sum that wraps looks empty.
constexpr int64_t SaturatingAdd(int64_t a, int64_t b) {
  const uint64_t sum = static_cast<uint64_t>(a) + static_cast<uint64_t>(b);
  return static_cast<int64_t>(std::min(sum, static_cast<uint64_t>(kMaxAmount)));
}

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_AMOUNT_H_
