// The methods of loadline.v1.SchedulerExtender.
#ifndef LOADLINE_PLUGIN_SERVICE_SCHEDULER_EXTENDER_HANDLERS_H_
#define LOADLINE_PLUGIN_SERVICE_SCHEDULER_EXTENDER_HANDLERS_H_

#include "absl/status/statusor.h"
#include "loadline/v1/scheduler_extender.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// Applies the changes that a question carries, as Sync would; a full list must be complete.
absl::StatusOr<LockedView> ApplyChanges(const v1::Changes& changes, const Deadline& deadline, Views* views);

// Errors are those of the service in the proto file. The changes of a question are applied first; when the
// question is refused after that, they stay applied.
absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request, const Deadline& deadline,
                                        Views* views);
absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request, const Deadline& deadline,
                                            Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SCHEDULER_EXTENDER_HANDLERS_H_
