#include "plugin/service/engine.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "google/protobuf/arena.h"
#include "loadline/v1/cluster_state.pb.h"
#include "loadline/v1/consolidate.pb.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/fit.pb.h"
#include "loadline/v1/load_line.pb.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/removal.pb.h"
#include "loadline/v1/scale_up.pb.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "loadline/v1/score.pb.h"
#include "loadline/v1/set_cluster.pb.h"
#include "loadline/v1/simulation.pb.h"
#include "loadline/v1/size.pb.h"
#include "loadline/v1/slack.pb.h"
#include "plugin/base/cluster_bytes.h"
#include "plugin/convert/error_details.h"
#include "plugin/convert/parse.h"
#include "plugin/convert/schema.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// The largest block of the arena of a call. Chosen: larger blocks waste memory at the end of a call.
constexpr size_t kMostBlockBytes = size_t{64} << 10;

template <typename Request, typename Response>
using Handler = absl::StatusOr<Response> (*)(const Request&, const Deadline&, Views*);

// Fields that this engine does not know would ask for what it does not do.
absl::Status RefuseUnknownField(absl::string_view type, absl::string_view bytes) {
  const std::string field = Schema::OfThisEngine().UnknownField(type, bytes);
  if (field.empty()) return absl::OkStatus();
  const absl::Status status = absl::InvalidArgumentError(absl::StrCat(
      "request: ", field, " is not known to this engine, which is of version ", LOADLINE_VERSION));
  return WithField(WithReason(status, kUnknownField), field);
}

// The details of an error: whose changes a request brought, and what became of them.
template <typename Request>
ErrorDetails DetailsOf(const Request& request) {
  ErrorDetails details;
  if constexpr (requires { request.changes(); }) {
    if (request.has_changes()) {
      details.view = request.changes().view();
      details.changes_applied = Views::HasApplied();
    }
  } else if constexpr (requires { request.view(); }) {
    details.view = request.view();
  }
  if (Views::HasApplied()) details.changes_applied = true;
  if (!CheckName(details.view).ok()) details.view.clear();
  return details;
}

absl::Status WithDetails(absl::Status status, const ErrorDetails& details) {
  status.SetPayload(kErrorDetails, absl::Cord(EncodeError(status, details)));
  return status;
}

// Returns the bytes of the answer.
template <auto kHandler, typename Request>
absl::StatusOr<std::string> Answer(const Request& request, const Deadline& deadline, Views* views) {
  try {
    const auto response = kHandler(request, deadline, views);
    if (!response.ok()) return response.status();
    std::string out;
    if (!response->SerializeToString(&out)) return absl::InternalError("the response cannot be serialized");
    if (out.size() <= kMaxMessageBytes) return out;
    return absl::InternalError(
        absl::StrCat("the response has ", out.size(), " bytes, the limit is ", kMaxMessageBytes));
  } catch (const CheckFailed& failed) {  // all that was begun is undone by now
    views->CountFailedCheck();
    return absl::InternalError(absl::StrCat(failed.what(), " (a fault of Loadline: please report it)"));
  }
}

// Bytes to bytes around a handler.
template <typename Request, typename Response, Handler<Request, Response> kHandler>
absl::StatusOr<std::string> Handle(absl::string_view bytes, const Deadline& deadline, Views* views) {
  // Requests have many small parts, which go together.
  google::protobuf::ArenaOptions blocks;
  blocks.max_block_size = kMostBlockBytes;
  google::protobuf::Arena arena(blocks);
  Request* const request = google::protobuf::Arena::CreateMessage<Request>(&arena);
  if (absl::Status status = Parse(bytes, request->GetTypeName(), request); !status.ok()) {
    return WithReason(Annotate(status, "request", " "), kUnreadableRequest);
  }
  if (absl::Status status = RefuseUnknownField(request->GetTypeName(), bytes); !status.ok()) return status;
  Views::ForgetApplied();
  absl::StatusOr<std::string> out = Answer<kHandler>(*request, deadline, views);
  if (!out.ok()) return WithDetails(out.status(), DetailsOf(*request));
  return out;
}

struct Method {
  absl::string_view name;
  absl::StatusOr<std::string> (*handle)(absl::string_view bytes, const Deadline& deadline, Views* views);
  bool takes_cluster = false;  // its request has a bound of its own
};

constexpr Method kMethods[] = {
    {"/loadline.v1.SchedulerExtender/Score", Handle<v1::ScoreRequest, v1::ScoreResponse, AnswerScore>},
    {"/loadline.v1.SchedulerExtender/Explain",
     Handle<v1::ExplainRequest, v1::ExplainResponse, AnswerExplain>},
    {"/loadline.v1.SchedulerExtender/Fit", Handle<v1::FitRequest, v1::FitResponse, AnswerFit>},
    {"/loadline.v1.SchedulerExtender/CheckLoadLine",
     Handle<v1::CheckLoadLineRequest, v1::CheckLoadLineResponse, AnswerCheckLoadLine>},
    {"/loadline.v1.Autoscaler/RankOptions",
     Handle<v1::RankOptionsRequest, v1::RankOptionsResponse, AnswerRankOptions>},
    {"/loadline.v1.Autoscaler/EstimateScaleUp",
     Handle<v1::EstimateScaleUpRequest, v1::EstimateScaleUpResponse, AnswerEstimateScaleUp>},
    {"/loadline.v1.Autoscaler/PlanScaleUp",
     Handle<v1::PlanScaleUpRequest, v1::PlanScaleUpResponse, AnswerPlanScaleUp>},
    {"/loadline.v1.Autoscaler/MeasureUtilization",
     Handle<v1::MeasureUtilizationRequest, v1::MeasureUtilizationResponse, AnswerMeasureUtilization>},
    {"/loadline.v1.Autoscaler/PlanLoop", Handle<v1::PlanLoopRequest, v1::PlanLoopResponse, AnswerPlanLoop>},
    {"/loadline.v1.Autoscaler/Simulate", Handle<v1::SimulateRequest, v1::SimulateResponse, AnswerSimulate>},
    {"/loadline.v1.Autoscaler/StepRemoval",
     Handle<v1::StepRemovalRequest, v1::StepRemovalResponse, AnswerStepRemoval>},
    {"/loadline.v1.Autoscaler/PlanConsolidation",
     Handle<v1::PlanConsolidationRequest, v1::PlanConsolidationResponse, AnswerPlanConsolidation>},
    {"/loadline.v1.Autoscaler/PlanDrain",
     Handle<v1::PlanDrainRequest, v1::PlanDrainResponse, AnswerPlanDrain>},
    {"/loadline.v1.Autoscaler/PlanSlack",
     Handle<v1::PlanSlackRequest, v1::PlanSlackResponse, AnswerPlanSlack>},
    {"/loadline.v1.ClusterState/Sync", Handle<v1::SyncRequest, v1::SyncResponse, AnswerSync>},
    {"/loadline.v1.ClusterState/SetCluster",
     Handle<v1::SetClusterRequest, v1::SetClusterResponse, AnswerSetCluster>, true},
    {"/loadline.v1.ClusterState/Describe", Handle<v1::DescribeRequest, v1::DescribeResponse, AnswerDescribe>},
    {"/loadline.v1.ClusterState/Drop", Handle<v1::DropRequest, v1::DropResponse, AnswerDrop>},
};

}  // namespace

absl::StatusOr<std::string> Engine::Call(absl::string_view method, absl::string_view request,
                                         const Deadline& deadline) {
  for (const Method& candidate : kMethods) {
    if (candidate.name != method) continue;
    const size_t most =
        candidate.takes_cluster ? MostClusterBytes(views_.limits().question_bytes) : kMaxMessageBytes;
    if (request.size() > most) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the request has ", request.size(), " bytes, the limit is ", most));
    }
    return candidate.handle(request, deadline, &views_);
  }
  return absl::UnimplementedError(absl::StrCat("there is no method ", Quoted(method)));
}

}  // namespace loadline
