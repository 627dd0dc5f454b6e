// A few threads for calls that take long.
#ifndef LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_
#define LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "plugin/base/mutex.h"

namespace loadline {

// Runs tasks in the order in which they come. Thread-safe.
class Executor {
 public:
  // `max_waiting`: tasks that wait at most, beside those that run.
  Executor(size_t threads, size_t max_waiting);
  // Runs what waits and joins the threads.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // False when too many tasks wait; `task` is not run then.
  bool Run(std::function<void()> task);

 private:
  void Work();

  const size_t max_waiting_;
  Mutex mutex_;
  Condition changed_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_EXECUTOR_H_
