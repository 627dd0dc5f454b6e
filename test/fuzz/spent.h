// The cost of a call: the oracles for time and memory.
#ifndef LOADLINE_TEST_FUZZ_SPENT_H_
#define LOADLINE_TEST_FUZZ_SPENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOADLINE_COUNTS_MEMORY
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace loadline {

// Bytes that the process has in use, and the most that it had. Counted where the address sanitizer reports
// them, else 0.
class HeldBytes {
 public:
  static int64_t Now() { return live_bytes.load(std::memory_order_relaxed); }
  static int64_t Most() { return most_live_bytes.load(std::memory_order_relaxed); }
  static void Begin() {
#ifdef LOADLINE_COUNTS_MEMORY
    static const int kInstalled = __sanitizer_install_malloc_and_free_hooks(Allocated, Freed);
    static_cast<void>(kInstalled);
#endif
    most_live_bytes.store(Now(), std::memory_order_relaxed);
  }

 private:
#ifdef LOADLINE_COUNTS_MEMORY
  static void Allocated(const volatile void*, size_t size) {
    const int64_t now = live_bytes.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size);
    if (now > most_live_bytes.load(std::memory_order_relaxed))
      most_live_bytes.store(now, std::memory_order_relaxed);
  }
  static void Freed(const volatile void* pointer) {
    if (pointer == nullptr) return;
    live_bytes.fetch_sub(
        static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(pointer))));
  }
#endif
  static inline std::atomic<int64_t> live_bytes = 0;
  static inline std::atomic<int64_t> most_live_bytes = 0;
};

// The cost from its making on: CPU time of this thread, and bytes beyond those that were in use before.
class Spent {
 public:
  Spent() : cpu_(Cpu()), bytes_((HeldBytes::Begin(), HeldBytes::Now())) {}
  int64_t milliseconds() const { return Cpu() - cpu_; }
  int64_t most_bytes() const { return HeldBytes::Most() - bytes_; }

 private:
  static int64_t Cpu() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000 + now.tv_nsec / 1'000'000;
  }

  int64_t cpu_;
  int64_t bytes_;
};

}  // namespace loadline

#endif  // LOADLINE_TEST_FUZZ_SPENT_H_
