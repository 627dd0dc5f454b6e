// A lock that is waited for with a deadline.
#ifndef LOADLINE_PLUGIN_SERVICE_TURN_H_
#define LOADLINE_PLUGIN_SERVICE_TURN_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugin/base/mutex.h"
#include "plugin/service/deadline.h"

namespace loadline {

// One thread at a time has the turn. Not a std::timed_mutex, whose waiting the thread sanitizer of GCC 12
// does not see. Thread-safe.
class Turn {
 public:
  // How long a call without a timeout waits for the ones before it.
  static constexpr std::chrono::seconds kLongestWait{10};

  struct GiveBack {
    void operator()(Turn* turn) const {
      const MutexLock lock(&turn->mutex_);
      turn->taken_ = false;
      turn->free_.NotifyOne();
    }
  };
  // A lock that is released when this is destroyed; before the Turn is.
  using Held = std::unique_ptr<Turn, GiveBack>;

  // Errors: kDeadlineExceeded  `deadline` passed first, or `longest_wait` when the call has none
  //         kAborted           another call has it, and this one may not wait
  absl::StatusOr<Held> Take(const Deadline& deadline, std::chrono::milliseconds longest_wait = kLongestWait) {
    const Deadline::Clock::time_point until = deadline.OrAfter(longest_wait);
    const MutexLock lock(&mutex_);
    while (taken_) {
      if (!deadline.may_wait()) return absl::AbortedError("another call has it");
      if (free_.WaitUntil(&mutex_, until) || !taken_) continue;
      if (absl::Status status = deadline.Check(); !status.ok()) return status;
      return absl::DeadlineExceededError("another call has not let go of it; a timeout allows a longer wait");
    }
    taken_ = true;
    return Held(this);
  }

 private:
  Mutex mutex_;
  Condition free_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_TURN_H_
