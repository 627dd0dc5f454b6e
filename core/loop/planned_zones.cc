#include "core/loop/planned_zones.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "core/loop/empty_room.h"

namespace loadline {
namespace {

// The part of the rest of the budget that verdicts may take. Chosen: without them the zones are only less
// likely to be right.
constexpr double kForZones = 0.1;

// Returns whether pods may fit in one zone and not in another.
bool ReadZones(const std::vector<PendingPods>& waiting) {
  return std::any_of(waiting.begin(), waiting.end(), [](const PendingPods& pods) {
    const PodRules* const rules = pods.pod.shape.rules.get();
    return pods.count > 0 && rules != nullptr &&
           (!rules->node_selector.empty() || rules->node_affinity.has_value() || !rules->spread.empty() ||
            !rules->affinity.empty() || !rules->anti_affinity.empty() || !rules->volumes.empty());
  });
}

// Returns the pods that the zone of a new node suits, where another zone of the group does not.
NodesOfZones WantedZones(const LoopProblem& problem, GroupIndex group, Estimator* estimator,
                         WorkBudget* budget) {
  const size_t zones = problem.groups[group].model->zones.size();
  const std::vector<PendingPods>& pods = estimator->pods();
  const std::vector<int64_t> nothing_placed(pods.size(), 0);
  std::vector<std::vector<bool>> refuses(zones, std::vector<bool>(pods.size(), false));
  std::vector<bool> refused_by_some(pods.size(), false);
  for (size_t zone = 0; zone < zones; ++zone) {
    for (const PodRefusal& refusal :
         estimator->Refusals(InZone(problem, group, zone), nothing_placed, budget)) {
      refuses[zone][refusal.pods] = refused_by_some[refusal.pods] = true;
    }
    estimator->fresh().StartOver();
  }
  NodesOfZones wanted(zones, 0);
  if (budget->ended()) return wanted;
  for (size_t zone = 0; zone < zones; ++zone) {
    for (size_t i = 0; i < pods.size(); ++i) {
      if (refused_by_some[i] && !refuses[zone][i]) wanted[zone] += pods[i].count;
    }
  }
  return wanted;
}

bool HasSeveralZones(const NodeGroup& group) {
  return !group.atomic && group.model.has_value() && !group.model->zones.empty() &&
         group.model->zones.size() <= kMostPlannedZones;
}

}  // namespace

ZoneTurns::ZoneTurns(const NodeModel& model) : stated_(model.stated_zone) {
  for (const ModelZone& zone : model.zones) nodes_.push_back(zone.nodes);
}

size_t ZoneTurns::Next(const NodesOfZones& wanted) const {
  const int64_t least = *std::min_element(nodes_.begin(), nodes_.end());
  std::optional<size_t> next;
  const auto rank = [&](size_t zone) {
    return std::tuple(-std::max<int64_t>(0, wanted[zone]), nodes_[zone]);
  };
  for (size_t zone = 0; zone < nodes_.size(); ++zone) {
    const bool may_be = nodes_[zone] == least || stated_ == zone;
    if (may_be && (!next.has_value() || rank(zone) < rank(*next))) next = zone;
  }
  return *next;
}

size_t ZoneTurns::Take(NodesOfZones* wanted) {
  const size_t zone = Next(*wanted);
  ++nodes_[zone];
  --(*wanted)[zone];
  return zone;
}

NodesOfZones ZoneTurns::Grant(NodesOfZones wanted, int64_t most) const {
  NodesOfZones granted(wanted.size(), 0);
  ZoneTurns turns = *this;
  for (int64_t i = 0; i < most && wanted[turns.Next(wanted)] > 0; ++i) ++granted[turns.Take(&wanted)];
  return granted;
}

NodeGroup InZone(const LoopProblem& problem, GroupIndex group, size_t zone) {
  NodeGroup there = problem.groups[group];
  there.model = InZone(*problem.groups[group].model, there.model->zones[zone], problem.names);
  return there;
}

PlannedZones PlanZones(const LoopProblem& problem, const CountsOfGroups& counts,
                       const std::vector<PendingPods>& waiting, Snapshot* snapshot, WorkBudget* budget) {
  PlannedZones planned;
  planned.turns.resize(problem.groups.size());
  planned.wanted.resize(problem.groups.size());
  const bool read = ReadZones(waiting);
  const WorkPhase phase(budget, kForZones);
  std::optional<Estimator> estimator;
  for (const GroupIndex group : problem.groups.indices()) {
    const NodeGroup& of = problem.groups[group];
    const int64_t upcoming = of.model.has_value() ? counts[group].upcoming : 0;
    if (!read || !HasSeveralZones(of)) {
      if (upcoming > 0) planned.coming.push_back({group, TemplateOf(of, "/upcoming"), upcoming});
      continue;
    }
    ZoneTurns& turns = planned.turns[group].emplace(*of.model);
    NodesOfZones& wanted = planned.wanted[group];
    wanted.assign(of.model->zones.size(), 0);
    if (upcoming == 0 && !problem.ranking.has_value()) continue;
    if (!estimator.has_value())
      estimator.emplace(snapshot, &problem.scale_down.fit, waiting, problem.daemons, budget);
    wanted = WantedZones(problem, group, &*estimator, budget);
    NodesOfZones coming(wanted.size(), 0);
    for (int64_t i = 0; i < upcoming; ++i) ++coming[turns.Take(&wanted)];
    for (size_t zone = 0; zone < coming.size(); ++zone) {
      if (coming[zone] == 0) continue;
      planned.coming.push_back({group, TemplateOf(InZone(problem, group, zone), "/upcoming"), coming[zone]});
    }
  }
  return planned;
}

}  // namespace loadline
