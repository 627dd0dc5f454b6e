#include "core/loop/swap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/loop/loop_resources.h"

namespace loadline {
namespace {

constexpr double kForSwap = 0.5;  // the part of the rest of the budget; chosen as the parts of plan_loop.cc

using NodeCounts = StrongVector<GroupIndex, int64_t>;

double CostOf(const LoopProblem& problem, const NodeCounts& nodes) {
  double cost = 0;
  for (const GroupIndex group : nodes.indices()) {
    cost += UsdOf(problem.groups[group]) * static_cast<double>(nodes[group]);
  }
  return cost;
}

NodeCounts GrownForPods(const LoopProblem& problem, const LoopPlan& plan) {
  NodeCounts grown(problem.groups.size(), 0);
  for (const LoopGrowth& growth : plan.growth) grown[growth.group] = growth.for_pods;
  return grown;
}

// Returns the nodes that might be given up: those that are used beyond those that the provider has begun to
// make, and those that the plan takes back already.
NodeCounts MayBeGivenUp(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
                        const GroupRooms& rooms) {
  NodeCounts nodes(problem.groups.size(), 0);
  for (const GroupIndex group : nodes.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (of.atomic || of.sized || !of.blocked_reason.empty() || !of.model.has_value() ||
        !of.usd_per_hour.has_value()) {
      continue;
    }
    const int64_t left = NotBegunLeft(problem, plan, group);
    const int64_t begun = std::max<int64_t>(0, counts[group].upcoming - left);
    const int64_t above_minimum =
        counts[group].registered + counts[group].upcoming - (of.not_begun - left) - of.min_nodes;
    nodes[group] = std::max<int64_t>(0, std::min(rooms.used[group] - begun, above_minimum));
  }
  return nodes;
}

// Growth planned again without these nodes on their way.
struct Attempt {
  LoopPlan plan;
  GroupRooms rooms;
};

class Swap {
 public:
  Swap(const LoopProblem& problem, const CountsOfGroups& counts, Snapshot* snapshot, WorkBudget* budget,
       const LoopPlan& plan)
      : problem_(problem), counts_(counts), snapshot_(*snapshot), budget_(budget), plan_(plan) {}

  Attempt PlanWithout(const NodeCounts& given_up) const { return Plan(counts_, given_up, plan_.waiting); }

  // Returns whether growth has chosen the last node of the group with further pods in mind: for the pods that
  // are expected on nodes of the group alone, and find no room on the others of these, it would look ahead
  // again: the node costs more than one for them alone, and no more than the one that it would choose.
  bool IsForFurtherPods(GroupIndex group) const {
    CountsOfGroups counts = counts_;
    for (const GroupIndex other : counts.indices()) {
      if (other != group) counts[other].registered += std::exchange(counts[other].upcoming, 0);
    }
    std::vector<PendingPods> waiting = plan_.waiting;
    for (PendingPods& pods : waiting) pods.count = 0;
    for (const ExpectedPlace& place : plan_.expected) {
      if (place.group == group) waiting[static_cast<size_t>(place.pods)].count += place.count;
    }
    NodeCounts given_up(counts.size(), 0);
    given_up[group] = 1;
    const Attempt alone = Plan(std::move(counts), given_up, std::move(waiting));
    const ScaleUpPlan& plan = alone.plan.scale_up;
    const double usd = CostOf(problem_, given_up);
    return plan.cut_short || (plan.cost_alone.has_value() && *plan.cost_alone < usd && usd <= plan.cost);
  }

  // Returns whether the attempt, with what it gives up, replaces the plan.
  bool IsBetter(const NodeCounts& given_up, const Attempt& attempt) const {
    if (budget_->ended() || attempt.plan.scale_up.cut_short || !attempt.rooms.complete) return false;
    const std::vector<int64_t>& left_over = plan_.scale_up.unplaced;
    const std::vector<int64_t>& left_then = attempt.plan.scale_up.unplaced;
    for (size_t pods = 0; pods < left_then.size(); ++pods) {
      if (left_then[pods] > (pods < left_over.size() ? left_over[pods] : 0)) return false;
    }
    const double before = CostOf(problem_, GrownForPods(problem_, plan_)) + CostOf(problem_, given_up);
    const double saved = before - CostOf(problem_, GrownForPods(problem_, attempt.plan));
    return saved >= std::max(kLeastSavedUsd, kLeastSavedShare * before) && FitsBeside(attempt.plan);
  }

 private:
  Attempt Plan(CountsOfGroups counts, const NodeCounts& given_up, std::vector<PendingPods> waiting) const {
    Attempt attempt;
    for (const GroupIndex group : counts.indices()) {
      counts[group].upcoming -= given_up[group];
      attempt.plan.given_up += given_up[group];
    }
    attempt.plan.waiting = std::move(waiting);
    attempt.plan.sizes = plan_.sizes;
    attempt.plan.room = RoomOfCluster(problem_, counts);
    for (const LoopGrowth& growth : plan_.growth) {
      LoopGrowth others = growth;
      others.for_pods = 0;
      if (others.nodes() > 0) attempt.plan.growth.push_back(others);
    }
    attempt.rooms = GrowForPods(problem_, counts, &snapshot_, budget_, &attempt.plan);
    return attempt;
  }

  // Returns whether all that the attempt grows by is within the limits beside what was asked for.
  bool FitsBeside(const LoopPlan& attempt) const {
    LoopPlan others;
    others.room = plan_.room;
    for (const LoopGrowth& growth : attempt.growth) {
      LoopGrowth kept = growth;
      kept.for_pods = 0;
      if (kept.nodes() > 0) others.growth.push_back(kept);
    }
    NodesOfGroups grown;
    int64_t nodes = 0;
    for (const LoopGrowth& growth : attempt.growth) {
      if (growth.for_pods == 0) continue;
      const GroupCounts& there = counts_[growth.group];
      const int64_t most = problem_.groups[growth.group].max_nodes;
      if (there.registered + there.upcoming + growth.for_pods > most) return false;
      grown[growth.group] = growth.for_pods;
      nodes += growth.for_pods;
    }
    const NodeLimit left = NewNodesLeft(problem_, others);
    return nodes <= left.value_or(nodes) && PermitsTogether(problem_, others, grown);
  }

  const LoopProblem& problem_;
  const CountsOfGroups& counts_;
  Snapshot& snapshot_;
  WorkBudget* budget_;
  const LoopPlan& plan_;
};

}  // namespace

void SwapForLess(const LoopProblem& problem, const CountsOfGroups& counts, Snapshot* snapshot,
                 WorkBudget* budget, LoopPlan* plan, GroupRooms* rooms) {
  const bool grows = !plan->batch_wait_ms.has_value() && !plan->scale_up.nodes.empty();
  if (!grows || problem.ranking.has_value() || plan->scale_up.cut_short || !rooms->complete) return;
  NodeCounts given_up = MayBeGivenUp(problem, counts, *plan, *rooms);
  const auto none = [&] {
    return std::all_of(given_up.begin(), given_up.end(), [](int64_t nodes) { return nodes == 0; });
  };
  if (none()) return;
  const WorkPhase phase(budget, kForSwap);
  const Swap swap(problem, counts, snapshot, budget, *plan);
  for (const GroupIndex group : given_up.indices()) {
    if (given_up[group] > 0 && problem.looks_ahead && swap.IsForFurtherPods(group)) given_up[group] = 0;
  }
  if (none()) return;
  const Attempt anew = swap.PlanWithout(given_up);
  // Nodes that it would ask for again are not given up.
  const NodeCounts again = GrownForPods(problem, anew.plan);
  bool any = false;
  for (const GroupIndex group : given_up.indices()) {
    given_up[group] = std::max<int64_t>(0, given_up[group] - again[group]);
    any = any || given_up[group] > 0;
  }
  if (!any || anew.plan.scale_up.cut_short) return;
  Attempt attempt = swap.PlanWithout(given_up);
  if (!swap.IsBetter(given_up, attempt)) return;
  TakeGrowth(std::move(attempt.plan), plan);
  for (const GroupIndex group : given_up.indices()) {
    TakeBackNodes(problem, group, given_up[group], plan);
  }
  *rooms = std::move(attempt.rooms);
}

}  // namespace loadline
