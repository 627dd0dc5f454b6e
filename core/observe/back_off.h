// Decides for how long a group that failed to grow is not tried again.
#ifndef LOADLINE_CORE_OBSERVE_BACK_OFF_H_
#define LOADLINE_CORE_OBSERVE_BACK_OFF_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

// The reason for which a group backs off.
enum class BackOffReason {
  kTimeout,         // nodes did not come in time
  kApiError,        // the cloud refused to grow the group, or did not answer
  kOutOfResources,  // there are no such machines left, or a quota is used up
  kCreationFailed,  // machines could not be created for another reason
};
inline constexpr int kBackOffReasons = 4;

// Periods in milliseconds.
struct BackOffOptions {
  // After the first failure, and at most.
  int64_t initial_ms = 0;
  int64_t max_ms = 0;
  // After which time without a failure the next one counts as the first.
  int64_t reset_ms = 0;
};

// The last failure of a group, and until when the group backs off. Times are in milliseconds since 1970.
struct BackOff {
  BackOffReason reason = BackOffReason::kTimeout;
  std::string text;  // for people
  int64_t since_ms = 0;
  int64_t until_ms = 0;
  int64_t duration_ms = 0;
  friend bool operator==(const BackOff&, const BackOff&) = default;
};

// The longest text that is kept of a failure, in bytes. Chosen: the messages of clouds are a few sentences.
inline constexpr size_t kMostBackOffText = 512;

// Takes note of a failure: the group backs off for twice as long as the last time, or for the initial time if
// that is long ago. Several failures while it backs off count as one. This is Cluster Autoscaler's rule
// (utils/backoff/exponential_backoff.go).
void NoteFailure(BackOffReason reason, absl::string_view text, int64_t now_ms, const BackOffOptions& options,
                 std::optional<BackOff>* back_off);

// Returns whether a group backs off now.
bool BacksOff(const std::optional<BackOff>& back_off, int64_t now_ms);

// Returns whether a failure is so long ago that it does not count any more.
bool IsForgotten(const BackOff& back_off, int64_t now_ms, const BackOffOptions& options);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_BACK_OFF_H_
