// How scores came about, as messages.
#ifndef LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_
#define LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_

#include "absl/strings/string_view.h"
#include "core/score/limit_policy.h"
#include "core/score/limit_score.h"
#include "loadline/v1/scheduler_extender.pb.h"

namespace loadline {

v1::NodeExplanation EncodeExplanation(const NodeExplanation& explanation, absl::string_view node_name,
                                      const LimitPolicy& policy);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_EXPLAIN_H_
