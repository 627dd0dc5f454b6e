// Texts for people.
#ifndef LOADLINE_CORE_BASE_TEXTS_H_
#define LOADLINE_CORE_BASE_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace loadline {

// A period of 0 or more milliseconds: "1 h 30 min", "15 min", "1.5 s", "20 ms", "0 s".
std::string DurationText(int64_t ms);

// The first `most` bytes of a text, cut before a character of UTF-8.
std::string CutText(absl::string_view text, size_t most);

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_TEXTS_H_
