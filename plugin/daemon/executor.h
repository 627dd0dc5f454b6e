// A few threads for calls that take long.
#ifndef LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_
#define LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "plugin/base/mutex.h"

namespace loadline {

// The limits on waiting calls.
struct ExecutorLimits {
  size_t tasks = 0;
  size_t bytes = 0;  // of all of them together; one task may have more
};

// Runs tasks in the order in which they come. Thread-safe.
class Executor {
 public:
  Executor(size_t threads, const ExecutorLimits& limits);
  // Runs what waits and joins the threads.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `bytes`: what the task holds while it waits. False when too much waits; `task` is not run then.
  bool Run(size_t bytes, std::function<void()> task);

 private:
  struct Task {
    size_t bytes = 0;
    std::function<void()> run;
  };

  // Time after which a thread without a task gives back free memory. Chosen: soon enough for who looks at the
  // memory of a daemon that has nothing to do. Measured: a loop after a pause, on 2,000 nodes with 40,000
  // pods, takes 18 ms of CPU instead of 15, and an idle daemon a thousandth of a core.
  static constexpr std::chrono::milliseconds kIdleTime{2'000};
  // After a task that took longer than kLongTask, only plans do, this time is short: the next one may run on
  // another thread, which cannot use what this one keeps, so that two threads would hold the memory of two
  // plans. Chosen: longer than the 25 ms for which mimalloc itself keeps free pages.
  static constexpr std::chrono::milliseconds kLongTask{100};
  static constexpr std::chrono::milliseconds kIdleTimeAfterLongTask{50};

  void WaitForTask(std::chrono::milliseconds* idle_time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();

  const ExecutorLimits limits_;
  Mutex mutex_;
  Condition changed_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_
