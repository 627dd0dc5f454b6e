// Autoscaler.PlanLoop.
#ifndef LOADLINE_PLUGIN_SERVICE_LOOP_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_LOOP_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::PlanLoopResponse> AnswerPlanLoop(const v1::PlanLoopRequest& request,
                                                    const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_LOOP_HANDLER_H_
