#include "plugin/report/words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/texts.h"

namespace loadline {

std::string Counted(int64_t number, absl::string_view what, absl::string_view ending) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : ending);
}

std::string TimeText(int64_t seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(seconds), absl::UTCTimeZone());
}

std::string SecondsText(int64_t seconds) { return DurationText(std::max<int64_t>(0, seconds) * 1000); }

std::string Listed(const Texts& texts, absl::string_view none) {
  return texts.empty() ? std::string(none) : absl::StrJoin(texts, ", ");
}

int32_t Clamped32(int64_t number) {
  return static_cast<int32_t>(std::clamp<int64_t>(number, INT32_MIN, INT32_MAX));
}

}  // namespace loadline
