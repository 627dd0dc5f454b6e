#include "core/loop/loop_growth.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "core/expand/node_limits.h"
#include "core/loop/loop_sizes.h"
#include "core/loop/waiting.h"

namespace loadline {
namespace {

bool MayGrow(const LoopProblem& problem, size_t group) {
  const LoopGroup& of = problem.groups[group];
  const bool chosen_with = of.usd_per_hour.has_value() || problem.ranking.has_value();
  return problem.decisions.scale_up && of.node.has_value() && chosen_with && of.held.empty() &&
         !of.drain.sized;
}

// Copies of a group's node. Names differ from those that PlanScaleUp() gives to its own copies: hostnames
// are domains of spreading.
NodeTemplate TemplateOf(const LoopGroup& group, absl::string_view suffix) {
  return {absl::StrCat(group.drain.name, suffix), *group.node};
}

EmptyNode RoomOn(const LoopProblem& problem, const Snapshot& snapshot, NodeIndex node) {
  EmptyNode room;
  room.room = {std::max<int64_t>(0, snapshot.amount(node, kCpu).free),
               std::max<int64_t>(0, snapshot.amount(node, kMemory).free)};
  if (const std::optional<ResourceId> pods = problem.names.Find("pods")) {
    const int64_t slots = snapshot.node_shape(node).allocatable.Get(*pods);
    room.slots = std::max<int64_t>(0, slots - static_cast<int64_t>(snapshot.pods(node).size()));
  }
  return room;
}

// What is left when pods come.
void Take(const PodShape& shape, int64_t count, EmptyNode* room) {
  room->room = Minus(room->room, Times(CpuMemoryOf(shape.requests), count));
  room->slots = std::max<int64_t>(0, room->slots - count);
}

// Where nodes on their way stand in the snapshot.
struct UpcomingNodes {
  NodeIndex first{0};
  std::vector<NodeIndex> untainted;  // the nodes that stand before it under new numbers
  std::vector<int32_t> group;        // by number from `first` on
  std::vector<EmptyNode> room;
};

UpcomingNodes AddUpcoming(const LoopProblem& problem, std::span<const GroupCounts> counts,
                          const LoopPlan& plan, Snapshot* snapshot) {
  UpcomingNodes upcoming;
  upcoming.untainted = Untaint(problem, plan, snapshot);
  upcoming.first = NodeIndex{snapshot->node_end()};
  Estimator nodes(snapshot, &problem.scale_down.fit, {}, problem.daemons);
  for (size_t group = 0; group < problem.groups.size(); ++group) {
    if (!problem.groups[group].node.has_value()) continue;
    const NodeTemplate node = TemplateOf(problem.groups[group], "/upcoming");
    for (int64_t i = 0; i < counts[group].upcoming; ++i) {
      upcoming.room.push_back(RoomOn(problem, *snapshot, nodes.AddCopy(node)));
      upcoming.group.push_back(static_cast<int32_t>(group));
    }
  }
  return upcoming;
}

// What nodes of the groups have left when they are empty. Leaves copies of them in the snapshot.
std::vector<EmptyNode> AddEmptyOnes(const LoopProblem& problem, Snapshot* snapshot) {
  std::vector<EmptyNode> rooms(problem.groups.size());
  Estimator nodes(snapshot, &problem.scale_down.fit, {}, problem.daemons);
  for (size_t group = 0; group < rooms.size(); ++group) {
    if (!problem.groups[group].node.has_value()) continue;
    rooms[group] = RoomOn(problem, *snapshot, nodes.AddCopy(TemplateOf(problem.groups[group], "/empty")));
  }
  return rooms;
}

void ExpectOnNodes(const std::vector<ExistingUse>& uses, UpcomingNodes* upcoming, LoopPlan* plan) {
  const int64_t untainted = static_cast<int64_t>(upcoming->untainted.size());
  for (const ExistingUse& use : uses) {
    const int64_t number = static_cast<int64_t>(use.node) - static_cast<int64_t>(upcoming->first);
    if (number < 0) {
      const bool renumbered = number >= -untainted;
      plan->expected.push_back(
          {use.pods.pods, use.pods.count,
           renumbered ? upcoming->untainted[static_cast<size_t>(untainted + number)] : use.node, -1});
      continue;
    }
    const size_t at = static_cast<size_t>(number);
    plan->expected.push_back({use.pods.pods, use.pods.count, NodeIndex{-1}, upcoming->group[at]});
    Take(plan->waiting[static_cast<size_t>(use.pods.pods)].pod.shape, use.pods.count, &upcoming->room[at]);
  }
}

// What groups that are sized leave of what all may grow by together.
int64_t NewNodesLeft(const LoopProblem& problem, const LoopPlan& plan) {
  int64_t left = problem.growth.max_new_nodes;
  if (left <= 0) return left;
  for (const LoopGrowth& growth : plan.growth) left -= growth.for_utilization;
  return left > 0 ? left : kForbidden;
}

void PlanJointly(const LoopProblem& problem, std::span<const RankedGroup> may_grow, Snapshot* snapshot,
                 WorkBudget* budget, LoopPlan* plan) {
  std::vector<PlanGroup> groups;
  for (const RankedGroup& group : may_grow) groups.push_back(group.group);
  PlanOptions options = problem.growth;
  options.max_new_nodes = NewNodesLeft(problem, *plan);
  plan->scale_up =
      PlanScaleUp(snapshot, &problem.scale_down.fit, plan->waiting, problem.daemons, groups, options, budget);
}

void PlanByRanking(const LoopProblem& problem, const std::vector<RankedGroup>& may_grow, Snapshot* snapshot,
                   WorkBudget* budget, LoopPlan* plan) {
  const LoopRanking& by = *problem.ranking;
  const ClusterState& cluster = *problem.drain.cluster;
  GrowingCluster size{cluster.node_count(), {}};
  if (by.policy.preferred_table == PreferredTable::kLearned) size.running = RunningDemand(cluster);
  std::vector<PodRequests> requests;
  for (const PendingPods& pods : plan->waiting) requests.push_back(by.requests_of(pods.pod.shape));
  RankedScaleUp ranked = PlanRankedScaleUp(
      snapshot, &problem.scale_down.fit, plan->waiting, requests, problem.daemons, may_grow,
      {by.policy, by.prices, by.preferred_node, size}, NewNodesLeft(problem, *plan), budget);
  plan->scale_up = std::move(ranked.plan);
  plan->ranked = std::move(ranked.options);
  plan->preferred_node = ranked.preferred_node;
}

}  // namespace

LoopGrowth& GrowthOf(int32_t group, LoopPlan* plan) {
  const auto at = std::lower_bound(plan->growth.begin(), plan->growth.end(), group,
                                   [](const LoopGrowth& growth, int32_t g) { return growth.group < g; });
  if (at != plan->growth.end() && at->group == group) return *at;
  return *plan->growth.insert(at, {.group = group});
}

std::vector<GroupCounts> CountNodes(const LoopProblem& problem) {
  std::vector<GroupCounts> counts(problem.groups.size());
  const ClusterState& cluster = *problem.drain.cluster;
  for (size_t slot = 0; slot < problem.drain.group_of.size(); ++slot) {
    const int32_t group = problem.drain.group_of[slot];
    if (group >= 0 && cluster.Occupied(Slot{static_cast<int32_t>(slot)})) {
      ++counts[static_cast<size_t>(group)].registered;
    }
  }
  for (size_t group = 0; group < counts.size(); ++group) {
    counts[group].upcoming =
        std::max<int64_t>(0, problem.groups[group].drain.target - counts[group].registered);
  }
  return counts;
}

GroupRooms GrowForPods(const LoopProblem& problem, std::span<const GroupCounts> counts, Snapshot* snapshot,
                       WorkBudget* budget, LoopPlan* plan) {
  snapshot->Fork();
  RemovePodsThatGiveWay(snapshot);
  UpcomingNodes upcoming = AddUpcoming(problem, counts, *plan, snapshot);
  std::vector<RankedGroup> groups;
  for (size_t group = 0; group < problem.groups.size(); ++group) {
    if (!MayGrow(problem, group)) continue;
    const LoopGroup& of = problem.groups[group];
    const int64_t current = counts[group].registered + counts[group].upcoming;
    groups.push_back(
        {{TemplateOf(of, ""), of.usd_per_hour.value_or(0), {std::max(of.max_nodes, current), current}},
         of.priced,
         of.has_gpu,
         of.priority});
    plan->grown.push_back(static_cast<int32_t>(group));
  }
  if (problem.ranking.has_value()) {
    PlanByRanking(problem, groups, snapshot, budget, plan);
  } else {
    PlanJointly(problem, groups, snapshot, budget, plan);
  }
  ExpectOnNodes(plan->scale_up.existing, &upcoming, plan);

  GroupRooms rooms{AddEmptyOnes(problem, snapshot),
                   std::vector<std::vector<EmptyNode>>(problem.groups.size())};
  for (size_t i = 0; i < upcoming.room.size(); ++i) {
    rooms.coming[static_cast<size_t>(upcoming.group[i])].push_back(upcoming.room[i]);
  }
  for (const PlannedNodes& nodes : plan->scale_up.nodes) {
    const int32_t group = plan->grown[static_cast<size_t>(nodes.group)];
    EmptyNode room = rooms.empty[static_cast<size_t>(group)];
    for (const PodCount& pods : nodes.pods) {
      Take(plan->waiting[static_cast<size_t>(pods.pods)].pod.shape, pods.count, &room);
    }
    std::vector<EmptyNode>& coming = rooms.coming[static_cast<size_t>(group)];
    coming.insert(coming.end(), static_cast<size_t>(nodes.nodes), room);
    GrowthOf(group, plan).for_pods += nodes.nodes;
  }
  snapshot->Revert();
  return rooms;
}

int64_t MayAdd(const LoopProblem& problem, std::span<const GroupCounts> counts, const LoopPlan& plan,
               size_t group) {
  if (!MayGrow(problem, group)) return 0;
  int64_t nodes = counts[group].registered + counts[group].upcoming;
  for (const LoopGrowth& growth : plan.growth) {
    if (growth.group == static_cast<int32_t>(group)) nodes += growth.nodes();
  }
  return std::max<int64_t>(0, problem.groups[group].max_nodes - nodes);
}

void GrowForSlack(const LoopProblem& problem, std::span<const GroupCounts> counts,
                  std::span<const int32_t> positions, LoopPlan* plan) {
  absl::btree_map<int32_t, int64_t> grown;
  for (const SlackDemand& demand : plan->slack.demands) {
    for (const GroupNodes& nodes : demand.groups) {
      const int32_t group = positions[static_cast<size_t>(nodes.group)];
      const int64_t wins = std::min(nodes.nodes, MayAdd(problem, counts, *plan, static_cast<size_t>(group)));
      if (wins > 0) grown[group] += wins;
    }
  }
  for (const auto& [group, nodes] : grown) GrowthOf(group, plan).for_slack += nodes;
}

}  // namespace loadline
