// The limits on the work of a question and on the size of its answer.
#ifndef LOADLINE_PLUGIN_SERVICE_QUESTION_LIMITS_H_
#define LOADLINE_PLUGIN_SERVICE_QUESTION_LIMITS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/parse.h"
#include "plugin/service/deadline.h"

namespace loadline {

// The work of a question that does not state it, in units of about 100 ns. A loop takes half of its work for
// growth.
inline constexpr int64_t kGrowthWork = 10'000'000;
inline constexpr int64_t kSlackWork = 10'000'000;
inline constexpr int64_t kLoopWork = 20'000'000;
inline constexpr int64_t kConsolidationWork = 50'000'000;
inline constexpr int64_t kDrainWork = INT64_MAX / 2;  // no limit: time bounds it
inline constexpr int64_t kSizeWork = 2'000'000;       // to find out which pods starve
// The work that suffices for the judgements that one Fit allows for pods with few rules, or for fewer
// judgements of pods with many.
inline constexpr int64_t kFitWork = 50'000'000;

// Errors: kInvalidArgument  max_work or max_milliseconds is out of range
template <typename Question>
absl::Status CheckBudget(const Question& question) {
  Fields fields;
  fields.Keep(CheckBounded("max_work", question.max_work(), int64_t{1} << 62));
  fields.Keep(CheckBounded("max_milliseconds", question.max_milliseconds(), 3'600'000));
  return fields.status();
}

// The budget of a question: its max_work, or `default_work` if that is 0, its max_milliseconds, and `bytes`
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

// The budget of a question that has no say in it. It ends with the call.
inline WorkBudget FixedBudget(int64_t work, const Deadline& deadline,
                              int64_t bytes = WorkBudget::kNoByteLimit) {
  return WorkBudget(
      work, [deadline] { return !deadline.Check().ok(); }, bytes);
}

// The answer, or kResourceExhausted with what the client may do about it.
template <typename Response>
absl::StatusOr<Response> Sized(Response response, absl::string_view advice) {
  if (response.ByteSizeLong() <= kMaxMessageBytes) return response;
  return absl::ResourceExhaustedError(
      absl::StrCat("the answer outgrows ", kMaxMessageBytes, " bytes; ", advice));
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_QUESTION_LIMITS_H_
