// Notices calls that do not come to an end.
#ifndef LOADLINE_PLUGIN_DAEMON_WATCHDOG_H_
#define LOADLINE_PLUGIN_DAEMON_WATCHDOG_H_

#include <chrono>
#include <functional>
#include <thread>

#include "plugin/base/mutex.h"
#include "plugin/daemon/running_calls.h"

namespace loadline {

// A thread that looks at the calls under way. Every call has a timeout or a budget of its own and ends by it:
// one that does not is a fault of ours, holds a thread and perhaps a view, and only a new process helps. So
// this says "not serving", and a probe does the rest.
class Watchdog {
 public:
  // `patience`: how long a call may go on after its timeout, or at all if it has none. `set_serving` is
  // called with false when a call is late and with true when none is any more, from the thread of the
  // watchdog. Both pointees outlive it.
  Watchdog(const RunningCalls* calls, std::chrono::milliseconds patience,
           std::function<void(bool serving)> set_serving);
  // Joins the thread; nothing is reported after that.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch();
  // Returns whether it is to stop, after `interval` at the latest.
  bool StopsWithin(std::chrono::milliseconds interval);
  void Look();

  const RunningCalls* calls_;
  const std::chrono::milliseconds patience_;
  const std::function<void(bool)> set_serving_;
  bool serving_ = true;  // the thread's own
  Mutex mutex_;
  Condition changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_WATCHDOG_H_
