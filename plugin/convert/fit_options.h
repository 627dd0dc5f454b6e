// How the filters of a scheduler are configured: message to core types.
#ifndef LOADLINE_PLUGIN_CONVERT_FIT_OPTIONS_H_
#define LOADLINE_PLUGIN_CONVERT_FIT_OPTIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/fit/node_filter.h"
#include "loadline/v1/fit.pb.h"

namespace loadline {

// Profiles beside the default one.
inline constexpr int kMaxSchedulerProfiles = 32;

// Each: kInvalidArgument names the field.
absl::StatusOr<FitOptions> DecodeFitOptions(const v1::FitOptions& message);

// Gives a pod with these labels, whose spec names `scheduler_name`, the default constraints of its profile,
// complete with its selector.
absl::Status ReadDefaultSpread(const v1::IncomingPod& message, const v1::FitOptions& options,
                               absl::string_view scheduler_name, const Labels& labels, IncomingPod* pod);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_FIT_OPTIONS_H_
