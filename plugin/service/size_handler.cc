#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/work_budget.h"
#include "core/size/new_node.h"
#include "loadline/v1/size.pb.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/size.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::MeasureUtilizationResponse> AnswerMeasureUtilization(
    const v1::MeasureUtilizationRequest& request, const Deadline& deadline, Views* views) {
  absl::StatusOr<QuestionCluster> asked = QuestionCluster::Of(request, deadline, views);
  if (!asked.ok()) return asked.status();
  SharedView& shared = asked->shared();
  View& view = asked->view();
  asked->Lend();
  const ClusterState& cluster = view.cluster();
  absl::StatusOr<DecodedSizing> decoded = DecodeSizing(request, shared.size_state, cluster.resource_names(),
                                                       view.label_keys(), shared.limits.slack_namespace);
  if (!decoded.ok()) return decoded.status();
  const FitOptions fit;
  WorkBudget budget = FixedBudget(kSizeWork, deadline);
  UndoUnlessKept undo(&shared, &view);
  MeasureDaemons(undo.snapshot(), fit, decoded->daemons, decoded->groups, &budget);
  absl::StatusOr<std::vector<GatheredGroup>> gathered =
      GatherFacts(cluster, decoded->groups, decoded->waiting, decoded->now_ms);
  if (!gathered.ok()) return gathered.status();
  FindStarving(undo.snapshot(), fit, decoded->groups, decoded->waiting, decoded->names, &budget, *gathered);
  undo.Keep();

  v1::MeasureUtilizationResponse response;
  response.set_clamped_amounts(decoded->clamped_amounts);
  LeftOutList left_out = decoded->left_out;
  left_out.Add(shared.LeftOut(view));
  TellLeftOut(left_out, &response);
  size_t bytes = 0;
  for (size_t i = 0; i < decoded->groups.size(); ++i) {
    const SizedGroup& group = decoded->groups[i];
    const SizeDecision decision =
        SizeGroup(group.options, (*gathered)[i].facts, decoded->states[i], decoded->now_ms);
    v1::GroupSize* const answer = response.add_groups();
    *answer = EncodeSize(decoded->groups, i, (*gathered)[i], decision);
    *response.mutable_state()->add_groups() = EncodeState(group.name, decision.next);
    bytes += answer->ByteSizeLong();
    if (bytes > kMaxMessageBytes) break;
  }
  v1::SizeState state = response.state();
  absl::StatusOr<v1::MeasureUtilizationResponse> sized = Sized(std::move(response), "ask about fewer groups");
  if (sized.ok()) shared.size_state = std::move(state);
  return sized;
}

}  // namespace loadline
