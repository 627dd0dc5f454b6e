#include "plugin/daemon/memory_limit.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
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

namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

// 256 MiB, but at most a part of what there is.
int64_t Share(const MemoryLimits& limits, int64_t of_container, int64_t of_address_space) {
  int64_t bytes = 256 * kMebibyte;
  if (limits.container > 0) bytes = std::min(bytes, limits.container / of_container);
  if (limits.address_space > 0) bytes = std::min(bytes, limits.address_space / of_address_space);
  return bytes;
}

}  // namespace

int64_t DefaultQuestionBytes(const MemoryLimits& limits) {
  return std::max(Share(limits, 4, 32), 16 * kMebibyte);
}

int64_t DefaultViewBytes(const MemoryLimits& limits) { return std::max(Share(limits, 8, 64), 8 * kMebibyte); }

void SaveAddressSpace(const MemoryLimits& limits) {
  constexpr size_t kStackBytes = size_t{2} << 20;
  if (limits.address_space == 0) return;
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  if (pthread_attr_setstacksize(&attributes, kStackBytes) == 0) pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace loadline
