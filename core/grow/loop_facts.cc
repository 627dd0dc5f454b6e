#include "core/grow/loop_facts.h"

#include <algorithm>

#include "core/drain/being_deleted.h"
#include "core/grow/loop_resources.h"

namespace loadline {
namespace {

// Returns whether the group may grow for pods and slack. Groups are chosen by their prices, or are ranked.
bool MayGrow(const NodeGroup& of, bool ranked) {
  return of.model.has_value() && (of.usd_per_hour.has_value() || ranked) && of.blocked_reason.empty() &&
         !of.sized;
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
      starting(FindStartingNodes(cluster, problem.starting_group_of, groups, problem.startup_taints,
                                 problem.names)),
      counts(CountNodes(problem.drain, groups)),
      offers(OffersOf(groups, problem.names, problem.scale_down.eligibility.utilization.gpu_labels)),
      room(RoomBesideNodes(problem.maxima, problem.drain, offers, problem.names,
                           problem.scale_down.eligibility.utilization.gpu_labels)),
      may_grow(groups.size(), false) {
  if (problem.decisions.replace) nodes = NodesByKeyOf(cluster);
  for (const GroupIndex group : groups.indices())
    may_grow[group] = problem.decisions.scale_up && MayGrow(groups[group], problem.ranking.has_value());
  balance_sets = BalanceSets(problem.balance, *this);
}

}  // namespace loadline
