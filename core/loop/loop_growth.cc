#include "core/loop/loop_growth.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/expand/look_ahead.h"
#include "core/expand/node_limits.h"
#include "core/loop/growth_attempt.h"
#include "core/loop/loop_resources.h"

namespace loadline {
namespace {

// The part of the rest of the budget for growth that further attempts may take. Chosen: the other half
// remains for the steps that follow.
constexpr double kForFurtherAttempts = 0.5;
// The shares of new nodes that stay free, tried one after the other while a scheduler would leave too many
// pods over. Chosen: small steps first, since free room is paid for; above a fifth, the pods are better left
// for a later node.
constexpr double kReserves[] = {0.02, 0.04, 0.07, 0.1, 0.15, 0.2};
// The share of the pods that may be left for later nodes: they cost less than room for all orders. Source:
// our own choice, with the loads of the race in the simulator.
constexpr int64_t kLeftForLaterPercent = 5;
constexpr double kRounding = 1e-9;  // US dollars per hour

int64_t CountWaiting(const LoopPlan& plan) {
  return std::accumulate(plan.waiting.begin(), plan.waiting.end(), int64_t{0},
                         [](int64_t sum, const PendingPods& pods) { return sum + pods.count; });
}

// Returns whether it may replace the other one: it keeps limits, and leaves no more pods over.
bool IsValid(const GrowthAttempt& attempt, const GrowthAttempt& other) {
  return attempt.within_limits && attempt.rooms.complete && !attempt.plan.scale_up.cut_short &&
         CountUnplaced(attempt.plan) <= CountUnplaced(other.plan);
}

// Returns the price of the dearest of the new nodes.
double DearestNode(const LoopProblem& problem, const LoopPlan& plan) {
  double usd = 0;
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    const GroupIndex group = plan.grown[nodes.group];
    usd = std::max(usd, UsdOf(problem.groups[group]));
  }
  return usd;
}

// Returns whether more room is worth its price: it costs no more than a node for each pod that would be left
// over.
bool IsWorthIt(const LoopProblem& problem, const GrowthAttempt& roomier, const GrowthAttempt& than) {
  const double more = roomier.plan.scale_up.cost - than.plan.scale_up.cost;
  const int64_t fewer = than.left_as_scheduled - roomier.left_as_scheduled;
  return fewer > 0 && more <= static_cast<double>(fewer) * DearestNode(problem, than.plan) + kRounding;
}

// Returns whether growth with further pods in mind leaves a tenth of each maximum of its groups. The last
// tenth is for pods that wait: whoever needs it next should not find it taken for pods that may never come.
// Chosen: a tenth of a cluster grows again within minutes, and further pods are as many as a few nodes take.
bool SparesMaxima(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan) {
  const ResourceRoom room = RoomLeft(problem, plan);
  return std::all_of(plan.growth.begin(), plan.growth.end(), [&](const LoopGrowth& growth) {
    if (growth.for_pods == 0) return true;
    const int64_t left = RoomOfGroup(problem, counts, plan, growth.group);
    return left * 10 >= problem.groups[growth.group].max_nodes &&
           room.LeavesTenth(OfferOfGroup(problem, growth.group), problem.maxima);
  });
}

}  // namespace

bool MayGrow(const LoopProblem& problem, GroupIndex group) {
  const NodeGroup& of = problem.groups[group];
  const bool chosen_with = of.usd_per_hour.has_value() || problem.ranking.has_value();
  return problem.decisions.scale_up && of.model.has_value() && chosen_with && of.blocked_reason.empty() &&
         !of.sized;
}

int64_t RoomOfGroup(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
                    GroupIndex group) {
  int64_t nodes = counts[group].registered + counts[group].upcoming;
  for (const LoopGrowth& growth : plan.growth) {
    // Nodes for the minimum are among the upcoming ones already.
    if (growth.group == group) nodes += growth.nodes() - growth.for_minimum;
  }
  return std::max<int64_t>(0, problem.groups[group].max_nodes - nodes);
}

LoopGrowth& GrowthOf(GroupIndex group, LoopPlan* plan) {
  const auto at = std::lower_bound(plan->growth.begin(), plan->growth.end(), group,
                                   [](const LoopGrowth& growth, GroupIndex g) { return growth.group < g; });
  if (at != plan->growth.end() && at->group == group) return *at;
  return *plan->growth.insert(at, {.group = group});
}

int64_t NotBegunLeft(const LoopProblem& problem, const LoopPlan& plan, GroupIndex group) {
  int64_t left = problem.groups[group].not_begun;
  for (const TakeBack& back : plan.take_back) {
    if (back.group == group) left -= back.nodes;
  }
  return std::max<int64_t>(0, left);
}

void TakeBackNodes(const LoopProblem& problem, GroupIndex group, int64_t nodes, LoopPlan* plan) {
  const int64_t taken = std::min(nodes, NotBegunLeft(problem, *plan, group));
  if (taken <= 0) return;
  for (TakeBack& back : plan->take_back) {
    if (back.group != group) continue;
    back.nodes += taken;
    return;
  }
  plan->take_back.push_back({group, taken});
}

CountsOfGroups CountNodes(const LoopProblem& problem) {
  CountsOfGroups counts(problem.groups.size());
  const ClusterState& cluster = *problem.drain.cluster;
  for (const auto [slot, group] : problem.drain.group_of) {
    if (cluster.Occupied(slot)) ++counts[group].registered;
  }
  for (const GroupIndex group : counts.indices()) {
    counts[group].upcoming = std::max<int64_t>(0, problem.groups[group].target - counts[group].registered);
  }
  return counts;
}

GroupRooms GrowForPods(const LoopProblem& problem, const CountsOfGroups& counts, Snapshot* snapshot,
                       WorkBudget* budget, LoopPlan* plan) {
  const auto attempt = [&](const GrowthWay& way) {
    return TryGrowth(problem, counts, *plan, way, snapshot, budget);
  };
  const FurtherPods further =
      problem.looks_ahead ? FurtherPodsOf(problem.drain.cluster->node_count()) : FurtherPods();
  GrowthAttempt best = attempt({.further = further});
  if (best.plan.scale_up.cost_alone.has_value() && !SparesMaxima(problem, counts, best.plan))
    best = attempt({});
  if (best.plan.scale_up.nodes.empty() || best.plan.scale_up.cut_short || problem.ranking.has_value()) {
    TakeGrowth(std::move(best.plan), plan);
    return std::move(best.rooms);
  }
  const WorkPhase phase(budget, kForFurtherAttempts);
  const bool comes =
      std::any_of(counts.begin(), counts.end(), [](const GroupCounts& count) { return count.upcoming > 0; });
  if (comes) {
    GrowthAttempt packed = attempt({.packs_upcoming = true});
    const ScaleUpPlan& known = best.plan.scale_up;
    if (IsValid(packed, best) && packed.plan.scale_up.cost < known.cost_alone.value_or(known.cost))
      best = std::move(packed);
  }
  for (const double reserve : kReserves) {
    if (best.left_as_scheduled <= CountWaiting(best.plan) * kLeftForLaterPercent / 100) break;
    GrowthAttempt roomier = attempt({best.way.packs_upcoming, reserve, best.way.further});
    if (!IsValid(roomier, best)) break;
    if (IsWorthIt(problem, roomier, best)) best = std::move(roomier);
  }
  TakeGrowth(std::move(best.plan), plan);
  return std::move(best.rooms);
}

void TakeGrowth(LoopPlan&& from, LoopPlan* plan) {
  plan->expected = std::move(from.expected);
  plan->scale_up = std::move(from.scale_up);
  plan->grown = std::move(from.grown);
  plan->ranked = std::move(from.ranked);
  plan->preferred_node = from.preferred_node;
  plan->growth = std::move(from.growth);
  plan->reserved_nodes = std::move(from.reserved_nodes);
  plan->next_reserved_nodes = std::move(from.next_reserved_nodes);
}

int64_t CountUnplaced(const LoopPlan& plan) {
  return std::accumulate(plan.scale_up.unplaced.begin(), plan.scale_up.unplaced.end(), int64_t{0});
}

NodeLimit NewNodesLeft(const LoopProblem& problem, const LoopPlan& plan) {
  int64_t added = -plan.given_up;
  for (const LoopGrowth& growth : plan.growth) added += growth.nodes();
  return LimitLeft(problem.growth.max_new_nodes, added);
}

int64_t MayAdd(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
               GroupIndex group) {
  return MayGrow(problem, group) ? NodesWithinLimits(problem, counts, plan, group) : 0;
}

int64_t NodesWithinLimits(const LoopProblem& problem, const CountsOfGroups& counts, const LoopPlan& plan,
                          GroupIndex group) {
  const int64_t room = RoomOfGroup(problem, counts, plan, group);
  const NodeLimit of_maximum = MostNodesOf(problem, RoomLeft(problem, plan), group);
  const int64_t left = SmallerLimit(NewNodesLeft(problem, plan), of_maximum).value_or(room);
  if (problem.groups[group].atomic && room > left) return 0;
  return std::min(left, room);
}

void GrowForSlack(const LoopProblem& problem, const CountsOfGroups& counts,
                  const StrongVector<SlackGroupIndex, GroupIndex>& positions, LoopPlan* plan) {
  for (const SlackDemand& demand : plan->slack.demands) {
    for (const NewNodesOfGroup& nodes : demand.groups) {
      const GroupIndex group = positions[nodes.group];
      const int64_t most = MayAdd(problem, counts, *plan, group);
      if (nodes.nodes <= 0 || most == 0) continue;
      GrowthOf(group, plan).for_slack += problem.groups[group].atomic ? most : std::min(nodes.nodes, most);
    }
  }
}

}  // namespace loadline
