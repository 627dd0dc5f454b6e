// What a decision may cost before it has to end.
#ifndef LOADLINE_CORE_BASE_WORK_BUDGET_H_
#define LOADLINE_CORE_BASE_WORK_BUDGET_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"

namespace loadline {

// What ended a budget.
enum class BudgetEnd { kNotEnded, kOutOfWork, kOutOfTime, kOutOfMemory };

// "work", "time" or "memory"; empty for kNotEnded.
absl::string_view Name(BudgetEnd end);

// Units of work, bytes of memory, and a predicate that may end it earlier: core/ reads no clock, so the
// caller drives the predicate from one and tests drive the budget by units. A decision that is cut short says
// so in its answer. Not thread-safe.
class WorkBudget {
 public:
  static constexpr int64_t kNoByteLimit = std::numeric_limits<int64_t>::max() / 2;

  // Never ends.
  WorkBudget() = default;
  // Ends after `units` (>= 0), when `stop` says so, or when more than `bytes` (>= 0) would be held at once.
  // `stop` is asked about every kInterval units, so a unit should be some 100 ns of work.
  explicit WorkBudget(int64_t units, std::function<bool()> stop = nullptr, int64_t bytes = kNoByteLimit)
      : left_(units), bytes_left_(bytes), stop_(std::move(stop)) {}

  // Takes `units` (>= 0). False once the budget has ended: what was begun may still be finished.
  bool Spend(int64_t units = 1) {
    if (ended()) return false;
    left_ -= units;
    unasked_ += units;
    if (left_ < 0) end_ = BudgetEnd::kOutOfWork;
    if (unasked_ >= kInterval && stop_ != nullptr) {
      unasked_ = 0;
      if (stop_()) end_ = BudgetEnd::kOutOfTime;
    }
    return !ended();
  }

  // Takes `bytes` (>= 0) for a table that is about to be built, until Release(). False when the budget has
  // ended or so much is not left: then nothing was taken, the budget has ended, and the table must not be
  // built.
  bool Reserve(int64_t bytes) {
    if (ended()) return false;
    if (bytes > bytes_left_) {
      end_ = BudgetEnd::kOutOfMemory;
      return false;
    }
    bytes_left_ -= bytes;
    return true;
  }
  // Gives back what Reserve() took.
  void Release(int64_t bytes) { bytes_left_ += bytes; }

  bool ended() const { return end_ != BudgetEnd::kNotEnded; }
  BudgetEnd end() const { return end_; }

 private:
  static constexpr int64_t kInterval = 1'000;

  int64_t left_ = std::numeric_limits<int64_t>::max() / 2;
  int64_t bytes_left_ = kNoByteLimit;
  int64_t unasked_ = 0;
  BudgetEnd end_ = BudgetEnd::kNotEnded;
  std::function<bool()> stop_;
};

// Memory of a budget, held as long as this lives. `budget` outlives it. Not thread-safe.
class ReservedMemory {
 public:
  ReservedMemory(WorkBudget* budget, int64_t bytes)
      : budget_(budget), bytes_(budget->Reserve(bytes) ? bytes : -1) {}
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory() {
    if (ok()) budget_->Release(bytes_);
  }

  // False: nothing is held, and what the memory was for must not be built.
  bool ok() const { return bytes_ >= 0; }

 private:
  WorkBudget* budget_;
  int64_t bytes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_WORK_BUDGET_H_
