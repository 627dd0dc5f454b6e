#include "core/loop/growth_candidates.h"

#include <algorithm>

namespace loadline {
namespace {

// Groups that are similar: those with the same number share what they grow by. A group joins the first set to
// whose first member it is similar.
StrongVector<GroupIndex, std::optional<int32_t>> BalanceSets(const LoopProblem& problem) {
  StrongVector<GroupIndex, std::optional<int32_t>> sets(problem.groups.size());
  if (!problem.balance.has_value()) return sets;
  std::vector<GroupIndex> firsts;
  for (const GroupIndex group : sets.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (of.atomic || !MayGrow(problem, group)) continue;
    const auto similar = std::find_if(firsts.begin(), firsts.end(), [&](GroupIndex first) {
      const NodeGroup& other = problem.groups[first];
      return AreSimilar({of.model->shape, of.priced}, {other.model->shape, other.priced}, *problem.balance);
    });
    sets[group] = static_cast<int32_t>(similar - firsts.begin());
    if (similar == firsts.end()) firsts.push_back(group);
  }
  return sets;
}

}  // namespace

GrowthCandidates::GrowthCandidates(const LoopProblem& problem, const CountsOfGroups& counts,
                                   const PlannedZones& zones)
    : problem_(problem),
      counts_(counts),
      zones_(zones),
      balance_sets_(BalanceSets(problem)),
      most_(problem.groups.size()),
      caps_(problem.groups.size()) {}

void GrowthCandidates::Clear() {
  groups_ = {};
  positions_ = {};
  zone_of_ = {};
}

void GrowthCandidates::Add(GroupIndex group, int64_t most) {
  std::optional<int32_t> balance_set = balance_sets_[group];
  const auto add = [&](NodeGroup made, std::optional<size_t> zone, int64_t nodes, int64_t may_add) {
    made.target = nodes;
    made.max_nodes = nodes + may_add;
    made.balance_set = balance_set;
    groups_.push_back(std::move(made));
    positions_.push_back(group);
    zone_of_.push_back(zone);
  };
  most_[group] = most;
  const std::optional<ZoneTurns>& turns = zones_.turns[group];
  const int64_t current = counts_[group].registered + counts_[group].upcoming;
  if (!turns.has_value()) {
    add(problem_.groups[group], std::nullopt, current, most);
  } else if (problem_.ranking.has_value()) {
    NodesOfZones wanted = zones_.wanted[group];
    const size_t next = ZoneTurns(*turns).Take(&wanted);
    add(InZone(problem_, group, next), std::nullopt, current, most);
  } else {
    if (!balance_set.has_value()) balance_set = static_cast<int32_t>(problem_.groups.size() + IndexOf(group));
    for (size_t zone = 0; zone < turns->nodes().size(); ++zone) {
      const int64_t may_add = caps_[group].empty() ? most : caps_[group][zone];
      add(InZone(problem_, group, zone), zone, turns->nodes()[zone], may_add);
    }
  }
}

bool GrowthCandidates::CapZones(std::span<const PlannedNodes> nodes) {
  StrongVector<GroupIndex, NodesOfZones> wanted(problem_.groups.size());
  for (const PlannedNodes& run : nodes) {
    if (!zone_of_.Contains(run.group) || !zone_of_[run.group].has_value()) continue;
    const GroupIndex group = positions_[run.group];
    wanted[group].resize(zones_.turns[group]->nodes().size(), 0);
    wanted[group][*zone_of_[run.group]] += run.nodes;
  }
  bool keeps = true;
  for (const GroupIndex group : wanted.indices()) {
    if (wanted[group].empty()) continue;
    NodesOfZones granted = zones_.turns[group]->Grant(wanted[group], most_[group]);
    if (granted == wanted[group]) continue;
    caps_[group] = std::move(granted);
    keeps = false;
  }
  return keeps;
}

}  // namespace loadline
