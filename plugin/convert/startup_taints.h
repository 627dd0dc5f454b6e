// Taints that come and go with the life of a node: message to core type.
#ifndef LOADLINE_PLUGIN_CONVERT_STARTUP_TAINTS_H_
#define LOADLINE_PLUGIN_CONVERT_STARTUP_TAINTS_H_

#include "absl/status/statusor.h"
#include "core/cluster/startup_taints.h"
#include "loadline/v1/startup_taints.pb.h"

namespace loadline {

// Errors: kInvalidArgument  names the field: `startup_taints.startup[0]: is empty`. kResourceExhausted  names
//                           the limit
absl::StatusOr<StartupTaints> DecodeStartupTaints(const v1::StartupTaints& message);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_STARTUP_TAINTS_H_
