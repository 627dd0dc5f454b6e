// The calls that loadlined works at, and since when.
#ifndef LOADLINE_PLUGIN_DAEMON_RUNNING_CALLS_H_
#define LOADLINE_PLUGIN_DAEMON_RUNNING_CALLS_H_

#include <chrono>
#include <list>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "plugin/base/mutex.h"

namespace loadline {

// Thread-safe.
class RunningCalls {
 public:
  using Clock = std::chrono::steady_clock;

  // A call, from where it has a thread to where it gives it back.
  class Call {
   public:
    // `timeout`: what the caller waits at most, counted from now; nullopt: for ever. `calls` and the text of
    // `method` outlive it.
    Call(RunningCalls* calls, absl::string_view method, std::optional<Clock::duration> timeout);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class RunningCalls;

    RunningCalls* calls_;
    absl::string_view method_;
    Clock::time_point begin_;
    Clock::time_point due_;  // when its caller waits no more; without a timeout when it began
    std::list<const Call*>::iterator place_;
  };

  struct Overdue {
    std::string method;
    Clock::duration age;  // since it began
  };

  // Returns the call that is late the longest, if it should have ended more than `patience` before `now`.
  std::optional<Overdue> LongestOverdue(Clock::duration patience, Clock::time_point now) const;

 private:
  mutable Mutex mutex_;
  std::list<const Call*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_DAEMON_RUNNING_CALLS_H_
