#include <utility>

#include "loadline/v1/drain.pb.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/waiting.h"
#include "plugin/service/drain_turn.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::PlanDrainResponse> AnswerPlanDrain(const v1::PlanDrainRequest& request,
                                                      const Deadline& deadline, Views* views) {
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  absl::StatusOr<DecodedProblem> waiting =
      DecodeWaitingPods(request, view.cluster().resource_names(), shared.OptionsOfQuestion(view));
  if (!waiting.ok()) return waiting.status();
  SelectLabelKeys(&view, &*waiting);
  UndoUnlessKept undo(&shared, &view);
  absl::StatusOr<DrainTurn> turn = DrainTurn::Begin(request, "options", &undo);
  if (!turn.ok()) return turn.status();
  if (absl::Status status = turn->LeaveOutNodesThatStart(request.startup_taints()); !status.ok())
    return status;
  Complete(view.label_keys(), &*waiting);
  cluster->Lend();
  WorkBudget budget = BudgetOf(request, kDrainWork, shared.limits.question_bytes, deadline);
  if (request.pods_size() > 0) turn->ExpectOnNodes(*waiting, undo.snapshot(), &budget);
  const DrainPlan& plan = undo.drain()->Plan(turn->problem(), turn->options(), &budget);
  v1::PlanDrainResponse response = EncodeDrainPlan(plan, turn->problem(), turn->options(), request.compact());
  turn->Finish(/*planned=*/true);
  LeftOutList left_out = turn->left_out();
  left_out.Add(shared.LeftOut(view));
  TellTooCostlyBudgets(plan, &left_out);
  TellLeftOut(left_out, &response);
  if (!request.compact()) *response.mutable_state() = turn->EncodeState();
  absl::StatusOr<v1::PlanDrainResponse> sized = Sized(std::move(response), "ask for a compact one");
  if (!sized.ok()) return sized;
  turn->Keep();
  undo.Keep();
  return sized;
}

}  // namespace loadline
