#include "core/grow/loop_growth.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/expand/look_ahead.h"
#include "core/grow/growth_attempt.h"

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

int64_t CountWaiting(const std::vector<PendingPods>& waiting) {
  return std::accumulate(waiting.begin(), waiting.end(), int64_t{0},
                         [](int64_t sum, const PendingPods& pods) { return sum + pods.count; });
}

// Returns whether it may replace the other one: it keeps limits, and leaves no more pods over.
bool IsValid(const GrowthAttempt& attempt, const GrowthAttempt& other) {
  return attempt.within_limits && attempt.rooms.complete && !attempt.plan.scale_up.cut_short &&
         CountUnplaced(attempt.plan.scale_up) <= CountUnplaced(other.plan.scale_up);
}

// Returns the price of the dearest of the new nodes.
double DearestNode(NodeGroupSpan groups, const WaitingPodsPlan& plan) {
  double usd = 0;
  for (const PlannedNodes& nodes : plan.scale_up.nodes)
    usd = std::max(usd, UsdOf(groups[plan.grown[nodes.group]]));
  return usd;
}

// Returns whether more room is worth its price: it costs no more than a node for each pod that would be left
// over.
bool IsWorthIt(NodeGroupSpan groups, const GrowthAttempt& roomier, const GrowthAttempt& than) {
  const double more = roomier.plan.scale_up.cost - than.plan.scale_up.cost;
  const int64_t fewer = than.left_as_scheduled - roomier.left_as_scheduled;
  return fewer > 0 && more <= static_cast<double>(fewer) * DearestNode(groups, than.plan) + kRounding;
}

// Returns whether growth with further pods in mind leaves a tenth of each maximum of its groups. The last
// tenth is for pods that wait: whoever needs it next should not find it taken for pods that may never come.
// Chosen: a tenth of a cluster grows again within minutes, and further pods are as many as a few nodes take.
bool SparesMaxima(const GrowthLedger& ledger, std::span<const NodeMaximum> maxima) {
  const ResourceRoom room = ledger.RoomLeft();
  return std::all_of(ledger.growth.begin(), ledger.growth.end(), [&](const LoopGrowth& growth) {
    if (growth.for_pods == 0) return true;
    return ledger.RoomOf(growth.group) * 10 >= ledger.facts->groups[growth.group].max_nodes &&
           room.LeavesTenth(*ledger.facts->offers[growth.group], maxima);
  });
}

bool MayGrowToMinimum(const NodeGroup& group) {
  return group.model.has_value() && group.blocked_reason.empty() && !group.sized;
}

}  // namespace

GroupRooms GrowForPods(const GrowthQuestion& question, GrowthLedger* ledger, WaitingPodsPlan* plan) {
  const auto attempt = [&](const GrowthWay& way) { return TryGrowth(question, *ledger, way); };
  const auto take = [&](GrowthAttempt&& from) {
    *plan = std::move(from.plan);
    ledger->growth = std::move(from.ledger.growth);
    return std::move(from.rooms);
  };
  const FurtherPods further =
      question.problem.looks_ahead ? FurtherPodsOf(ledger->facts->cluster.node_count()) : FurtherPods();
  GrowthAttempt best = attempt({.further = further});
  if (best.plan.scale_up.cost_alone.has_value() && !SparesMaxima(best.ledger, question.problem.maxima))
    best = attempt({});
  if (best.plan.scale_up.nodes.empty() || best.plan.scale_up.cut_short ||
      question.problem.ranking.has_value())
    return take(std::move(best));
  const WorkPhase phase(question.budget, kForFurtherAttempts);
  if (ledger->AnyComes()) {
    GrowthAttempt packed = attempt({.packs_upcoming = true});
    const ScaleUpPlan& known = best.plan.scale_up;
    if (IsValid(packed, best) && packed.plan.scale_up.cost < known.cost_alone.value_or(known.cost))
      best = std::move(packed);
  }
  const int64_t waiting = CountWaiting(question.waiting);
  for (const double reserve : kReserves) {
    if (best.left_as_scheduled <= waiting * kLeftForLaterPercent / 100) break;
    GrowthAttempt roomier = attempt({best.way.packs_upcoming, reserve, best.way.further});
    if (!IsValid(roomier, best)) break;
    if (IsWorthIt(ledger->facts->groups, roomier, best)) best = std::move(roomier);
  }
  return take(std::move(best));
}

int64_t CountUnplaced(const ScaleUpPlan& plan) {
  return std::accumulate(plan.unplaced.begin(), plan.unplaced.end(), int64_t{0});
}

void GrowForSlack(std::span<const SlackDemand> demands,
                  const StrongVector<SlackGroupIndex, GroupIndex>& positions, GrowthLedger* ledger) {
  for (const SlackDemand& demand : demands) {
    for (const NewNodesOfGroup& nodes : demand.groups) {
      const GroupIndex group = positions[nodes.group];
      const int64_t most = ledger->MayAddForSlack(group);
      if (nodes.nodes <= 0 || most == 0) continue;
      const bool whole = ledger->facts->groups[group].atomic;
      ledger->Of(group).for_slack += whole ? most : std::min(nodes.nodes, most);
    }
  }
}

void GrowToMinima(GrowthLedger* ledger) {
  for (const GroupIndex index : ledger->counts.indices()) {
    const NodeGroup& group = ledger->facts->groups[index];
    const int64_t missing = group.min_nodes - ledger->NodesOf(index);
    if (missing <= 0 || !MayGrowToMinimum(group)) continue;
    int64_t& upcoming = ledger->counts[index].upcoming;
    const int64_t most = std::min(ledger->NodesWithinLimits(index), kMostUpcomingNodes - upcoming);
    const int64_t added = group.atomic ? most : std::min(missing, most);
    if (added <= 0) continue;
    upcoming += added;
    ledger->Of(index).for_minimum = added;
  }
}

}  // namespace loadline
