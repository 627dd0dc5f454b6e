#include "plugin/service/drain_handler.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin/convert/drain.h"
#include "plugin/service/answer_size.h"
#include "plugin/service/drain_turn.h"
#include "plugin/service/question_budget.h"
#include "plugin/service/question_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kNoWorkLimit = INT64_MAX / 2;

absl::Status CheckLimits(const v1::PlanDrainRequest& request) {
  if (request.max_work() < 0 || request.max_work() > int64_t{1} << 62) {
    return absl::InvalidArgumentError(absl::StrCat("max_work: ", request.max_work(), " is out of range"));
  }
  if (request.max_milliseconds() < 0 || request.max_milliseconds() > 3'600'000) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_milliseconds: ", request.max_milliseconds(), " is out of range"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::PlanDrainResponse> PlanDrain(const v1::PlanDrainRequest& request, const Deadline& deadline,
                                                Views* views) {
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();
  absl::StatusOr<DrainTurn> turn = DrainTurn::Begin(request, "options", &cluster->shared());
  if (!turn.ok()) return turn.status();
  WorkBudget budget = BudgetOf(request, kNoWorkLimit, deadline);
  const DrainPlan& plan = turn->planner().Plan(turn->problem(), turn->options(), &budget);
  v1::PlanDrainResponse response = EncodeDrainPlan(plan, turn->problem(), request.compact());
  turn->End(/*planned=*/true);
  if (!request.compact()) *response.mutable_state() = turn->EncodeState();
  return Sized(std::move(response), "ask for a compact one");
}

}  // namespace loadline
