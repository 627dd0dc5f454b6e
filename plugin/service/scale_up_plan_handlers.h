// Autoscaler.EstimateScaleUp and Autoscaler.PlanScaleUp.
#ifndef LOADLINE_PLUGIN_SERVICE_SCALE_UP_PLAN_HANDLERS_H_
#define LOADLINE_PLUGIN_SERVICE_SCALE_UP_PLAN_HANDLERS_H_

#include "absl/status/statusor.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::EstimateScaleUpResponse> EstimateScaleUp(const v1::EstimateScaleUpRequest& request,
                                                            const Deadline& deadline, Views* views);
absl::StatusOr<v1::PlanScaleUpResponse> PlanScaleUp(const v1::PlanScaleUpRequest& request,
                                                    const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SCALE_UP_PLAN_HANDLERS_H_
