// How scores came about, as messages.
#ifndef LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_
#define LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_

#include "absl/strings/string_view.h"
#include "core/base/resource_names.h"
#include "core/cluster/pod_resources.h"
#include "core/score/limit_policy.h"
#include "core/score/limit_score.h"
#include "loadline/v1/score.pb.h"

namespace loadline {

v1::NodeExplanation EncodeExplanation(const NodeExplanation& explanation, absl::string_view node_name,
                                      const LimitPolicy& policy);

// Tells which containers of the incoming pod have no limit. `names` has the names of its resources.
google::protobuf::RepeatedPtrField<v1::UnlimitedContainers> EncodeUnlimitedContainers(
    const PodResources& pod, const ResourceNames& names, const LimitPolicy& policy);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_
