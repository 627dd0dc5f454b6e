// Autoscaler.PlanDrain.
#ifndef LOADLINE_PLUGIN_SERVICE_DRAIN_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_DRAIN_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::PlanDrainResponse> PlanDrain(const v1::PlanDrainRequest& request, const Deadline& deadline,
                                                Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_DRAIN_HANDLER_H_
