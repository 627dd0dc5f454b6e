// A lock that is waited for with a deadline, by one who changes or by several who only read.
#ifndef LOADLINE_PLUGIN_SERVICE_TURN_H_
#define LOADLINE_PLUGIN_SERVICE_TURN_H_

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugin/base/mutex.h"
#include "plugin/service/deadline.h"

namespace loadline {

// One thread at a time has the turn, or several share it. Those who come to share wait for one who waits for
// it alone: else a stream of readers would keep it out. Not a std::shared_timed_mutex, whose waiting the
// thread sanitizer of GCC 12 does not see. Thread-safe.
class Turn {
 public:
  // The longest time for which a call without a timeout waits for the calls before it. Chosen.
  static constexpr std::chrono::seconds kLongestWait{10};

  struct GiveBack {
    void operator()(Turn* turn) const {
      const MutexLock lock(&turn->mutex_);
      turn->taken_ = false;
      turn->free_.NotifyAll();
    }
  };
  struct GiveBackShare {
    void operator()(Turn* turn) const {
      const MutexLock lock(&turn->mutex_);
      if (--turn->sharing_ == 0) turn->free_.NotifyAll();
    }
  };
  // Both are locks that are released when they are destroyed; before the Turn is.
  using Lock = std::unique_ptr<Turn, GiveBack>;
  using Shared = std::unique_ptr<Turn, GiveBackShare>;

  // Errors: kDeadlineExceeded  `deadline` passed first, or `longest_wait` when the call has none
  //         kAborted           another call has it, and this one may not wait
  absl::StatusOr<Lock> Take(const Deadline& deadline, std::chrono::milliseconds longest_wait = kLongestWait) {
    const Deadline::Clock::time_point until = deadline.OrAfter(longest_wait);
    const MutexLock lock(&mutex_);
    ++waiting_;
    absl::Status status;
    while (status.ok() && (taken_ || sharing_ > 0)) status = Wait(deadline, until);
    --waiting_;
    if (!status.ok()) {
      free_.NotifyAll();  // nobody waits for this one any more
      return status;
    }
    taken_ = true;
    return Lock(this);
  }

  // The same, of a share.
  absl::StatusOr<Shared> Share(const Deadline& deadline,
                               std::chrono::milliseconds longest_wait = kLongestWait) {
    const Deadline::Clock::time_point until = deadline.OrAfter(longest_wait);
    const MutexLock lock(&mutex_);
    while (taken_ || waiting_ > 0) {
      if (absl::Status status = Wait(deadline, until); !status.ok()) return status;
    }
    ++sharing_;
    return Shared(this);
  }

  // Makes a share of the turn that a thread has alone. Nobody has it in between.
  static Shared Downgrade(Lock exclusive) {
    Turn* const turn = exclusive.release();
    const MutexLock lock(&turn->mutex_);
    turn->taken_ = false;
    ++turn->sharing_;
    turn->free_.NotifyAll();
    return Shared(turn);
  }

 private:
  // Returns after something has changed, or for no reason.
  absl::Status Wait(const Deadline& deadline, Deadline::Clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!deadline.may_wait()) return absl::AbortedError("another call has it");
    if (free_.WaitUntil(&mutex_, until)) return absl::OkStatus();
    if (absl::Status status = deadline.Check(); !status.ok()) return status;
    return absl::DeadlineExceededError("another call still uses it; a longer timeout leaves it more time");
  }

  Mutex mutex_;
  Condition free_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  int sharing_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // for the turn alone
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_TURN_H_
