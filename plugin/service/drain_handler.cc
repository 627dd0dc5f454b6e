#include "plugin/service/drain_handler.h"

#include <cstdint>
#include <string>
#include <utility>

#include "plugin/convert/drain.h"
#include "plugin/convert/left_out.h"
#include "plugin/service/answer_size.h"
#include "plugin/service/drain_turn.h"
#include "plugin/service/question_budget.h"
#include "plugin/service/question_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kNoWorkLimit = INT64_MAX / 2;

}  // namespace

absl::StatusOr<v1::PlanDrainResponse> PlanDrain(const v1::PlanDrainRequest& request, const Deadline& deadline,
                                                Views* views) {
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();
  absl::StatusOr<DrainTurn> turn = DrainTurn::Begin(request, "options", &cluster->shared());
  if (!turn.ok()) return turn.status();
  WorkBudget budget = BudgetOf(request, kNoWorkLimit, cluster->shared().limits.question_bytes, deadline);
  const DrainPlan& plan = turn->planner().Plan(turn->problem(), turn->options(), &budget);
  v1::PlanDrainResponse response = EncodeDrainPlan(plan, turn->problem(), request.compact());
  turn->Finish(/*planned=*/true);
  LeftOutList left_out = turn->left_out();
  left_out.Add(cluster->shared().LeftOut());
  TellLeftOut(left_out, &response);
  if (!request.compact()) *response.mutable_state() = turn->EncodeState();
  absl::StatusOr<v1::PlanDrainResponse> sized = Sized(std::move(response), "ask for a compact one");
  if (sized.ok()) turn->Keep();
  return sized;
}

}  // namespace loadline
