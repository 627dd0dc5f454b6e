// What a decision may cost before it has to end.
#ifndef LOADLINE_CORE_BASE_WORK_BUDGET_H_
#define LOADLINE_CORE_BASE_WORK_BUDGET_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace loadline {

// Units of work, and a predicate that may end it earlier: core/ reads no clock, so the caller drives the
// predicate from one and tests drive the budget by units. A decision that is cut short says so in its answer.
// Not thread-safe.
class WorkBudget {
 public:
  // Never ends.
  WorkBudget() = default;
  // Ends after `units` (>= 0), or when `stop` says so; it is asked about every kInterval units, so a unit
  // should be some 100 ns of work.
  explicit WorkBudget(int64_t units, std::function<bool()> stop = nullptr)
      : left_(units), stop_(std::move(stop)) {}

  // Takes `units` (>= 0). False once the budget has ended: what was begun may still be finished.
  bool Spend(int64_t units = 1) {
    if (ended_) return false;
    left_ -= units;
    unasked_ += units;
    if (left_ < 0) ended_ = true;
    if (unasked_ >= kInterval && stop_ != nullptr) {
      unasked_ = 0;
      if (stop_()) ended_ = true;
    }
    return !ended_;
  }

  bool ended() const { return ended_; }

 private:
  static constexpr int64_t kInterval = 1'000;

  int64_t left_ = std::numeric_limits<int64_t>::max() / 2;
  int64_t unasked_ = 0;
  bool ended_ = false;
  std::function<bool()> stop_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_WORK_BUDGET_H_
