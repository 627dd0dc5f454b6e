#include "core/observe/back_off.h"

#include <algorithm>

#include "core/base/texts.h"

namespace loadline {

void NoteFailure(BackOffReason reason, absl::string_view text, int64_t now_ms, const BackOffOptions& options,
                 std::optional<BackOff>* back_off) {
  int64_t duration_ms = options.initial_ms;
  if (back_off->has_value() && now_ms - (*back_off)->since_ms <= options.reset_ms) {
    duration_ms = (*back_off)->duration_ms;
    if (!BacksOff(*back_off, now_ms)) duration_ms = std::min(2 * duration_ms, options.max_ms);
  }
  *back_off = BackOff{reason, CutText(text, kMostBackOffText), now_ms, now_ms + duration_ms, duration_ms};
}

bool BacksOff(const std::optional<BackOff>& back_off, int64_t now_ms) {
  return back_off.has_value() && now_ms < back_off->until_ms;
}

bool IsForgotten(const BackOff& back_off, int64_t now_ms, const BackOffOptions& options) {
  return now_ms - back_off.since_ms > options.reset_ms && now_ms >= back_off.until_ms;
}

}  // namespace loadline
