#include <utility>
#include <vector>

#include "core/consolidate/consolidator.h"
#include "core/drain/being_deleted.h"
#include "core/grow/expected_pods.h"
#include "core/grow/waiting.h"
#include "core/observe/price_sums.h"
#include "core/observe/see_fleet.h"
#include "core/price/own_price.h"
#include "core/replace/consolidation_question.h"
#include "loadline/v1/consolidate.pb.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/consolidate.h"
#include "plugin/convert/drain.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/loop.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"
#include "plugin/convert/waiting.h"
#include "plugin/report/price_sources.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {

absl::StatusOr<v1::PlanConsolidationResponse> AnswerPlanConsolidation(
    const v1::PlanConsolidationRequest& request, const Deadline& deadline, Views* views) {
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  absl::StatusOr<DecodedConsolidationPolicy> policy = DecodeConsolidationPolicy(request.policy());
  if (!policy.ok()) return Annotate(policy.status(), "policy");
  const absl::StatusOr<PriceModel> prices = DecodePriceModel(request.prices());
  if (!prices.ok()) return Annotate(prices.status(), "prices");
  const v1::PlanLoopRequest part = LoopPart(request);
  absl::StatusOr<v1::PlanDrainRequest> drain_part = DrainPart(part);
  if (!drain_part.ok()) return drain_part.status();
  *drain_part->mutable_placeholders() = request.placeholders();
  const absl::StatusOr<std::optional<WaitingRules>> waiting = DecodeWaitingRules(request);
  if (!waiting.ok()) return waiting.status();
  const absl::StatusOr<DecodedDrainOptions> drain = DecodeDrainOptions(request.drain(), request.fit());
  if (!drain.ok()) return Annotate(drain.status(), "drain");
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();

  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  const v1::ScaleUpProblem growth = GrowthPart(part);
  absl::StatusOr<DecodedProblem> decoded =
      DecodeProblem(growth, request.pods(), PodGrouping::kShape, view.cluster().resource_names(),
                    shared.OptionsOfQuestion(view));
  if (!decoded.ok()) return decoded.status();
  if (waiting->has_value()) RemoveNotWaiting(request.pods(), **waiting, &*decoded);
  if (absl::Status status = DeriveModels(growth.groups(), view.cluster(), &*decoded); !status.ok())
    return status;
  CompleteClouds(view.cluster(), &decoded->groups);
  SelectLabelKeys(&view, &*decoded);
  LeftOutList left_out;
  UndoUnlessKept undo(&shared, &view);
  absl::StatusOr<DrainProblem> problem =
      DecodeDrainProblem(*drain_part, shared.OptionsOfQuestion(view), &view, &left_out);
  if (!problem.ok()) return problem.status();
  Complete(view.label_keys(), &*decoded);
  cluster->Lend();

  absl::StatusOr<DerivedGroups> derived;
  if (request.derive_groups()) {
    derived = PutIntoDerivedGroups(decoded->startup_taints, kMaxScalableGroups, &*problem);
    if (!derived.ok()) return derived.status();
  }
  NodeGroups groups = request.derive_groups()
                          ? DerivedLoopGroups(*derived, *problem, decoded->startup_taints, *prices)
                          : LoopGroups(part, *decoded, *problem, *prices);
  PriceOtherKinds(*prices, problem->group_of, view.cluster(), &groups);
  // They keep their group, because the bill counts what they cost.
  FindNodesThatStart(decoded->startup_taints, groups, decoded->names, &*problem);
  shared.UseProfiles(view, &decoded->fit);
  int64_t waiting_pods = 0;
  for (const PendingPods& pods : decoded->pods) waiting_pods += pods.count;
  WorkBudget budget = BudgetOf(request, kConsolidationWork, shared.limits.question_bytes, deadline);
  // Drains find places for these by themselves.
  const std::vector<Slot> deleting = NodesBeingDeleted(view.cluster(), {}, request.now_s());
  for (PendingPods& pods : PodsOfNodesBeingDeleted(view.cluster(), deleting)) {
    pods.pod.names = decoded->names;
    decoded->pods.push_back(std::move(pods));
  }
  ExpectOnNodes(std::move(decoded->pods), PodsOfDeleting::kWait, decoded->fit, undo.snapshot(), &budget,
                &*problem);
  ConsolidationQuestion question = PrepareConsolidation(*problem, drain->options, groups, policy->prices);
  question.problem.daemons = std::move(decoded->daemons);
  if (request.max_nodes_total() > 0) question.problem.max_nodes = request.max_nodes_total();
  policy->options.fit = decoded->fit;
  Snapshot* const snapshot = undo.snapshot();
  snapshot->Fork();
  // Their pods are among the placeholders.
  CloseNodesBeingDeleted(view.cluster(), deleting, PodsOfDeleting::kWait, snapshot);
  const ConsolidationPlan plan = Consolidator().Plan(snapshot, question.problem, policy->options, &budget);
  snapshot->Revert();

  v1::PlanConsolidationResponse response;
  const PriceTally tally = TallyPrices(groups, problem->group_of, view.cluster());
  EncodeConsolidation(plan, policy->options, question, *problem, groups, tally, &response);
  *response.mutable_price_sources() = PriceSourcesOf(tally, *prices);
  BoughtNodes bought;
  for (const ConsolidationMove& move : plan.moves) {
    for (const GroupGrowthCount& add : move.add) bought[add.group] += add.nodes;
  }
  TellEstimatedPurchases(groups, bought, response.mutable_price_sources());
  if (request.derive_groups()) {
    EncodeDerivedGroups(*derived, groups, view.cluster().resource_names(), &response);
  }
  response.set_waiting_pods(waiting_pods);
  response.set_clamped_amounts(decoded->clamped_amounts);
  left_out.Add(decoded->left_out);
  left_out.Add(shared.LeftOut(view));
  TellLeftOut(left_out, &response);
  absl::StatusOr<v1::PlanConsolidationResponse> sized = Sized(std::move(response), "ask about fewer groups");
  if (sized.ok()) undo.Keep();
  return sized;
}

}  // namespace loadline
