#include "core/loop/slack_question.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/node_kind.h"
#include "core/grow/plan_growth.h"
#include "core/loop/placeholder_pods.h"

namespace loadline {
namespace {

using GroupPositions = StrongVector<SlackGroupIndex, GroupIndex>;

// Pods that wait, where they are expected: what they request is not free for slack, and wants slack itself.
// `asked`: so many of the waiting pods were asked about; those behind run on nodes that are being deleted.
std::vector<SlackPending> ExpectedPodsOf(const LoopPlan& plan, size_t asked, const Snapshot& snapshot,
                                         const GroupPositions& positions) {
  absl::flat_hash_map<GroupIndex, SlackGroupIndex> position_of;
  for (const SlackGroupIndex i : positions.indices()) position_of[positions[i]] = i;
  std::vector<SlackPending> pods;
  const auto on_group = [&](int32_t waiting, int64_t count, GroupIndex group) {
    const auto at = position_of.find(group);
    if (at == position_of.end()) return;
    const auto number = static_cast<size_t>(waiting);
    pods.push_back({plan.waiting[number].pod, count, std::nullopt, at->second, number >= asked});
  };
  for (const ExpectedPlace& place : plan.expected) {
    if (place.group.has_value()) {
      on_group(place.pods, place.count, *place.group);
      continue;
    }
    const auto number = static_cast<size_t>(place.pods);
    pods.push_back(
        {plan.waiting[number].pod, place.count, snapshot.slot(place.node), std::nullopt, number >= asked});
  }
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    for (const PodCount& count : nodes.pods) {
      on_group(count.pods, nodes.nodes * count.count, plan.grown[nodes.group]);
    }
  }
  return pods;
}

// Options to grow for slack are ranked as those to grow for pods are.
SlackRanking RankingOf(const LoopRanking& by, const std::optional<NodeCapacity>& learned,
                       NodeGroupSpan groups, GroupPositions positions) {
  const std::optional<NodeCapacity> preferred = learned.has_value() ? learned : by.preferred_node;
  return [groups, &by, preferred, positions = std::move(positions)](const std::vector<SlackOption>& options) {
    std::vector<PodRequests> requests;
    std::vector<ExpansionOption> ways;
    for (const SlackOption& option : options) {
      const NodeGroup& group = groups[positions[*option.group]];
      ExpansionOption& way = ways.emplace_back();
      way.node_group = group.name;
      way.node_count = option.nodes;
      way.node = group.priced;
      way.has_gpu = group.has_gpu;
      way.priority = group.priority;
      for (const AskedPlaceholders& asked : option.placeholders) {
        way.pods.push_back({requests.size(), asked.count});
        PodRequests& pod = requests.emplace_back();
        pod.milli_cpu = asked.group.size.cpu;
        pod.memory_bytes = asked.group.size.memory;
      }
    }
    std::vector<size_t> best_first;
    for (const RankedOption& ranked : RankOptions({requests, ways, by.prices, by.policy, preferred})) {
      best_first.push_back(ranked.option);
    }
    return best_first;
  };
}

}  // namespace

SlackQuestion MakeSlackQuestion(const LoopProblem& problem, const GrowthLedger& ledger, GroupRooms rooms,
                                const LoopPlan& plan, Snapshot* snapshot, GroupPositions* positions) {
  SlackQuestion question;
  question.cluster = problem.drain.cluster;
  question.options = problem.slack;
  question.names = problem.names;
  question.fit = &problem.scale_down.fit;
  question.now_s = problem.drain.now_s;
  question.snapshot = [snapshot] { return snapshot; };
  question.named_machines = NamedAsMachines(*problem.drain.cluster, problem.drain.group_of);
  question.max_new_nodes = ledger.NewNodesLeft();
  question.daemons = problem.daemons;
  question.growth = [&problem](Snapshot* cluster, std::vector<PendingPods> pods,
                               std::vector<IncomingPod> daemons, const GrowableGroups& groups,
                               NodeLimit max_new_nodes, WorkBudget* budget) {
    return PlanGrowthOf(problem, {std::move(pods), std::move(daemons), groups, max_new_nodes}, cluster,
                        budget)
        .plan;
  };
  question.groups.emplace();
  for (const GroupIndex group : problem.groups.indices()) {
    const NodeGroup& of = problem.groups[group];
    if (!of.model.has_value()) continue;
    positions->push_back(group);
    SlackGroup& added = question.groups->emplace_back();
    added.of = &of;
    added.empty = rooms.empty[group];
    added.may_add = rooms.complete ? ledger.MayAddForSlack(group) : 0;
    added.coming = std::move(rooms.coming[group]);
    added.balance_set = ledger.facts->balance_sets[group];
    added.nodes = ledger.counts[group].registered + static_cast<int64_t>(added.coming.size());
  }
  question.waiting = ExpectedPodsOf(plan, ledger.facts->asked_pods, *snapshot, *positions);
  question.leaving = ledger.facts->deleting;
  if (problem.ranking.has_value())
    question.ranking = RankingOf(*problem.ranking, plan.preferred_node, problem.groups, *positions);
  return question;
}

void ExpectWhereDrained(const DrainProblem& problem, const DrainPlan& plan, SlackPlanner* slack) {
  for (const DrainRemoval& removal : plan.remove) {
    if (!removal.start) continue;
    for (const DrainMove& move : removal.moves()) {
      if (!move.pod.is_placeholder()) continue;
      const std::optional<int64_t> id = SlackPlaceholder(problem.placeholders[move.pod.position()].name);
      if (id.has_value()) slack->Expect(*id, std::string(problem.cluster->name(move.to)));
    }
  }
}

}  // namespace loadline
