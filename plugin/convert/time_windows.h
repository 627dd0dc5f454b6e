// Spans of time.
#ifndef LOADLINE_PLUGIN_CONVERT_TIME_WINDOWS_H_
#define LOADLINE_PLUGIN_CONVERT_TIME_WINDOWS_H_

#include "absl/status/statusor.h"
#include "core/base/time_window.h"
#include "loadline/v1/time_window.pb.h"

namespace loadline {

// Errors: kInvalidArgument  names the field in the message; kResourceExhausted  more windows than `most`
absl::StatusOr<TimeWindows> DecodeTimeWindows(const v1::TimeWindows& message, int most);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_TIME_WINDOWS_H_
