// The time until which a caller is willing to wait.
#ifndef LOADLINE_PLUGIN_SERVICE_DEADLINE_H_
#define LOADLINE_PLUGIN_SERVICE_DEADLINE_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace loadline {

// A point on the steady clock, or none. Calls look at it where they may have waited for another call, before
// they change or work out anything, and long ones as they go: an answer that nobody waits for is not worth
// holding up the next one.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // Never passes.
  Deadline() = default;

  // Counted from now. 0 or less: never passes.
  static Deadline After(int64_t timeout_ns) {
    Deadline deadline;
    if (timeout_ns <= 0) return deadline;
    const Clock::time_point now = Clock::now();
    const Clock::duration timeout = std::chrono::nanoseconds(timeout_ns);
    if (timeout < Clock::time_point::max() - now) deadline.time_ = now + timeout;
    return deadline;
  }

  // The same, for a call that is not to wait for others at all.
  Deadline WithoutWaiting() const {
    Deadline deadline = *this;
    deadline.may_wait_ = false;
    return deadline;
  }
  bool may_wait() const { return may_wait_; }

  // When it passes; one that never does is taken to pass `longest` from now.
  Clock::time_point OrAfter(Clock::duration longest) const { return time_.value_or(Clock::now() + longest); }

  // kDeadlineExceeded once it has passed.
  absl::Status Check() const {
    return !time_.has_value() || Clock::now() < *time_ ? absl::OkStatus() : Passed();
  }
  static absl::Status Passed() {
    return absl::DeadlineExceededError("the timeout of the call passed before there was an answer");
  }

 private:
  std::optional<Clock::time_point> time_;
  bool may_wait_ = true;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_DEADLINE_H_
