// SchedulerExtender.Fit.
#ifndef LOADLINE_PLUGIN_SERVICE_FIT_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_FIT_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/scheduler_extender.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// Errors are those of the service in the proto file. Moves are made on a snapshot and undone.
absl::StatusOr<v1::FitResponse> Fit(const v1::FitRequest& request, const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_FIT_HANDLER_H_
