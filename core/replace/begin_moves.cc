// Looks for moves, and begins with those that may be carried out now.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/drain/node_budget.h"
#include "core/observe/move_objects.h"
#include "core/replace/busy.h"
#include "core/replace/consolidation_question.h"
#include "core/replace/load_rest.h"
#include "core/replace/replacement.h"

namespace loadline {
namespace {

// The part of the rest of the budget; chosen as the parts of plan_loop.cc.
constexpr double kForMoves = 0.5;
// In a busy cluster each loop has another question. Chosen: a search in each minute takes little of the time.
constexpr int64_t kSecondsBetweenBusySearches = 60;

// Returns whether moves may begin as far as the whole cluster decides: one wave is carried out at a time, and
// the state of the cluster is known.
bool MayBegin(const LoopProblem& problem, const ReplacementPlan& plan) {
  const LoopDecisions& decisions = problem.decisions;
  if (!decisions.replace || !decisions.scale_up || !decisions.scale_down) return false;
  if (problem.replacement.options.mode == ConsolidationMode::kOff) return false;
  if (!plan.moves.empty()) return false;
  if (!problem.drain.doubt.empty() || !problem.drain.unhealthy.empty()) return false;
  return Contain(problem.replacement.windows, problem.drain.now_s);
}

// Returns the nodes that the node budgets of groups let moves remove, beside those that are being deleted.
NodeAllowance AllowanceOf(const DrainProblem& drain, const BusyObjects& busy,
                          const DeletionOptions& options) {
  StrongVector<GroupIndex, int64_t> nodes(drain.groups.size(), 0);
  const auto group_of = [&](Slot slot) {
    const std::optional<GroupIndex> group = drain.group_of[slot];
    return group.has_value() ? group : drain.going_group_of[slot];
  };
  for (int32_t i = 0; i < drain.cluster->slot_end(); ++i) {
    const std::optional<GroupIndex> group = group_of(Slot{i});
    if (group.has_value() && drain.cluster->Occupied(Slot{i})) ++nodes[*group];
  }
  NodeAllowance allowance(options.budgets, drain.groups, nodes, drain.now_s);
  for (const Slot slot : busy.leaving) allowance.Take(group_of(slot), RemovalReason::kReplaced);
  return allowance;
}

// Returns the least number of nodes that a budget allows, budgets that allow none apart. A move that removes
// more might never begin.
int64_t LeastLeft(const DrainProblem& drain, const NodeAllowance& allowance) {
  int64_t least = INT64_MAX;
  for (const GroupIndex group : drain.groups.indices()) {
    const int64_t left = allowance.Left(group, RemovalReason::kReplaced);
    if (left > 0) least = std::min(least, left);
  }
  return least;
}

bool Rests(const LoopReplacement& policy, const ReplacementPlan& plan, uint64_t node) {
  if (plan.resting_since_ms.contains(node)) return true;
  const auto given_up = plan.given_up.find(node);
  return given_up != plan.given_up.end() &&
         policy.now_ms - given_up->second.last_ms < RestAfter(policy, given_up->second);
}

// Keeps nodes that rest, that have room for nominated pods, whose group's budget allows no replacement now,
// or that are busy: they stay, and so do their pods. No pod moves to a busy node.
void KeepNodes(const LoopReplacement& policy, const LoopPlan& plan, const BusyObjects& busy,
               const NodeAllowance& allowance, ConsolidationProblem* question) {
  for (ConsolidationNode& node : question->nodes) {
    const uint64_t key = KeyOfNode(*question->cluster, node.slot);
    const bool leaves = busy.leaving.contains(node.slot);
    const bool is_busy =
        leaves || busy.expecting.contains(node.slot) || (node.group.has_value() && busy.groups[*node.group]);
    node.leaving = node.leaving || leaves;
    node.takes_pods = node.takes_pods && !is_busy;
    const bool kept = is_busy || absl::c_linear_search(plan.reserved_nodes, node.slot) ||
                      allowance.Left(node.group, RemovalReason::kReplaced) == 0;
    if (!kept && !Rests(policy, plan.replacement, key)) continue;
    node.may_go = false;
    std::erase_if(node.pods, [](const LeavingPod& pod) { return !pod.placeholder; });
  }
}

// Returns the groups as moves see them: those that are not at rest get no nodes.
NodeGroups GroupsForMoves(const NodeGroups& groups, const BusyObjects& busy) {
  NodeGroups for_moves = groups;
  for (const GroupIndex group : groups.indices()) {
    if (!busy.MayProvide(group)) for_moves[group].blocked_reason = "it is not at rest";
  }
  return for_moves;
}

class MoveBeginner {
 public:
  MoveBeginner(const LoopReplacement& policy, const DrainProblem& drain, NodeAllowance allowance,
               GrowthLedger* ledger, ReplacementPlan* plan)
      : policy_(policy),
        group_of_(drain.group_of),
        facts_(*ledger->facts),
        allowance_(std::move(allowance)),
        ledger_(*ledger),
        plan_(*plan) {}

  void Begin(const ConsolidationMove& move) {
    MoveUnderWay next = UnderWay(move);
    if (!WithinLimits(move, next)) return;
    for (const GroupGrowthCount& add : move.add) ledger_.Of(add.group).for_replacement += add.nodes;
    for (const Slot slot : move.remove) allowance_.Take(group_of_[slot], RemovalReason::kReplaced);
    nodes_ += static_cast<int64_t>(move.remove.size());
    pods_ += move.disrupted;
    remembered_ += SizeOf(next);
    plan_.begun.push_back(move);
    plan_.moves.push_back(std::move(next));
  }

 private:
  static size_t SizeOf(const MoveUnderWay& move) {
    return move.came.size() + move.onto.size() + move.remove.size();
  }

  bool IsAllowed(const ConsolidationMove& move) const {
    NodeAllowance after = allowance_;
    for (const Slot slot : move.remove) {
      if (after.Left(group_of_[slot], RemovalReason::kReplaced) == 0) return false;
      after.Take(group_of_[slot], RemovalReason::kReplaced);
    }
    return true;
  }

  bool WithinLimits(const ConsolidationMove& move, const MoveUnderWay& next) const {
    const ConsolidationOptions& options = policy_.options;
    if (nodes_ + static_cast<int64_t>(move.remove.size()) > options.max_nodes_at_once) return false;
    if (pods_ + move.disrupted > options.max_pods_at_once) return false;
    if (!IsAllowed(move)) return false;
    if (plan_.moves.size() >= kMostMoves || next.places.size() > kMostPodsOfMoves) return false;
    if (remembered_ + SizeOf(next) > kMostNodesOfMoves) return false;
    GrowthLedger with = ledger_;
    for (const GroupGrowthCount& add : move.add) {
      if (facts_.groups[add.group].atomic || with.MayAdd(add.group) < add.nodes) return false;
      with.Of(add.group).for_replacement += add.nodes;
    }
    return true;
  }

  MoveUnderWay UnderWay(const ConsolidationMove& move) const {
    MoveUnderWay next;
    next.phase = move.add.empty() ? MoveUnderWay::Phase::kDraining : MoveUnderWay::Phase::kOrdered;
    next.at_ms = next.step_ms = policy_.now_ms;
    std::vector<int64_t> first;  // by addition: position of its first node in `came`
    for (const GroupGrowthCount& add : move.add) {
      next.orders.push_back({facts_.groups[add.group].name, add.nodes});
      first.push_back(static_cast<int64_t>(next.came.size()));
      next.came.resize(next.came.size() + static_cast<size_t>(add.nodes), 0);
    }
    for (const Slot slot : move.remove) next.remove.push_back(KeyOfNode(facts_.cluster, slot));
    for (const PodTransfer& pod : move.pods) {
      if (pod.placeholder) continue;  // slack finds another place for it
      next.places.push_back({KeyOfPod(facts_.cluster, pod.from, static_cast<size_t>(pod.position)),
                             TargetOf(move, pod.to, first, &next)});
    }
    std::sort(next.places.begin(), next.places.end(),
              [](const auto& a, const auto& b) { return a.pod < b.pod; });
    return next;
  }

  int64_t TargetOf(const ConsolidationMove& move, const MoveTarget& to, const std::vector<int64_t>& first,
                   MoveUnderWay* next) const {
    for (size_t i = 0; to.is_new() && i < move.add.size(); ++i) {
      if (move.add[i].group == to.group) return first[i] + to.number - move.first_number[i];
    }
    const uint64_t key = KeyOfNode(facts_.cluster, to.slot);
    const auto known = std::find(next->onto.begin(), next->onto.end(), key);
    const int64_t at = static_cast<int64_t>(next->came.size()) + (known - next->onto.begin());
    if (known == next->onto.end()) next->onto.push_back(key);
    return at;
  }

  const LoopReplacement& policy_;
  const GroupsOfNodes& group_of_;
  const LoopFacts& facts_;
  NodeAllowance allowance_;
  GrowthLedger& ledger_;
  ReplacementPlan& plan_;
  int64_t nodes_ = 0, pods_ = 0;
  size_t remembered_ = 0;
};

// Returns whether growth prefers groups of a higher priority whatever others cost.
bool GrowsByPriority(const std::optional<LoopRanking>& ranking) {
  return !ranking.has_value() || ranking->policy.strategies.front() == RankStrategy::kPriority;
}

ConsolidationOptions OptionsOf(const LoopProblem& problem, const DrainProblem& drain,
                               const NodeAllowance& allowance, double saving_lasts_hours) {
  ConsolidationOptions options = problem.replacement.options;
  UseSavingLasts(saving_lasts_hours, &options);
  // Pods of nodes that go first must not move to those that have to wait for their turn.
  options.max_nodes_at_once =
      std::min(options.max_nodes_at_once, problem.scale_down.deletion.max_drain_parallelism);
  options.max_nodes_per_move =
      std::min({options.max_nodes_per_move, options.max_nodes_at_once, LeastLeft(drain, allowance)});
  options.surge_hours = static_cast<double>(problem.replacement.surge_ms) / 3'600'000;
  options.fit = problem.scale_down.fit;
  options.as_scheduled = true;
  options.by_priority = GrowsByPriority(problem.ranking);
  return options;
}

}  // namespace

void BeginMoves(const LoopProblem& problem, const DrainProblem& drain, Consolidator* consolidator,
                Snapshot* snapshot, WorkBudget* budget, GrowthLedger* ledger, LoopPlan* plan) {
  if (!MayBegin(problem, plan->replacement)) return;
  Consolidator anew;
  if (consolidator == nullptr) consolidator = &anew;
  const WorkPhase phase(budget, kForMoves);
  BusyObjects busy = FindBusyObjects(problem.drain, *ledger, *plan, *snapshot);
  // While the delay after growth or removals is renewed again and again, the drains of a move would never
  // begin.
  const bool waits =
      drain.nothing_leaves || consolidator->PlannedWithin(kSecondsBetweenBusySearches, problem.drain.now_s);
  if (busy.any() && waits) return;
  MarkWanted(problem, *plan, snapshot, budget, &busy);
  if (busy.any() && waits) return;
  const NodeGroups with_busy = busy.any() ? GroupsForMoves(problem.groups, busy) : NodeGroups();
  const NodeGroupSpan groups = busy.any() ? with_busy : problem.groups;
  ConsolidationQuestion question =
      PrepareConsolidation(drain, problem.scale_down, groups, problem.replacement.prices);
  SetAges(&question.problem);
  const NodeAllowance allowance = AllowanceOf(drain, busy, problem.scale_down.deletion);
  KeepNodes(problem.replacement, *plan, busy, allowance, &question.problem);
  question.problem.daemons = problem.daemons;
  if (const NodeLimit most = ledger->NewNodesLeft())
    question.problem.max_nodes = problem.drain.cluster->node_count() + *most;
  const ConsolidationOptions options =
      OptionsOf(problem, drain, allowance, plan->replacement.saving_lasts_hours);
  // The bill of a cluster that is not at rest would not say what moves reach.
  if (!consolidator->Due(question.problem, options)) {
    if (!busy.any()) plan->replacement.bill = consolidator->bill();
    return;
  }
  const ConsolidationPlan found = consolidator->Plan(snapshot, question.problem, options, budget);
  if (!busy.any()) plan->replacement.bill = found.bill;
  plan->replacement.continues = found.cut_short_by != BudgetEnd::kNotEnded;
  MoveBeginner beginner(problem.replacement, problem.drain, allowance, ledger, &plan->replacement);
  for (const ConsolidationMove& move : found.moves) {
    if (move.wave == 0) beginner.Begin(move);
  }
}

}  // namespace loadline
