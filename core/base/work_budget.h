// The work, memory and time that a decision may take.
#ifndef LOADLINE_CORE_BASE_WORK_BUDGET_H_
#define LOADLINE_CORE_BASE_WORK_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"

namespace loadline {

// The limit that ended a budget.
enum class BudgetEnd { kNotEnded, kOutOfWork, kOutOfTime, kOutOfMemory };

// "work", "time" or "memory"; empty for kNotEnded.
absl::string_view Name(BudgetEnd end);

// Units of work, bytes of memory, and a time that may end it earlier: core/ reads no clock, so the caller
// tells how much of the time has passed and tests drive the budget by units. A decision that is cut short
// says so in its answer. Not thread-safe.
class WorkBudget {
 public:
  static constexpr int64_t kNoByteLimit = std::numeric_limits<int64_t>::max() / 2;

  // Never ends.
  WorkBudget() = default;
  // Ends after `units` (>= 0), when the time is up, or when more than `bytes` (>= 0) would be in use at once.
  // `elapsed` tells which part of the time has passed, and 1 or more once it is up; a function that tells
  // only whether it is up will do. It is asked about every kInterval units, so a unit should be some 100 ns
  // of work.
  explicit WorkBudget(int64_t units, std::function<double()> elapsed = nullptr, int64_t bytes = kNoByteLimit)
      : left_(units), bytes_left_(bytes), may_keep_(bytes), elapsed_(std::move(elapsed)) {}

  // Takes `units` (>= 0). False once the budget has ended: what was begun may still be finished.
  bool Spend(int64_t units = 1) {
    if (ended()) return false;
    left_ -= units;
    unasked_ += units;
    if (left_ < 0) end_ = BudgetEnd::kOutOfWork;
    if (unasked_ >= kInterval && elapsed_ != nullptr) {
      unasked_ = 0;
      if (elapsed_() >= time_) end_ = BudgetEnd::kOutOfTime;
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
  // The same, for what stays after the phase that asks: it takes a part of the memory, see WorkPhase.
  bool Keep(int64_t bytes) {
    if (ended()) return false;
    if (bytes > may_keep_) {
      end_ = BudgetEnd::kOutOfMemory;
      return false;
    }
    if (!Reserve(bytes)) return false;
    may_keep_ -= bytes;
    kept_ += bytes;
    return true;
  }
  // Gives back what Reserve() took.
  void Release(int64_t bytes) { bytes_left_ += bytes; }

  bool ended() const { return end_ != BudgetEnd::kNotEnded; }
  BudgetEnd end() const { return end_; }
  // The units and bytes that are left.
  int64_t units() const { return ended() ? 0 : left_; }
  int64_t bytes() const { return bytes_left_; }

 private:
  friend class WorkPhase;
  friend class WorkPortion;

  static constexpr int64_t kInterval = 1'000;  // units between looks at the clock; chosen: about 100 us

  int64_t left_ = std::numeric_limits<int64_t>::max() / 2;
  int64_t bytes_left_ = kNoByteLimit;
  int64_t may_keep_ = kNoByteLimit;  // of them
  int64_t kept_ = 0;                 // what Keep() has taken
  int64_t unasked_ = 0;
  double time_ = 1;  // the part of the time at which it is up
  BudgetEnd end_ = BudgetEnd::kNotEnded;
  std::function<double()> elapsed_;
};

// One of several phases of a question, none of which may take what the others need: as long as this lives,
// the budget has `part` of the units and of the time that are left, and all of the memory, of which it may
// keep that part. Then it has the rest as well, and the memory that it had but for what was kept: the other
// tables of a phase end with it. `budget` outlives it.
class WorkPhase {
 public:
  WorkPhase(WorkBudget* budget, double part)
      : budget_(*budget),
        part_(budget_.ended() ? 1 : part),
        aside_(Rest(budget_.left_, part_)),
        bytes_(budget_.bytes_left_ + budget_.kept_),
        keeps_aside_(Rest(budget_.may_keep_, part_)),
        time_(budget_.time_) {
    budget_.left_ -= aside_;
    budget_.may_keep_ -= keeps_aside_;
    if (budget_.elapsed_ == nullptr || part_ >= 1) return;
    const double now = std::min(budget_.elapsed_(), time_);
    budget_.time_ = now + (time_ - now) * part_;
  }
  WorkPhase(const WorkPhase&) = delete;
  WorkPhase& operator=(const WorkPhase&) = delete;
  ~WorkPhase() {
    if (part_ >= 1) return;
    budget_.left_ += aside_;
    budget_.bytes_left_ = bytes_ - budget_.kept_;
    budget_.may_keep_ += keeps_aside_;
    budget_.time_ = time_;
    budget_.unasked_ = WorkBudget::kInterval;  // whether it is time is asked at once
    budget_.end_ = BudgetEnd::kNotEnded;
  }

 private:
  friend class WorkPortion;
  static int64_t Rest(int64_t all, double part) {
    return part >= 1 || all <= 0 ? 0 : all - static_cast<int64_t>(static_cast<double>(all) * part);
  }

  WorkBudget& budget_;
  double part_;
  int64_t aside_;
  int64_t bytes_;        // at its begin, with those that were kept before
  int64_t keeps_aside_;  // bytes that only others may keep
  double time_;
};

// A part of a budget for one of many objects, so that none takes all: as long as this lives, the budget has
// `part` of the units and of the memory that are left. What was taken stays taken. `budget` outlives it.
class WorkPortion {
 public:
  WorkPortion(WorkBudget* budget, double part)
      : budget_(*budget),
        units_(budget_.ended() ? 0 : WorkPhase::Rest(budget_.left_, part)),
        bytes_(budget_.ended() ? 0 : WorkPhase::Rest(budget_.bytes_left_, part)),
        had_ended_(budget_.ended()) {
    budget_.left_ -= units_;
    budget_.bytes_left_ -= bytes_;
  }
  WorkPortion(const WorkPortion&) = delete;
  WorkPortion& operator=(const WorkPortion&) = delete;
  ~WorkPortion() {
    budget_.left_ += units_;
    budget_.bytes_left_ += bytes_;
    const bool by_portion = (budget_.end_ == BudgetEnd::kOutOfWork && budget_.left_ > 0) ||
                            (budget_.end_ == BudgetEnd::kOutOfMemory && bytes_ > 0);
    if (!had_ended_ && by_portion) budget_.end_ = BudgetEnd::kNotEnded;
  }

 private:
  WorkBudget& budget_;
  int64_t units_;
  int64_t bytes_;
  bool had_ended_;
};

// A reservation of a budget's memory, which ends with this. `budget` outlives it. Not thread-safe.
class ReservedMemory {
 public:
  ReservedMemory(WorkBudget* budget, int64_t bytes)
      : budget_(budget), bytes_(budget->Reserve(bytes) ? bytes : -1) {}
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory() {
    if (ok()) budget_->Release(bytes_);
  }

  // False: nothing is reserved, and what the memory was for must not be built.
  bool ok() const { return bytes_ >= 0; }

 private:
  WorkBudget* budget_;
  int64_t bytes_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_WORK_BUDGET_H_
