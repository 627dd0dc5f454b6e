#include "core/base/texts.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace loadline {

std::string DurationText(int64_t ms) {
  constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (ms > 0 && ms < kSecond) return absl::StrCat(ms, " ms");
  std::vector<std::string> parts;
  if (ms >= kHour) parts.push_back(absl::StrCat(ms / kHour, " h"));
  if (const int64_t minutes = ms % kHour / kMinute; minutes > 0)
    parts.push_back(absl::StrCat(minutes, " min"));
  if (const int64_t rest = ms % kMinute; rest > 0 || parts.empty()) {
    std::string seconds = absl::StrCat(rest / kSecond, ".", absl::Dec(rest % kSecond, absl::kZeroPad3));
    while (seconds.back() == '0') seconds.pop_back();
    if (seconds.back() == '.') seconds.pop_back();
    parts.push_back(seconds + " s");
  }
  return absl::StrJoin(parts, " ");
}

std::string CutText(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  // Bytes that go on with a character begin with the bits 10.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most));
}

}  // namespace loadline
