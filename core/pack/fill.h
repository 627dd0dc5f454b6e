// Counts the items of one kind that fit into free amounts.
#ifndef LOADLINE_CORE_PACK_FILL_H_
#define LOADLINE_CORE_PACK_FILL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace loadline {

// Returns the number of copies of a request that fit into the free amounts, one after the other. By resource;
// of a request that asks for nothing: the largest number.
inline int64_t CopiesThatFit(std::span<const int64_t> free, std::span<const int64_t> request) {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < request.size(); ++i) {
    if (request[i] == 0) continue;
    if (free[i] < request[i]) return 0;
    const int64_t copies = free[i] / request[i];
    if (copies < most) most = copies;
  }
  return most;
}

// Takes `count` copies of a request, which fit, off what is free.
inline void TakeCopies(std::span<const int64_t> request, int64_t count, std::vector<int64_t>* free) {
  for (size_t i = 0; i < request.size(); ++i) (*free)[i] -= request[i] * count;
}

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_FILL_H_
