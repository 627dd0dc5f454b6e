#include "core/consolidate/consolidator.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/fingerprint.h"
#include "core/cluster/scoped_fork.h"
#include "core/consolidate/cost_bound.h"
#include "core/consolidate/moves.h"

namespace loadline {
namespace {

// Returns a fingerprint of what decides, beside nodes and pods, whether a move is found.
uint64_t FingerprintOf(const ConsolidationProblem& problem, const ConsolidationOptions& options) {
  FingerprintBuilder builder;
  for (const NodeGroup& group : problem.groups) {
    builder.Add(group.name);
    builder.Add(HasNewNodes(group) ? std::bit_cast<int64_t>(group.model->Fingerprint()) : 0);
    builder.Add(std::bit_cast<int64_t>(UsdOf(group)));
    builder.Add(group.priced.spot);
    builder.Add(group.min_nodes);
    builder.Add(MostNodes(group));
    builder.Add(group.priority.has_value());
    builder.Add(group.priority.value_or(0));
  }
  builder.Add(problem.minimum.amounts.cpu);
  builder.Add(problem.minimum.amounts.memory);
  builder.Add(problem.minimum.nodes);
  for (const auto& [type, gpus] : problem.minimum.gpus) {
    builder.Add(type);
    builder.Add(gpus);
  }
  builder.Add(static_cast<int64_t>(options.mode));
  builder.Add(std::bit_cast<int64_t>(options.least_saving_usd_per_hour));
  builder.Add(std::bit_cast<int64_t>(options.least_saving_percent));
  builder.Add(std::bit_cast<int64_t>(options.payback_hours));
  builder.Add(std::bit_cast<int64_t>(options.load_rests_hours));
  builder.Add(options.max_nodes_per_move);
  builder.Add(options.as_scheduled);
  builder.Add(options.least_spot_groups);
  builder.Add(options.by_priority);
  return builder.Finish();
}

// Returns a fingerprint of what decides, beside ages and the time, what a plan is.
uint64_t FingerprintOfQuestion(const ConsolidationProblem& problem, const ConsolidationOptions& options) {
  FingerprintBuilder builder;
  builder.Add(std::bit_cast<int64_t>(FingerprintOf(problem, options)));
  builder.Add(std::bit_cast<int64_t>(problem.cluster->fingerprint()));
  for (const NodeGroup& group : problem.groups) builder.Add(group.target);
  for (const ConsolidationNode& node : problem.nodes) {
    builder.Add(static_cast<int32_t>(node.slot));
    builder.Add(node.group.has_value() ? static_cast<int32_t>(*node.group) : -1);
    builder.Add(std::bit_cast<int64_t>(node.usd_per_hour.value_or(-1)));
    builder.Add(node.may_go);
    builder.Add(node.takes_pods);
    builder.Add(node.started);
    for (const LeavingPod& pod : node.pods) {
      builder.Add(pod.position * 2 + pod.placeholder);
      builder.Add(pod.budget);
      builder.Add(std::bit_cast<int64_t>(pod.usd));
    }
  }
  for (const int64_t budget : problem.budgets) builder.Add(budget);
  for (const KeptRoom& room : problem.placeholders) builder.Add(room.name);
  builder.Add(problem.max_nodes.value_or(-1));
  return builder.Finish();
}

ConsolidationBill BillOf(const ConsolidationProblem& problem, const CostBound& bound) {
  ConsolidationBill bill;
  for (const ConsolidationNode& node : problem.nodes) {
    if (!node.usd_per_hour.has_value()) {
      if (node.kind == NodeKind::kMachine) ++bill.unpriced_nodes;
      continue;
    }
    bill.now += *node.usd_per_hour;
    if (!node.may_go || !node.group.has_value()) bill.fixed += *node.usd_per_hour;
  }
  bill.proven = bound.proven;
  // The pods hold what they hold now: the bound is never above that.
  bill.bound = std::min(bill.now, bill.fixed + bound.usd);
  bill.reachable = bill.now;
  return bill;
}

std::vector<std::pair<std::string, double>> WorthByNamespace(const TrialCluster& trial_cluster) {
  std::map<std::string, double> sums;
  for (const MoverKind& kind : trial_cluster.kinds()) {
    sums[trial_cluster.snapshot().pod_shape(kind.shape).namespace_name] +=
        kind.worth * static_cast<double>(kind.count);
  }
  return {sums.begin(), sums.end()};
}

KeptNode KeptNodeOf(const TrialCluster& trial_cluster, const Search& search, NodeIndex node,
                    const std::set<Slot>& takes) {
  const TrialNode& known = trial_cluster.node(node);
  KeptNode kept;
  kept.slot = trial_cluster.snapshot().slot(node);
  kept.usd_per_hour = known.usd;
  kept.worth = trial_cluster.WorthOf(node);
  if (!known.may_go) {
    kept.worth = 0;
    return kept;
  }
  kept.reason = KeepReason::kModeOff;
  if (trial_cluster.options().mode == ConsolidationMode::kOff) return kept;
  kept.reason = takes.contains(kept.slot) ? KeepReason::kTakesPods
                                          : search.ReasonOf(node).value_or(KeepReason::kNotTried);
  if (kept.reason == KeepReason::kTakesPods && !takes.contains(kept.slot))
    kept.reason = KeepReason::kNoCheaperPlace;
  if (kept.reason == KeepReason::kNoCheaperPlace &&
      absl::c_any_of(trial_cluster.problem().nodes[static_cast<size_t>(*known.problem)].pods,
                     [](const LeavingPod& pod) { return pod.placeholder; })) {
    kept.reason = KeepReason::kKeepsRoom;
  }
  return kept;
}

}  // namespace

absl::string_view Name(KeepReason reason) {
  switch (reason) {
    case KeepReason::kFixed:
      return "Fixed";
    case KeepReason::kWorthItsPrice:
      return "WorthItsPrice";
    case KeepReason::kNoCheaperPlace:
      return "NoCheaperPlace";
    case KeepReason::kKeepsRoom:
      return "PlaceholdersNeedRoom";  // as drains name it
    case KeepReason::kSavesTooLittle:
      return "SavesTooLittle";
    case KeepReason::kGroupAtMinimum:
      return "NodeGroupMinSizeReached";
    case KeepReason::kClusterAtMinimum:
      return "MinimalResourceLimitExceeded";
    case KeepReason::kTakesPods:
      return "TakesPods";
    case KeepReason::kNotTried:
      return "NotTried";
    case KeepReason::kModeOff:
      return "Off";
    case KeepReason::kTooFewSpotGroups:
      return "TooFewSpotGroups";
  }
  return "invalid reason";
}

std::string AdviceOf(KeepReason reason, const ConsolidationOptions& options) {
  switch (reason) {
    case KeepReason::kFixed:
    case KeepReason::kTakesPods:
      return "";
    case KeepReason::kWorthItsPrice:
      return "Its pods would cost as much on any other nodes. Lower their requests, or add a group with "
             "cheaper nodes.";
    case KeepReason::kNoCheaperPlace:
      return "No cheaper nodes within the limits take its pods together with those of others. Raise the "
             "maximum of a group, loosen the rules that keep its pods apart, or lower their requests.";
    case KeepReason::kKeepsRoom:
      return "It keeps room for waiting pods or as slack, and no cheaper nodes within the limits have that "
             "room. Wait until these pods are placed, or keep less slack.";
    case KeepReason::kSavesTooLittle:
      return absl::StrFormat(
          "A cheaper arrangement saves less than asked for: %g USD per hour, %g %% of what its nodes cost, "
          "and within %g hours what it costs to disturb its pods. Lower the least saving, or the price of a "
          "disturbed pod.",
          options.least_saving_usd_per_hour, options.least_saving_percent, options.payback_hours);
    case KeepReason::kGroupAtMinimum:
      return "Lower the minimum of its group.";
    case KeepReason::kClusterAtMinimum:
      return "Lower the minimum of cores, memory, GPUs or nodes of the cluster.";
    case KeepReason::kNotTried:
      return "Allow more work or time: the next call goes on here.";
    case KeepReason::kModeOff:
      return "Consolidation is off.";
    case KeepReason::kTooFewSpotGroups:
      return absl::StrCat(
          "Cheaper spot nodes would take its pods, but spot nodes come in the place of spot nodes only where "
          "at least ",
          options.least_spot_groups,
          options.least_spot_groups == 1 ? " spot group costs" : " spot groups cost",
          " less than those that go. Add spot groups, or lower --least-spot-groups.");
  }
  return "";
}

bool Consolidator::Due(const ConsolidationProblem& problem, const ConsolidationOptions& options) const {
  return !next_s_.has_value() || problem.now_s >= *next_s_ ||
         FingerprintOfQuestion(problem, options) != asked_;
}

ConsolidationPlan Consolidator::Plan(Snapshot* snapshot, const ConsolidationProblem& problem,
                                     const ConsolidationOptions& options, WorkBudget* budget) {
  const uint64_t groups = FingerprintOf(problem, options);
  if (groups != groups_) tried_.clear();
  groups_ = groups;
  planned_s_ = problem.now_s;
  ConsolidationPlan plan;
  const ScopedFork whole(snapshot);
  TrialCluster trial_cluster(snapshot, problem, options, budget);
  std::vector<NodeIndex> order;
  for (const NodeIndex node : trial_cluster.nodes().indices()) order.push_back(node);
  trial_cluster.room().SetOrder(order);
  CostBound bound = BoundCost(&trial_cluster, budget);
  plan.bill = BillOf(problem, bound);
  std::vector<double> prices;
  for (const ShadowPrice& price : bound.shadow_prices) prices.push_back(price.usd);
  trial_cluster.SetPrices(std::move(prices));
  plan.shadow_prices = std::move(bound.shadow_prices);
  plan.namespaces = WorthByNamespace(trial_cluster);
  Search search(&trial_cluster, &tried_);
  std::vector<MadeMove> made;
  {
    const ScopedFork tried(snapshot);
    made = search.Run();
  }
  // The reasons why nodes stay are those of the cluster as it is, with the worth of its pods.
  plan.moves = OrderMoves(&trial_cluster, made);
  std::set<Slot> removed, takes;
  for (const ConsolidationMove& move : plan.moves) {
    plan.bill.reachable -= move.saves;
    removed.insert(move.remove.begin(), move.remove.end());
    for (const PodTransfer& pod : move.pods) {
      if (!pod.to.is_new()) takes.insert(pod.to.slot);
    }
  }
  plan.bill.reachable =
      std::max(0.0, plan.bill.reachable);  // sums in another order differ in the last digits
  std::set<NodeIndex> given_up;
  for (const MadeMove& move : made) given_up.insert(move.removed.begin(), move.removed.end());
  for (const NodeIndex node : IndexRange<NodeIndex>(static_cast<size_t>(snapshot->node_end()))) {
    if (!snapshot->Contains(node) || !trial_cluster.node(node).problem.has_value() ||
        removed.contains(snapshot->slot(node)))
      continue;
    plan.keep.push_back(KeptNodeOf(trial_cluster, search, node, takes));
    // It was replaced by an equal node until that turned out to be of no use.
    if (plan.keep.back().reason == KeepReason::kNotTried && given_up.contains(node) && !budget->ended())
      plan.keep.back().reason = KeepReason::kNoCheaperPlace;
  }
  std::sort(plan.keep.begin(), plan.keep.end(), [&](const KeptNode& a, const KeptNode& b) {
    return problem.cluster->name(a.slot) < problem.cluster->name(b.slot);
  });
  plan.cut_short_by = budget->end();
  asked_ = FingerprintOfQuestion(problem, options);
  bill_ = plan.bill;
  const bool again = budget->ended() || !plan.moves.empty();
  next_s_ = problem.now_s + (again ? 0 : options.retry_s);
  for (const auto& [name, tried] : tried_) next_s_ = std::min(*next_s_, tried.until_s);
  return plan;
}

}  // namespace loadline
