#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/expand/node_limits.h"
#include "core/grow/loop_facts.h"
#include "core/grow/loop_sizes.h"
#include "core/grow/small_groups.h"
#include "core/loop/plan_loop.h"
#include "core/observe/price_sums.h"
#include "core/price/own_price.h"
#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/fields.h"
#include "plugin/convert/growth_limits.h"
#include "plugin/convert/left_out.h"
#include "plugin/convert/loop.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/replacement.h"
#include "plugin/convert/slack.h"
#include "plugin/convert/text.h"
#include "plugin/convert/waiting.h"
#include "plugin/report/loop_report.h"
#include "plugin/report/price_sources.h"
#include "plugin/service/drain_turn.h"
#include "plugin/service/fleet_turn.h"
#include "plugin/service/handlers.h"
#include "plugin/service/question_cluster.h"
#include "plugin/service/question_limits.h"
#include "plugin/service/undo.h"
#include "plugin/service/views.h"

namespace loadline {
namespace {

// A group of which more nodes are on their way than can be: none of them is expected, and it does not grow.
void HoldGroupsBeyondBounds(LoopProblem* problem, LeftOutList* left_out) {
  const CountsOfGroups counts = CountNodes(problem->drain, problem->groups);
  for (const GroupIndex i : counts.indices()) {
    if (counts[i].upcoming <= kMostUpcomingNodes) continue;
    NodeGroup& group = problem->groups[i];
    const std::string reason = absl::StrCat("current_nodes: ", group.target, " are ", counts[i].upcoming,
                                            " more than there are, at most ", kMostUpcomingNodes, " may be");
    left_out->Add(kNodeGroupKind, "", group.name, reason);
    group.target = counts[i].registered;
    group.blocked_reason = reason;
  }
}

// Nodes that the cluster has, and those that are on their way.
int64_t NodesToBe(const LoopProblem& problem) {
  int64_t nodes = problem.drain.cluster->node_count();
  for (const GroupCounts& group : CountNodes(problem.drain, problem.groups)) nodes += group.upcoming;
  return nodes;
}

// The parts of a question that do not depend on its cluster.
struct LoopPolicy {
  LoopDecisions decisions;
  PriceModel prices;
  std::optional<WaitingRules> waiting;
  std::vector<NodeMaximum> maxima;
  std::optional<SimilarityRules> balance;
  std::optional<LoopRanking> ranking;
  SlackOptions slack;
  v1::PlanDrainRequest drain;
  DecodedConsolidationPolicy consolidation;
};

absl::StatusOr<LoopPolicy> DecodeLoopPolicy(const v1::PlanLoopRequest& request) {
  if (absl::Status status = CheckBudget(request); !status.ok()) return status;
  if (absl::Status status = CheckNumber("usd_per_further_type", request.usd_per_further_type(), 0, kMaxPrice);
      !status.ok()) {
    return status;
  }
  Fields counts;
  counts.Range("deferred_pods", request.deferred_pods(), 0, INT32_MAX);
  counts.Range("left_out_pods", request.left_out_pods(), 0, INT32_MAX);
  if (!counts.status().ok()) return counts.status();
  const absl::StatusOr<LoopDecisions> decisions = DecodeDecisions(request);
  if (!decisions.ok()) return decisions.status();
  absl::StatusOr<PriceModel> prices = DecodePriceModel(request.prices());
  if (!prices.ok()) return Annotate(prices.status(), "prices");
  absl::StatusOr<std::optional<WaitingRules>> waiting = DecodeWaitingRules(request);
  if (!waiting.ok()) return waiting.status();
  absl::StatusOr<std::vector<NodeMaximum>> maxima = DecodeMaxima(request);
  if (!maxima.ok()) return maxima.status();
  if (absl::Status status = CheckNotBegun(request); !status.ok()) return status;
  absl::StatusOr<std::optional<SimilarityRules>> balance = DecodeSimilarity(request);
  if (!balance.ok()) return balance.status();
  absl::StatusOr<std::optional<LoopRanking>> ranking = DecodeRanking(request, *prices);
  if (!ranking.ok()) return ranking.status();
  absl::StatusOr<SlackOptions> slack = DecodeSlackPolicy(request.slack());
  if (!slack.ok()) return Annotate(slack.status(), "slack");
  absl::StatusOr<v1::PlanDrainRequest> drain = DrainPart(request);
  if (!drain.ok()) return drain.status();
  absl::StatusOr<DecodedConsolidationPolicy> consolidation =
      DecodeConsolidationPolicy(request.consolidation());
  if (!consolidation.ok()) return Annotate(consolidation.status(), "consolidation");
  return LoopPolicy{*decisions,         *std::move(prices),  *std::move(waiting),
                    *std::move(maxima), *std::move(balance), *std::move(ranking),
                    *std::move(slack),  *std::move(drain),   *std::move(consolidation)};
}

// Fills `problem` from the request. `decoded` keeps the entries and the objects that are left out. `problem`
// must not move afterwards: its ranking refers to it.
absl::Status MakeProblem(const v1::PlanLoopRequest& request, LoopPolicy policy, const SharedView& shared,
                         const View& view, const FleetTurn* fleet, DrainTurn* drain_turn,
                         DecodedProblem* decoded, LoopProblem* problem) {
  problem->drain = drain_turn->TakeProblem();
  problem->groups = LoopGroups(request, *decoded, problem->drain, policy.prices);
  problem->drain.groups.clear();
  problem->names = decoded->names;
  problem->startup_taints = decoded->startup_taints;
  absl::StatusOr<GrowthBatch> batch = DecodeBatch(request, decoded->entries, decoded->pods.size());
  if (!batch.ok()) return batch.status();
  problem->batch = *std::move(batch);
  absl::StatusOr<std::vector<Nomination>> nominations =
      DecodeNominations(request, decoded->entries, decoded->pods.size());
  if (!nominations.ok()) return nominations.status();
  problem->nominations = *std::move(nominations);
  problem->growth.usd_per_further_type = request.usd_per_further_type();
  UseConsolidationPolicy(policy.consolidation, &problem->replacement);
  if (fleet != nullptr) fleet->Use(problem);  // says which nodes are of which group, and their models
  PriceOtherKinds(policy.prices, problem->drain.group_of, view.cluster(), &problem->groups);
  HoldGroupsBeyondBounds(problem, &decoded->left_out);
  if (fleet == nullptr) {
    problem->growth.max_new_nodes =
        SmallerLimit(ReadNodeLimit(request.max_new_nodes()),
                     ClusterNodeLimit(request.max_nodes_total(), NodesToBe(*problem)));
  }
  problem->pending = std::move(decoded->pods);
  problem->daemons = std::move(decoded->daemons);
  problem->maxima = std::move(policy.maxima);
  problem->balance = std::move(policy.balance);
  problem->enforce_minima = request.enforce_min_sizes();
  problem->looks_ahead = !request.plan_waiting_pods_alone();
  problem->ranking = std::move(policy.ranking);
  if (problem->ranking.has_value()) {
    problem->ranking->requests_of = [problem](const PodShape& shape) {
      return PricedRequests(shape, problem->names);
    };
  }
  problem->slack = std::move(policy.slack);
  problem->slack.startup_taints = decoded->startup_taints;
  problem->scale_down = drain_turn->options();
  problem->scale_down.fit = decoded->fit;
  problem->decisions = policy.decisions;
  problem->deleting = drain_turn->state().deleting;
  if (!request.has_state()) {
    problem->turn = shared.growth_turn;
    problem->reserved_nodes = shared.reserved_nodes;
  }
  // The memory of the loop holds what the view does, and outlives it.
  const v1::SizeState sizes = fleet != nullptr ? fleet->Sizes(shared.size_state) : shared.size_state;
  return DecodeSized(request, sizes, view.label_keys(), shared.limits.slack_namespace, problem,
                     &decoded->left_out);
}

std::function<std::string(int32_t)> NamesOf(const ClusterState& cluster) {
  return [&cluster](int32_t slot) {
    return slot >= 0 && cluster.Occupied(Slot{slot}) ? std::string(cluster.name(Slot{slot})) : "";
  };
}

}  // namespace

absl::StatusOr<v1::PlanLoopResponse> AnswerPlanLoop(const v1::PlanLoopRequest& request,
                                                    const Deadline& deadline, Views* views) {
  absl::StatusOr<LoopPolicy> policy = DecodeLoopPolicy(request);
  if (!policy.ok()) return policy.status();
  absl::StatusOr<QuestionCluster> cluster = QuestionCluster::Of(request, deadline, views);
  if (!cluster.ok()) return cluster.status();
  SharedView& shared = cluster->shared();
  View& view = cluster->view();
  const v1::ScaleUpProblem growth = GrowthPart(request);
  absl::StatusOr<DecodedProblem> decoded =
      DecodeProblem(growth, request.pods(), PodGrouping::kShape, view.cluster().resource_names(),
                    shared.OptionsOfQuestion(view));
  if (!decoded.ok()) return decoded.status();
  if (absl::Status status = DeriveModels(growth.groups(), view.cluster(), &*decoded); !status.ok())
    return status;
  shared.UseProfiles(view, &decoded->fit);
  NotWaitingList not_waiting;
  if (policy->waiting.has_value()) {
    not_waiting = RemoveNotWaiting(request.pods(), *policy->waiting, &*decoded);
  }
  std::unique_ptr<FleetTurn> fleet_turn;
  DrainTurn::Timers timers;
  if (request.has_fleet()) {
    absl::StatusOr<std::unique_ptr<FleetTurn>> turn =
        FleetTurn::Begin(request, *decoded, policy->decisions, &*cluster);
    if (!turn.ok()) return turn.status();
    fleet_turn = *std::move(turn);
    decoded->left_out.Add(fleet_turn->left_out());
    fleet_turn->Describe(growth.groups(), &*decoded);
    fleet_turn->AddProgress(&policy->drain);
    timers = [&](int64_t now_s, int64_t ttl_s) { return fleet_turn->Timers(now_s, ttl_s); };
  }
  CompleteClouds(view.cluster(), &decoded->groups);
  SelectLabelKeys(&view, &*decoded);
  absl::StatusOr<DecodedProblem> young =
      DecodeYoungPods(request, not_waiting, decoded->names, shared.OptionsOfQuestion(view));
  if (!young.ok()) return young.status();
  SelectLabelKeys(&view, &*young);
  UndoUnlessKept undo(&shared, &view);
  absl::StatusOr<DrainTurn> drain_turn = DrainTurn::Begin(policy->drain, "drain", &undo, timers);
  if (!drain_turn.ok()) return drain_turn.status();
  decoded->names = young->names;  // with names added
  Complete(view.label_keys(), &*decoded);
  Complete(view.label_keys(), &*young);
  cluster->Lend();
  const PriceModel prices = policy->prices;
  LoopProblem problem;
  if (absl::Status status = MakeProblem(request, *std::move(policy), shared, view, fleet_turn.get(),
                                        &*drain_turn, &*decoded, &problem);
      !status.ok()) {
    return status;
  }

  problem.young = std::move(young->pods);
  SlackPlanner* const slack = undo.slack();
  Snapshot* const snapshot = undo.snapshot();
  WorkBudget size_budget = FixedBudget(kSizeWork, deadline);
  if (absl::Status status = GatherSizes(&problem, snapshot, &size_budget); !status.ok()) return status;
  if (request.state().has_slack()) {
    absl::StatusOr<SlackState> state = DecodeSlackState(request.state().slack());
    if (!state.ok()) return Annotate(state.status(), "state.slack");
    slack->Restore(*state);
  } else if (fleet_turn != nullptr) {
    fleet_turn->UseSlack(problem, slack);
  }
  WorkBudget budget = BudgetOf(request, kLoopWork, shared.limits.question_bytes, deadline);
  if (request.hold_groups_too_small_for_daemons()) {
    const StrongVector<GroupIndex, std::string> held = HoldSmallGroups(snapshot, &budget, &problem);
    if (fleet_turn != nullptr) fleet_turn->NoteHeld(held);
  }
  if (fleet_turn != nullptr) fleet_turn->HoldVainGrowth(snapshot, &budget, &problem);
  const LoopPlan plan = PlanLoop(problem, {slack, undo.drain(), &shared.consolidator}, snapshot, &budget);

  v1::PlanLoopResponse response = EncodeLoopPlan(plan, problem, *snapshot, request, decoded->entries);
  *response.mutable_not_waiting() = std::move(not_waiting);
  if (problem.decisions.replace) *response.mutable_replacement() = EncodeReplacement(plan, problem);
  if (fleet_turn != nullptr) {
    *response.mutable_fleet() = fleet_turn->Finish(problem, plan, *slack);
    fleet_turn->TellWhyNoGrowth(problem, plan, decoded->entries, snapshot, &budget, response.mutable_fleet());
  }
  drain_turn->Finish(/*planned=*/plan.scale_down_problem != nullptr);
  v1::SizeState size_state = EncodeSizes(plan, problem);
  if (!request.compact()) {
    *response.mutable_state()->mutable_drain() = drain_turn->EncodeState();
    *response.mutable_state()->mutable_slack() = EncodeSlackState(slack->State());
    if (!problem.sized.empty()) *response.mutable_state()->mutable_size() = size_state;
  }
  response.set_clamped_amounts(decoded->clamped_amounts);
  decoded->left_out.Add(shared.LeftOut(view));
  decoded->left_out.Add(drain_turn->left_out());
  TellTooCostlyBudgets(plan.scale_down, &decoded->left_out);
  TellLeftOut(decoded->left_out, &response);
  *response.mutable_price_sources() =
      PriceSourcesOf(TallyPrices(problem.groups, problem.drain.group_of, view.cluster()), prices);
  BoughtNodes bought;
  for (const LoopGrowth& of : plan.growth) bought[of.group] += of.nodes();
  TellEstimatedPurchases(problem.groups, bought, response.mutable_price_sources());
  if (fleet_turn != nullptr)
    *response.mutable_report() = ReportOf({request, response, NamesOf(view.cluster())});
  absl::StatusOr<v1::PlanLoopResponse> sized =
      Sized(std::move(response), "ask for a compact one, or send equal pods as one entry");
  if (!sized.ok()) return sized;
  // Nothing below fails: the next loop starts from an answer only if it was given.
  drain_turn->Keep();
  if (!problem.sized.empty()) shared.size_state = std::move(size_state);
  shared.growth_turn = plan.next_turn;
  shared.reserved_nodes = plan.next_reserved_nodes;
  undo.Keep();
  return sized;
}

}  // namespace loadline
