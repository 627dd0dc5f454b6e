#include "core/loop/loop_facts.h"

#include <algorithm>

#include "core/drain/being_deleted.h"
#include "core/loop/loop_resources.h"

namespace loadline {
namespace {

StrongVector<GroupIndex, bool> GroupsThatMayGrow(const LoopProblem& problem) {
  StrongVector<GroupIndex, bool> may_grow;
  for (const NodeGroup& of : problem.groups) {
    const bool chosen_with = of.usd_per_hour.has_value() || problem.ranking.has_value();
    may_grow.push_back(problem.decisions.scale_up && of.model.has_value() && chosen_with &&
                       of.blocked_reason.empty() && !of.sized);
  }
  return may_grow;
}

StrongVector<GroupIndex, std::optional<int32_t>> BalanceSets(const std::optional<SimilarityRules>& rules,
                                                             const LoopFacts& facts) {
  StrongVector<GroupIndex, std::optional<int32_t>> sets(facts.groups.size());
  if (!rules.has_value()) return sets;
  std::vector<GroupIndex> firsts;
  for (const GroupIndex group : sets.indices()) {
    const NodeGroup& of = facts.groups[group];
    if (of.atomic || !facts.may_grow[group]) continue;
    const auto similar = std::find_if(firsts.begin(), firsts.end(), [&](GroupIndex first) {
      const NodeGroup& other = facts.groups[first];
      return AreSimilar({of.model->shape, of.priced}, {other.model->shape, other.priced}, *rules);
    });
    sets[group] = static_cast<int32_t>(similar - firsts.begin());
    if (similar == firsts.end()) firsts.push_back(group);
  }
  return sets;
}

}  // namespace

CountsOfGroups CountNodes(const DrainProblem& drain, NodeGroupSpan groups) {
  CountsOfGroups counts(groups.size());
  for (const auto [slot, group] : drain.group_of) {
    if (drain.cluster->Occupied(slot)) ++counts[group].registered;
  }
  for (const GroupIndex group : counts.indices()) {
    counts[group].upcoming = std::max<int64_t>(0, groups[group].target - counts[group].registered);
  }
  return counts;
}

LoopFacts::LoopFacts(const LoopProblem& problem)
    : cluster(*problem.drain.cluster),
      groups(problem.groups),
      max_new_nodes(problem.growth.max_new_nodes),
      asked_pods(problem.pending.size()),
      deleting(NodesBeingDeleted(cluster, problem.deleting, problem.drain.now_s)),
      leaving(deleting.begin(), deleting.end()),
      counts(CountNodes(problem.drain, groups)),
      offers(OffersOf(problem)),
      room(RoomBesideNodes(problem, offers)),
      may_grow(GroupsThatMayGrow(problem)) {
  if (problem.decisions.replace) nodes = NodesByKeyOf(cluster);
  balance_sets = BalanceSets(problem.balance, *this);
}

}  // namespace loadline
