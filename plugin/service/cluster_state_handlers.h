// The methods of loadline.v1.ClusterState.
#ifndef LOADLINE_PLUGIN_SERVICE_CLUSTER_STATE_HANDLERS_H_
#define LOADLINE_PLUGIN_SERVICE_CLUSTER_STATE_HANDLERS_H_

#include "absl/status/statusor.h"
#include "loadline/v1/cluster_state.pb.h"
#include "plugin/service/deadline.h"
#include "plugin/service/views.h"

namespace loadline {

// Errors are those of the service in the proto file.
absl::StatusOr<v1::SyncResponse> Sync(const v1::SyncRequest& request, const Deadline& deadline, Views* views);
// One node that alone would outgrow an answer is kResourceExhausted.
absl::StatusOr<v1::DescribeResponse> Describe(const v1::DescribeRequest& request, const Deadline& deadline,
                                              Views* views);
absl::StatusOr<v1::DropResponse> Drop(const v1::DropRequest& request, const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_CLUSTER_STATE_HANDLERS_H_
