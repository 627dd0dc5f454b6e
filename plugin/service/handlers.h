// The methods of the services in proto/loadline/v1. Each decodes its request, asks the core, and encodes the
// answer.
#ifndef LOADLINE_PLUGIN_SERVICE_HANDLERS_H_
#define LOADLINE_PLUGIN_SERVICE_HANDLERS_H_

#include "absl/status/statusor.h"
#include "plugin/service/deadline.h"

namespace loadline {

class Views;  // see views.h

// Only declared, so that who answers one method need not read the messages of all.
namespace v1 {
class CheckLoadLineRequest;
class CheckLoadLineResponse;
class DescribeRequest;
class DescribeResponse;
class DropRequest;
class DropResponse;
class EstimateScaleUpRequest;
class EstimateScaleUpResponse;
class ExplainRequest;
class ExplainResponse;
class FitRequest;
class FitResponse;
class MeasureUtilizationRequest;
class MeasureUtilizationResponse;
class PlanConsolidationRequest;
class PlanConsolidationResponse;
class PlanDrainRequest;
class PlanDrainResponse;
class PlanLoopRequest;
class PlanLoopResponse;
class PlanScaleUpRequest;
class PlanScaleUpResponse;
class PlanSlackRequest;
class PlanSlackResponse;
class RankOptionsRequest;
class RankOptionsResponse;
class ScoreRequest;
class ScoreResponse;
class SetClusterRequest;
class SetClusterResponse;
class SimulateRequest;
class SimulateResponse;
class StepRemovalRequest;
class StepRemovalResponse;
class SyncRequest;
class SyncResponse;
}  // namespace v1

// Errors are those of the services in the proto files. The changes of a question are applied first, and stay
// applied if the question is refused after that. What planners remember in a view changes with an answer
// only. Any thread.

// ClusterState. A node that alone would outgrow an answer makes Describe kResourceExhausted.
absl::StatusOr<v1::SyncResponse> AnswerSync(const v1::SyncRequest& request, const Deadline& deadline,
                                            Views* views);
absl::StatusOr<v1::SetClusterResponse> AnswerSetCluster(const v1::SetClusterRequest& request,
                                                        const Deadline& deadline, Views* views);
absl::StatusOr<v1::DescribeResponse> AnswerDescribe(const v1::DescribeRequest& request,
                                                    const Deadline& deadline, Views* views);
absl::StatusOr<v1::DropResponse> AnswerDrop(const v1::DropRequest& request, const Deadline& deadline,
                                            Views* views);

// SchedulerExtender.
absl::StatusOr<v1::ScoreResponse> AnswerScore(const v1::ScoreRequest& request, const Deadline& deadline,
                                              Views* views);
absl::StatusOr<v1::ExplainResponse> AnswerExplain(const v1::ExplainRequest& request, const Deadline& deadline,
                                                  Views* views);
absl::StatusOr<v1::FitResponse> AnswerFit(const v1::FitRequest& request, const Deadline& deadline,
                                          Views* views);
absl::StatusOr<v1::CheckLoadLineResponse> AnswerCheckLoadLine(const v1::CheckLoadLineRequest& request,
                                                              const Deadline& deadline, Views* views);

// Autoscaler.
absl::StatusOr<v1::RankOptionsResponse> AnswerRankOptions(const v1::RankOptionsRequest& request,
                                                          const Deadline& deadline, Views* views);
absl::StatusOr<v1::EstimateScaleUpResponse> AnswerEstimateScaleUp(const v1::EstimateScaleUpRequest& request,
                                                                  const Deadline& deadline, Views* views);
absl::StatusOr<v1::PlanScaleUpResponse> AnswerPlanScaleUp(const v1::PlanScaleUpRequest& request,
                                                          const Deadline& deadline, Views* views);
absl::StatusOr<v1::MeasureUtilizationResponse> AnswerMeasureUtilization(
    const v1::MeasureUtilizationRequest& request, const Deadline& deadline, Views* views);
absl::StatusOr<v1::PlanSlackResponse> AnswerPlanSlack(const v1::PlanSlackRequest& request,
                                                      const Deadline& deadline, Views* views);
absl::StatusOr<v1::PlanDrainResponse> AnswerPlanDrain(const v1::PlanDrainRequest& request,
                                                      const Deadline& deadline, Views* views);
absl::StatusOr<v1::PlanLoopResponse> AnswerPlanLoop(const v1::PlanLoopRequest& request,
                                                    const Deadline& deadline, Views* views);
absl::StatusOr<v1::SimulateResponse> AnswerSimulate(const v1::SimulateRequest& request,
                                                    const Deadline& deadline, Views* views);
absl::StatusOr<v1::StepRemovalResponse> AnswerStepRemoval(const v1::StepRemovalRequest& request,
                                                          const Deadline& deadline, Views* views);

absl::StatusOr<v1::PlanConsolidationResponse> AnswerPlanConsolidation(
    const v1::PlanConsolidationRequest& request, const Deadline& deadline, Views* views);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_HANDLERS_H_
