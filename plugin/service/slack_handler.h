// Autoscaler.PlanSlack.
#ifndef LOADLINE_PLUGIN_SERVICE_SLACK_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_SLACK_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/slack.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::PlanSlackResponse> PlanSlack(const v1::PlanSlackRequest& request, const Deadline& deadline,
                                                Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SLACK_HANDLER_H_
