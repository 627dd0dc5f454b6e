// How much work a question may cost.
#ifndef LOADLINE_PLUGIN_SERVICE_QUESTION_BUDGET_H_
#define LOADLINE_PLUGIN_SERVICE_QUESTION_BUDGET_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "core/base/work_budget.h"
#include "plugin/convert/fields.h"
#include "plugin/service/deadline.h"

namespace loadline {

// Errors: kInvalidArgument  max_work or max_milliseconds is out of range
template <typename Question>
absl::Status CheckBudget(const Question& question) {
  Fields fields;
  fields.Keep(CheckBounded("max_work", question.max_work(), int64_t{1} << 62));
  fields.Keep(CheckBounded("max_milliseconds", question.max_milliseconds(), 3'600'000));
  return fields.status();
}

// Of a question with max_work, or `default_work` where that is 0, and max_milliseconds, that may take `bytes`
// of memory beside its cluster. It also ends with the call.
template <typename Question>
WorkBudget BudgetOf(const Question& question, int64_t default_work, int64_t bytes, const Deadline& deadline) {
  using Clock = Deadline::Clock;
  constexpr std::chrono::hours kLongest(24);
  const Clock::time_point begin = Clock::now();
  Clock::time_point end = deadline.OrAfter(kLongest);
  if (question.max_milliseconds() > 0) {
    end = std::min(end, begin + std::chrono::milliseconds(question.max_milliseconds()));
  }
  const auto elapsed = [begin, end] {
    using Seconds = std::chrono::duration<double>;
    const Clock::time_point now = Clock::now();
    return now >= end ? 1.0 : Seconds(now - begin) / Seconds(end - begin);
  };
  return WorkBudget(question.max_work() > 0 ? question.max_work() : default_work, elapsed, bytes);
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_QUESTION_BUDGET_H_
