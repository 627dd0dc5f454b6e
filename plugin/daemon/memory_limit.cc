#include "plugin/daemon/memory_limit.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"

namespace loadline {

MemoryLimits ReadMemoryLimits(const std::string& cgroup_file) {
  MemoryLimits limits;
  std::string text;
  if (std::ifstream(cgroup_file) >> text && !absl::SimpleAtoi(text, &limits.container)) limits.container = 0;
  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limits.address_space = static_cast<int64_t>(address_space.rlim_cur);
  }
  return limits;
}

int64_t DefaultQuestionBytes(const MemoryLimits& limits) {
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  int64_t bytes = 256 * kMebibyte;
  if (limits.container > 0) bytes = std::min(bytes, limits.container / 4);
  if (limits.address_space > 0) bytes = std::min(bytes, limits.address_space / 32);
  return std::max(bytes, 16 * kMebibyte);
}

void ShareArenas(const MemoryLimits& limits) {
  if (limits.address_space > 0) mallopt(M_ARENA_MAX, 1);
}

}  // namespace loadline
