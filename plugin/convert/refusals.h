// Errors that fields of messages have in common.
#ifndef LOADLINE_PLUGIN_CONVERT_REFUSALS_H_
#define LOADLINE_PLUGIN_CONVERT_REFUSALS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace loadline {

// kInvalidArgument.
inline absl::Status Refused(absl::string_view text) { return absl::InvalidArgumentError(text); }

// An enum that has no such value.
inline absl::Status NoSuchValue(absl::string_view field, int value) {
  return Refused(absl::StrCat(field, ": there is no value ", value));
}

// kResourceExhausted for a repeated field with more than `most` entries.
inline absl::Status CheckSize(absl::string_view field, int size, int most) {
  if (size <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(field, ": has ", size, " entries, the limit is ", most));
}

// kInvalidArgument for a list of an object that is longer than any in use.
inline absl::Status CheckEntries(int64_t size, absl::string_view field, int64_t most) {
  if (size <= most) return absl::OkStatus();
  return Refused(absl::StrCat(field, ": has ", size, " entries, at most ", most, " are allowed"));
}

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_REFUSALS_H_
