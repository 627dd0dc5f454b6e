// Autoscaler.RankOptions.
#ifndef LOADLINE_PLUGIN_SERVICE_RANK_HANDLER_H_
#define LOADLINE_PLUGIN_SERVICE_RANK_HANDLER_H_

#include "absl/status/statusor.h"
#include "loadline/v1/scale_up.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// Errors are those of the service in the proto file. The changes of a question are applied first; when the
// question is refused after that, they stay applied.
absl::StatusOr<v1::RankOptionsResponse> AnswerRankOptions(const v1::RankOptionsRequest& request,
                                                          const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_RANK_HANDLER_H_
