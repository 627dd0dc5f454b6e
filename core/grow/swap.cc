#include "core/grow/swap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace loadline {
namespace {

constexpr double kForSwap = 0.5;  // the part of the rest of the budget; chosen as the parts of plan_loop.cc

using NodeCounts = StrongVector<GroupIndex, int64_t>;

double CostOf(NodeGroupSpan groups, const NodeCounts& nodes) {
  double cost = 0;
  for (const GroupIndex group : nodes.indices())
    cost += UsdOf(groups[group]) * static_cast<double>(nodes[group]);
  return cost;
}

NodeCounts GrownForPods(const GrowthLedger& ledger) {
  NodeCounts grown(ledger.counts.size(), 0);
  for (const LoopGrowth& growth : ledger.growth) grown[growth.group] = growth.for_pods;
  return grown;
}

// Returns the nodes that might be given up: those that are used beyond those that the provider has begun to
// make, and those that the plan takes back already.
NodeCounts MayBeGivenUp(const GrowthLedger& ledger, const GroupRooms& rooms) {
  NodeCounts nodes(ledger.counts.size(), 0);
  for (const GroupIndex group : nodes.indices()) {
    const NodeGroup& of = ledger.facts->groups[group];
    if (of.atomic || of.sized || !of.blocked_reason.empty() || !of.model.has_value() ||
        !of.usd_per_hour.has_value()) {
      continue;
    }
    const int64_t left = ledger.NotBegunLeft(group);
    const int64_t begun = std::max<int64_t>(0, ledger.counts[group].upcoming - left);
    const int64_t above_minimum = ledger.NodesOf(group) - (of.not_begun - left) - of.min_nodes;
    nodes[group] = std::max<int64_t>(0, std::min(rooms.used[group] - begun, above_minimum));
  }
  return nodes;
}

// Growth planned again without these nodes on their way.
struct Attempt {
  WaitingPodsPlan plan;
  GrowthLedger ledger;
  GroupRooms rooms;
};

class Swap {
 public:
  Swap(const GrowthQuestion& question, const GrowthLedger& ledger, const WaitingPodsPlan& plan)
      : question_(question), ledger_(ledger), groups_(ledger.facts->groups), plan_(plan) {}

  Attempt PlanWithout(const NodeCounts& given_up) const {
    return Plan(ledger_.counts, given_up, question_.waiting);
  }

  // Returns whether growth has chosen the last node of the group with further pods in mind: for the pods that
  // are expected on nodes of the group alone, and find no room on the others of these, it would look ahead
  // again: the node costs more than one for them alone, and no more than the one that it would choose.
  bool IsForFurtherPods(GroupIndex group) const {
    CountsOfGroups counts = ledger_.counts;
    for (const GroupIndex other : counts.indices()) {
      if (other != group) counts[other].registered += std::exchange(counts[other].upcoming, 0);
    }
    std::vector<PendingPods> waiting = question_.waiting;
    for (PendingPods& pods : waiting) pods.count = 0;
    for (const ExpectedPlace& place : plan_.expected) {
      if (place.group == group) waiting[static_cast<size_t>(place.pods)].count += place.count;
    }
    NodeCounts given_up(counts.size(), 0);
    given_up[group] = 1;
    const Attempt alone = Plan(std::move(counts), given_up, waiting);
    const ScaleUpPlan& plan = alone.plan.scale_up;
    const double usd = CostOf(groups_, given_up);
    return plan.cut_short || (plan.cost_alone.has_value() && *plan.cost_alone < usd && usd <= plan.cost);
  }

  // Returns whether the attempt, with what it gives up, replaces the plan.
  bool IsBetter(const NodeCounts& given_up, const Attempt& attempt) const {
    if (question_.budget->ended() || attempt.plan.scale_up.cut_short || !attempt.rooms.complete) return false;
    const std::vector<int64_t>& left_over = plan_.scale_up.unplaced;
    const std::vector<int64_t>& left_then = attempt.plan.scale_up.unplaced;
    for (size_t pods = 0; pods < left_then.size(); ++pods) {
      if (left_then[pods] > (pods < left_over.size() ? left_over[pods] : 0)) return false;
    }
    const double before = CostOf(groups_, GrownForPods(ledger_)) + CostOf(groups_, given_up);
    const double saved = before - CostOf(groups_, GrownForPods(attempt.ledger));
    return saved >= std::max(kLeastSavedUsd, kLeastSavedShare * before) && FitsBeside(attempt.ledger);
  }

 private:
  Attempt Plan(CountsOfGroups counts, const NodeCounts& given_up,
               const std::vector<PendingPods>& waiting) const {
    Attempt attempt{{}, ledger_, {}};
    GrowthLedger& ledger = attempt.ledger;
    ledger.counts = std::move(counts);
    for (const GroupIndex group : given_up.indices()) {
      ledger.counts[group].upcoming -= given_up[group];
      ledger.given_up += given_up[group];
    }
    ledger.MeasureRoom();
    ledger.ForgetPods();
    const GrowthQuestion question{question_.problem, waiting, question_.untainted, question_.snapshot,
                                  question_.budget};
    attempt.rooms = GrowForPods(question, &ledger, &attempt.plan);
    return attempt;
  }

  // Returns whether all that the attempt grows by is within the limits beside what was asked for.
  bool FitsBeside(const GrowthLedger& attempt) const {
    GrowthLedger others = ledger_;
    others.ForgetPods();
    NodesOfGroups grown;
    int64_t nodes = 0;
    for (const LoopGrowth& growth : attempt.growth) {
      if (growth.for_pods == 0) continue;
      if (ledger_.NodesOf(growth.group) + growth.for_pods > groups_[growth.group].max_nodes) return false;
      grown[growth.group] = growth.for_pods;
      nodes += growth.for_pods;
    }
    return nodes <= others.NewNodesLeft().value_or(nodes) && others.Permits(grown);
  }

  const GrowthQuestion& question_;
  const GrowthLedger& ledger_;
  const NodeGroupSpan groups_;
  const WaitingPodsPlan& plan_;
};

}  // namespace

void SwapForLess(const GrowthQuestion& question, GrowthLedger* ledger, WaitingPodsPlan* plan,
                 GroupRooms* rooms) {
  if (plan->scale_up.nodes.empty() || question.problem.ranking.has_value()) return;
  if (plan->scale_up.cut_short || !rooms->complete) return;
  NodeCounts given_up = MayBeGivenUp(*ledger, *rooms);
  const auto none = [&] {
    return std::all_of(given_up.begin(), given_up.end(), [](int64_t nodes) { return nodes == 0; });
  };
  if (none()) return;
  const WorkPhase phase(question.budget, kForSwap);
  const Swap swap(question, *ledger, *plan);
  for (const GroupIndex group : given_up.indices()) {
    if (given_up[group] > 0 && question.problem.looks_ahead && swap.IsForFurtherPods(group))
      given_up[group] = 0;
  }
  if (none()) return;
  const Attempt anew = swap.PlanWithout(given_up);
  // Nodes that it would ask for again are not given up.
  const NodeCounts again = GrownForPods(anew.ledger);
  for (const GroupIndex group : given_up.indices())
    given_up[group] = std::max<int64_t>(0, given_up[group] - again[group]);
  if (none() || anew.plan.scale_up.cut_short) return;
  Attempt attempt = swap.PlanWithout(given_up);
  if (!swap.IsBetter(given_up, attempt)) return;
  *plan = std::move(attempt.plan);
  ledger->growth = std::move(attempt.ledger.growth);
  for (const GroupIndex group : given_up.indices()) ledger->TakeBackNodes(group, given_up[group]);
  *rooms = std::move(attempt.rooms);
}

}  // namespace loadline
