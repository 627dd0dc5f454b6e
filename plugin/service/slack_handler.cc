#include "plugin/service/slack_handler.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/slack.h"
#include "plugin/service/question_budget.h"
#include "plugin/service/scheduler_extender_handlers.h"
#include "plugin/service/slack_turn.h"

namespace loadline {
namespace {

constexpr int64_t kDefaultWork = 10'000'000;

}  // namespace

absl::StatusOr<v1::PlanSlackResponse> PlanSlack(const v1::PlanSlackRequest& request, const Deadline& deadline,
                                                Views* views) {
  if (!request.has_changes()) return absl::InvalidArgumentError("changes: missing");
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  absl::StatusOr<LockedView> locked = ApplyChanges(request.changes(), deadline, views);
  if (!locked.ok()) return locked.status();
  SharedView& shared = *locked->operator->();
  View& view = shared.view;
  absl::StatusOr<DecodedSlack> decoded =
      DecodeSlack(request, view.cluster().resource_names(), shared.OptionsOfQuestion());
  if (!decoded.ok()) return decoded.status();
  if (view.cluster().node_count() == 0 && !decoded->groups_known) {
    return absl::FailedPreconditionError("the cluster has no nodes, and no node groups are named");
  }
  SelectLabels(&view, &decoded->problem);
  Complete(view.label_keys(), &decoded->problem);

  SlackQuestion question;
  question.cluster = &view.cluster();
  question.options = std::move(decoded->options);
  if (decoded->groups_known) question.groups = SlackGroups(decoded->problem);
  for (PendingPods& pods : decoded->problem.pods) {
    question.waiting.push_back({std::move(pods.pod), pods.count});
  }
  question.fit = &decoded->problem.fit;
  question.names = decoded->problem.names;
  question.now_s = request.now_seconds();
  question.literal = request.literal();
  question.snapshot = [&shared] { return shared.snapshot.For(shared.view); };
  SlackTurn turn(&shared);
  if (decoded->state.has_value()) shared.slack.Restore(*decoded->state);
  WorkBudget budget = BudgetOf(request, kDefaultWork, shared.limits.question_bytes, deadline);
  v1::PlanSlackResponse response = EncodeSlackPlan(shared.slack.Plan(question, &budget));
  response.set_clamped_amounts(decoded->problem.clamped_amounts);
  decoded->problem.left_out.Add(shared.LeftOut());
  TellLeftOut(decoded->problem.left_out, &response);
  if (request.want_state()) *response.mutable_state() = EncodeSlackState(shared.slack.State());
  if (response.ByteSizeLong() > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer outgrows ", kMaxMessageBytes,
                     " bytes; leave the state with the view, or allow fewer placeholders"));
  }
  turn.Complete();
  return response;
}

}  // namespace loadline
