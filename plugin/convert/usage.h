// Profiles of expected use, and how they count: message to core type, and back.
#ifndef LOADLINE_PLUGIN_CONVERT_USAGE_H_
#define LOADLINE_PLUGIN_CONVERT_USAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/expected_use.h"
#include "core/cluster/objects.h"
#include "loadline/v1/usage.pb.h"

namespace loadline {

// Errors: kInvalidArgument  names the field: a mode that does not exist, or a number out of range
absl::StatusOr<ExpectedUseOptions> DecodeExpectedUse(const v1::ExpectedUse& message);

// Returns a message with nothing left at 0.
v1::ExpectedUse EncodeExpectedUse(const ExpectedUseOptions& options);

// Reads a serialized WorkloadUsage. One whose numbers are wrong is left out under its key, so that its pods
// count by their limits.
// Errors: kInvalidArgument  it is no such message, or does not name its workload
absl::StatusOr<ClusterObject> DecodeWorkloadUsage(absl::string_view bytes);

// Reads the annotation loadline.dev/workload. A value that is none counts as no annotation.
PodWorkload ReadPodWorkload(absl::string_view annotation);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_USAGE_H_
