#include "core/fleet/texts.h"

#include "absl/strings/str_cat.h"

namespace loadline {

std::string DurationText(int64_t ms) {
  constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (ms > 0 && ms < kSecond) return absl::StrCat(ms, "ms");
  std::string text;
  if (ms >= kHour) absl::StrAppend(&text, ms / kHour, "h");
  if (ms >= kMinute) absl::StrAppend(&text, ms % kHour / kMinute, "m");
  absl::StrAppend(&text, ms % kMinute / kSecond);
  if (const int64_t fraction = ms % kSecond; fraction > 0) {
    absl::StrAppend(&text, ".", absl::Dec(fraction, absl::kZeroPad3));
    while (text.back() == '0') text.pop_back();
  }
  return text + "s";
}

std::string CutText(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  // Bytes that go on with a character begin with the bits 10.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most));
}

}  // namespace loadline
