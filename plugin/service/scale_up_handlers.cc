#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "loadline/v1/scale_up_plan.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/scale_up_plan.h"
#include "plugin/convert/scale_up_problem.h"
#include "plugin/convert/text.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// Decodes what is asked of a cluster, and makes the cluster know the labels that it turns on.
absl::StatusOr<DecodedProblem> DecodeGrowth(const v1::ScaleUpProblem& problem, PodGrouping grouping,
                                            QuestionCluster* cluster) {
  const SharedView& shared = cluster->shared();
  View& view = cluster->view();
  absl::StatusOr<DecodedProblem> decoded = DecodeProblem(
      problem, problem.pods(), grouping, view.cluster().resource_names(), shared.OptionsOfQuestion(view));
  if (!decoded.ok()) return decoded;
  if (absl::Status status = DeriveModels(problem.groups(), view.cluster(), &*decoded); !status.ok())
    return status;
  CompleteClouds(view.cluster(), &decoded->groups);
  SelectLabelKeys(&view, &*decoded);
  Complete(view.label_keys(), &*decoded);
  shared.UseProfiles(view, &decoded->fit);
  cluster->Lend();
  return decoded;
}

}  // namespace

absl::StatusOr<v1::EstimateScaleUpResponse> AnswerEstimateScaleUp(const v1::EstimateScaleUpRequest& request,
                                                                  const Deadline& deadline, Views* views) {
  const absl::StatusOr<EstimateMode> mode = DecodeMode(request.mode());
  if (!mode.ok()) return mode.status();
  const v1::ScaleUpProblem& problem = request.problem();
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(problem, deadline, views);
  if (!cluster.ok()) return Annotate(cluster.status(), "problem");
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  const bool exact = *mode == EstimateMode::kExact;
  absl::StatusOr<DecodedProblem> decoded =
      DecodeGrowth(problem, exact ? PodGrouping::kShape : PodGrouping::kController, &*cluster);
  if (!decoded.ok()) return Annotate(decoded.status(), "problem");
  UndoUnlessKept undo(&shared, &view);
  Snapshot* const snapshot = undo.snapshot();
  WorkBudget budget = BudgetOf(problem, kGrowthWork, shared.limits.question_bytes, deadline);
  const NodeLimit limit = NewNodeLimit(problem, view.cluster().node_count());

  v1::EstimateScaleUpResponse response;
  response.set_clamped_amounts(decoded->clamped_amounts);
  decoded->left_out.Add(shared.LeftOut(view));
  TellLeftOut(decoded->left_out, &response);
  snapshot->Fork();
  {
    Estimator estimator(snapshot, &decoded->fit, std::move(decoded->pods), std::move(decoded->daemons),
                        &budget, *mode);
    response.set_cut_short_by(std::string(Name(estimator.cut_short_by())));
    if (exact) {
      EncodeExisting(estimator.UseExistingRoom(&budget), *snapshot, &decoded->entries,
                     response.mutable_existing());
    }
    for (const GroupIndex i : decoded->groups.indices()) {
      const NodeGroup& group = decoded->groups[i];
      if (!group.model.has_value()) {
        v1::GroupEstimate* const estimate = response.add_groups();
        estimate->set_node_group(group.name);
        estimate->set_end(v1::GroupEstimate::NO_TEMPLATE);
        continue;
      }
      const NodeThreshold limits[] = {{.max_nodes = GroupNodeLimit(group, {})}, {.max_nodes = limit}};
      v1::GroupEstimate* const estimate = response.add_groups();
      std::vector<PodRefusal> refusals;
      *estimate = EncodeEstimate(group.name,
                                 estimator.Estimate(group, NodeLimiter(limits), &budget,
                                                    request.with_refusals() ? &refusals : nullptr),
                                 decoded->entries);
      EncodeRefusals(refusals, decoded->entries, estimate);
      estimate->set_model_source(std::string(Name(group.model->source)));
      estimate->set_model_node(EncodeModelNode(problem.groups(), view.cluster(), i, *decoded));
    }
  }
  snapshot->Revert();
  if (budget.ended()) response.set_cut_short_by(std::string(Name(budget.end())));
  undo.Keep();
  return Sized(std::move(response), "send equal pods as one entry");
}

absl::StatusOr<v1::PlanScaleUpResponse> AnswerPlanScaleUp(const v1::PlanScaleUpRequest& request,
                                                          const Deadline& deadline, Views* views) {
  const v1::ScaleUpProblem& problem = request.problem();
  absl::StatusOr<PriceModel> prices = DecodePriceModel(request.prices());
  if (!prices.ok()) return Annotate(prices.status(), "prices");
  if (absl::Status status = CheckNumber("usd_per_further_type", request.usd_per_further_type(), 0, kMaxPrice);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(problem, deadline, views);
  if (!cluster.ok()) return Annotate(cluster.status(), "problem");
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  absl::StatusOr<DecodedProblem> decoded = DecodeGrowth(problem, PodGrouping::kShape, &*cluster);
  if (!decoded.ok()) return Annotate(decoded.status(), "problem");

  v1::PlanScaleUpResponse response;
  response.set_clamped_amounts(decoded->clamped_amounts);
  decoded->left_out.Add(shared.LeftOut(view));
  TellLeftOut(decoded->left_out, &response);
  GrowableGroups groups;
  StrongVector<GrowableIndex, GroupIndex> positions;
  for (const GroupIndex i : decoded->groups.indices()) {
    NodeGroup& group = decoded->groups[i];
    const NodePrice price = group.model.has_value() ? PriceNode(*prices, group.priced) : NodePrice();
    if (price.source == PriceSource::kNone) {
      response.add_groups_left_out(group.name);
      continue;
    }
    group.usd_per_hour = price.price;
    groups.push_back(group);
    positions.push_back(i);
  }
  UndoUnlessKept undo(&shared, &view);
  WorkBudget budget = BudgetOf(problem, kGrowthWork, shared.limits.question_bytes, deadline);
  const PlanOptions options{NewNodeLimit(problem, view.cluster().node_count()),
                            request.usd_per_further_type()};
  const ScaleUpPlan plan = PlanScaleUp(undo.snapshot(), &decoded->fit, std::move(decoded->pods),
                                       std::move(decoded->daemons), groups, options, &budget);
  EncodeExisting(plan.existing, *undo.snapshot(), &decoded->entries, response.mutable_existing());
  EncodePlan(plan, decoded->groups, positions, &decoded->entries, &response);
  undo.Keep();
  return Sized(std::move(response), "send equal pods as one entry");
}

}  // namespace loadline
