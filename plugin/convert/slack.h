// Questions of PlanSlack: message to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_SLACK_H_
#define LOADLINE_PLUGIN_CONVERT_SLACK_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/slack/slack_planner.h"
#include "loadline/v1/slack.pb.h"
#include "plugin/convert/scale_up_problem.h"

namespace loadline {

// slack_policy.cc. Errors: kInvalidArgument  names the field
absl::StatusOr<SlackOptions> DecodeSlackPolicy(const v1::SlackPolicy& message);

// slack_state.cc: what a planner remembers.

// Placeholders of a state that is handed in.
inline constexpr int kMaxPlaceholders = 200'000;
// Bytes of the name of a class or mirrored pod that owns placeholders.
inline constexpr size_t kMaxOwnerLength = 4096;

// Errors: kInvalidArgument  names the field or placeholder. kResourceExhausted  names the limit
absl::StatusOr<SlackState> DecodeSlackState(const v1::SlackState& message);
v1::SlackState EncodeSlackState(const SlackState& state);
v1::Placeholder::Kind EncodePlaceholderKind(PlaceholderKind kind);

// slack.cc: questions and plans.

// A question without its cluster.
struct DecodedSlack {
  SlackOptions options;
  std::optional<SlackState> state;
  // The pods that wait, the groups and the pods of their new nodes; see Complete().
  DecodedProblem problem;
  bool groups_known = false;
};

// `names`: those of the cluster.
// Errors: kInvalidArgument  names the field, pod, group or placeholder. kResourceExhausted  names the limit
absl::StatusOr<DecodedSlack> DecodeSlack(const v1::PlanSlackRequest& request, const ResourceNames& names,
                                         const ReadOptions& options_of_pods);

// The groups that may grow, each with what pods that come with a node leave of it.
SlackGroupList SlackGroups(DecodedProblem* problem);

v1::PlanSlackResponse EncodeSlackPlan(const SlackPlan& plan);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SLACK_H_
