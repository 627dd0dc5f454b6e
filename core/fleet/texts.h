// Texts for people.
#ifndef LOADLINE_CORE_FLEET_TEXTS_H_
#define LOADLINE_CORE_FLEET_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

// A period of 0 or more milliseconds as Go writes it: "1h30m0s", "15m0s", "1.5s", "20ms", "0s".
std::string DurationText(int64_t ms);

// The first `most` bytes of a text, cut before a character of UTF-8.
std::string CutText(absl::string_view text, size_t most);

}  // namespace loadline

#endif  // LOADLINE_CORE_FLEET_TEXTS_H_
