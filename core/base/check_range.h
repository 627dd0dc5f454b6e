// The one check of a number against its range.
#ifndef LOADLINE_CORE_BASE_CHECK_RANGE_H_
#define LOADLINE_CORE_BASE_CHECK_RANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace loadline {

// kInvalidArgument unless lowest <= value <= highest; it names the field, the value and the bounds.
inline absl::Status CheckRange(absl::string_view field, int64_t value, int64_t lowest, int64_t highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", value, " is not in [", lowest, ", ", highest, "]"));
}

}  // namespace loadline

#endif  // LOADLINE_CORE_BASE_CHECK_RANGE_H_
