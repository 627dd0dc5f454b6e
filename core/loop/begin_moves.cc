// Looks for moves, and begins with those that may be carried out now.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "core/drain/being_deleted.h"
#include "core/drain/node_budget.h"
#include "core/loop/consolidation_question.h"
#include "core/loop/load_rest.h"
#include "core/loop/move_objects.h"
#include "core/loop/replacement.h"

namespace loadline {
namespace {

bool AtRest(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan) {
  if (!plan.replacement.moves.empty() || !plan.growth.empty() || plan.batch_wait_ms.has_value()) return false;
  if (!plan.take_back.empty() || !problem.drain.doubt.empty() || !problem.drain.unhealthy.empty())
    return false;
  const bool come =
      std::any_of(counts.begin(), counts.end(), [](const GroupCounts& group) { return group.upcoming > 0; });
  return !come && NodesBeingDeleted(*problem.drain.cluster, problem.deleting, problem.drain.now_s).empty();
}

// Returns the nodes that the node budgets of groups let moves remove. No node is leaving when moves begin,
// see AtRest(), so none is taken off.
NodeAllowance AllowanceOf(const DrainProblem& drain, const DeletionOptions& options) {
  StrongVector<GroupIndex, int64_t> nodes(drain.groups.size(), 0);
  for (const auto [slot, group] : drain.group_of) {
    if (drain.cluster->Occupied(slot)) ++nodes[group];
  }
  return NodeAllowance(options.budgets, drain.groups, nodes, drain.now_s);
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

// Keeps nodes that rest, that have room for nominated pods, or whose group's budget allows no replacement
// now: they stay, and so do their pods.
void KeepNodes(const LoopProblem& problem, const LoopPlan& plan, const NodeAllowance& allowance,
               ConsolidationProblem* question) {
  for (ConsolidationNode& node : question->nodes) {
    const uint64_t key = KeyOfNode(*problem.drain.cluster, node.slot);
    const bool held = std::find(plan.reserved_nodes.begin(), plan.reserved_nodes.end(), node.slot) !=
                          plan.reserved_nodes.end() ||
                      allowance.Left(node.group, RemovalReason::kReplaced) == 0;
    if (!held && !Rests(problem.replacement, plan.replacement, key)) continue;
    node.may_go = false;
    std::erase_if(node.pods, [](const LeavingPod& pod) { return !pod.placeholder; });
  }
}

class MoveBeginner {
 public:
  MoveBeginner(const LoopProblem& problem, const CountsOfGroups& counts, NodeAllowance allowance,
               LoopPlan* plan)
      : problem_(problem),
        cluster_(*problem.drain.cluster),
        counts_(counts),
        allowance_(std::move(allowance)),
        plan_(*plan) {}

  void Begin(const ConsolidationMove& move) {
    MoveUnderWay next = UnderWay(move);
    if (!WithinLimits(move, next)) return;
    for (const GroupGrowthCount& add : move.add) GrowthOf(add.group, &plan_).for_replacement += add.nodes;
    for (const Slot slot : move.remove)
      allowance_.Take(problem_.drain.group_of[slot], RemovalReason::kReplaced);
    nodes_ += static_cast<int64_t>(move.remove.size());
    pods_ += move.disrupted;
    remembered_ += SizeOf(next);
    plan_.replacement.begun.push_back(move);
    plan_.replacement.moves.push_back(std::move(next));
  }

 private:
  static size_t SizeOf(const MoveUnderWay& move) {
    return move.came.size() + move.onto.size() + move.remove.size();
  }

  bool IsAllowed(const ConsolidationMove& move) const {
    NodeAllowance after = allowance_;
    for (const Slot slot : move.remove) {
      if (after.Left(problem_.drain.group_of[slot], RemovalReason::kReplaced) == 0) return false;
      after.Take(problem_.drain.group_of[slot], RemovalReason::kReplaced);
    }
    return true;
  }

  bool WithinLimits(const ConsolidationMove& move, const MoveUnderWay& next) const {
    const ConsolidationOptions& options = problem_.replacement.options;
    if (nodes_ + static_cast<int64_t>(move.remove.size()) > options.max_nodes_at_once) return false;
    if (pods_ + move.disrupted > options.max_pods_at_once) return false;
    if (!IsAllowed(move)) return false;
    if (plan_.replacement.moves.size() >= kMostMoves || next.places.size() > kMostPodsOfMoves) return false;
    if (remembered_ + SizeOf(next) > kMostNodesOfMoves) return false;
    LoopPlan with;
    with.room = plan_.room;
    with.growth = plan_.growth;
    for (const GroupGrowthCount& add : move.add) {
      const bool may_add = MayAdd(problem_, counts_, with, add.group) >= add.nodes;
      if (problem_.groups[add.group].atomic || !may_add) return false;
      GrowthOf(add.group, &with).for_replacement += add.nodes;
    }
    return true;
  }

  MoveUnderWay UnderWay(const ConsolidationMove& move) const {
    MoveUnderWay next;
    next.phase = move.add.empty() ? MoveUnderWay::Phase::kDraining : MoveUnderWay::Phase::kOrdered;
    next.at_ms = next.ordered_ms = problem_.replacement.now_ms;
    std::vector<int64_t> first;  // by addition: position of its first node in `came`
    for (const GroupGrowthCount& add : move.add) {
      next.orders.push_back({problem_.groups[add.group].name, add.nodes});
      first.push_back(static_cast<int64_t>(next.came.size()));
      next.came.resize(next.came.size() + static_cast<size_t>(add.nodes), 0);
    }
    for (const Slot slot : move.remove) next.remove.push_back(KeyOfNode(cluster_, slot));
    for (const PodTransfer& pod : move.pods) {
      if (pod.placeholder) continue;  // slack finds another place for it
      next.places.push_back({KeyOfPod(cluster_, pod.from, static_cast<size_t>(pod.position)),
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
    const uint64_t key = KeyOfNode(cluster_, to.slot);
    const auto known = std::find(next->onto.begin(), next->onto.end(), key);
    const int64_t at = static_cast<int64_t>(next->came.size()) + (known - next->onto.begin());
    if (known == next->onto.end()) next->onto.push_back(key);
    return at;
  }

  const LoopProblem& problem_;
  const ClusterState& cluster_;
  const CountsOfGroups& counts_;
  NodeAllowance allowance_;
  LoopPlan& plan_;
  int64_t nodes_ = 0, pods_ = 0;
  size_t remembered_ = 0;
};

// Returns whether growth prefers groups of a higher priority whatever others cost.
bool GrowsByPriority(const LoopProblem& problem) {
  return !problem.ranking.has_value() ||
         problem.ranking->policy.strategies.front() == RankStrategy::kPriority;
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
  options.by_priority = GrowsByPriority(problem);
  return options;
}

}  // namespace

void BeginMoves(const LoopProblem& problem, const CountsOfGroups& counts, const DrainProblem& drain,
                Consolidator* consolidator, Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan) {
  const LoopDecisions& decisions = problem.decisions;
  if (!decisions.replace || !decisions.scale_up || !decisions.scale_down) return;
  if (problem.replacement.options.mode == ConsolidationMode::kOff) return;
  if (!AtRest(problem, counts, *plan) || !Contain(problem.replacement.windows, problem.drain.now_s)) return;
  ConsolidationQuestion question =
      PrepareConsolidation(drain, problem.scale_down, problem.groups, problem.replacement.prices);
  SetAges(&question.problem);
  const NodeAllowance allowance = AllowanceOf(drain, problem.scale_down.deletion);
  KeepNodes(problem, *plan, allowance, &question.problem);
  question.problem.daemons = problem.daemons;
  if (const NodeLimit most = NewNodesLeft(problem, *plan))
    question.problem.max_nodes = problem.drain.cluster->node_count() + *most;
  const ConsolidationOptions options =
      OptionsOf(problem, drain, allowance, plan->replacement.saving_lasts_hours);
  if (!consolidator->Due(question.problem, options)) {
    plan->replacement.bill = consolidator->bill();
    return;
  }
  const ConsolidationPlan found = consolidator->Plan(snapshot, question.problem, options, budget);
  plan->replacement.bill = found.bill;
  plan->replacement.continues = found.cut_short_by != BudgetEnd::kNotEnded;
  MoveBeginner beginner(problem, counts, allowance, plan);
  for (const ConsolidationMove& move : found.moves) {
    if (move.wave == 0) beginner.Begin(move);
  }
}

}  // namespace loadline
