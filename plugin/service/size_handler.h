// Autoscaler.MeasureUtilization.
#ifndef LOADLINE_PLUGIN_SERVICE_SIZE_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_SIZE_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/size.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// What it may cost to find out which pods starve, in units of about 100 ns.
inline constexpr int64_t kSizeWork = 2'000'000;

// Leaves its state with the view; a question that is refused leaves the one that was there.
absl::StatusOr<v1::MeasureUtilizationResponse> MeasureUtilization(
    const v1::MeasureUtilizationRequest& request, const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SIZE_HANDLER_H_
