// How numbers, times and lists are written for people.
#ifndef LOADLINE_PLUGIN_REPORT_WORDS_H_
#define LOADLINE_PLUGIN_REPORT_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"

namespace loadline {

using Texts = google::protobuf::RepeatedPtrField<std::string>;

// "1 node", "2 nodes"; with an ending of its own, "2 wishes".
std::string Counted(int64_t number, absl::string_view what, absl::string_view ending = "s");

// Seconds since 1970 as "2026-01-02T03:04:05Z".
std::string TimeText(int64_t seconds);

// "1m30s"; "0s" of what is not positive.
std::string SecondsText(int64_t seconds);

// Texts behind one another, with commas; `none` if there are none.
std::string Listed(const Texts& texts, absl::string_view none = "");

// Returns a number that fits into 32 bits: the nearest one.
int32_t Clamped32(int64_t number);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_WORDS_H_
