#include "core/loop/loop_growth.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "core/expand/node_limits.h"
#include "core/fit/line_left.h"
#include "core/fit/trial_memory.h"
#include "core/loop/loop_resources.h"
#include "core/loop/loop_sizes.h"
#include "core/loop/waiting.h"

namespace loadline {
namespace {

bool MayGrow(const LoopProblem& problem, size_t group) {
  const LoopGroup& of = problem.groups[group];
  const bool chosen_with = of.usd_per_hour.has_value() || problem.ranking.has_value();
  return problem.decisions.scale_up && of.node.has_value() && chosen_with && of.blocked_reason.empty() &&
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
  LineLeft line(problem.scale_down.fit.load_line, snapshot.node_shape(node));
  for (const SnapshotPod& pod : snapshot.pods(node)) line.Add(snapshot.pod_shape(pod.shape));
  room.room = Smaller(room.room, line.Left());
  if (const std::optional<ResourceId> pods = problem.names.Find("pods")) {
    const int64_t slots = snapshot.node_shape(node).allocatable.Get(*pods);
    room.slots = std::max<int64_t>(0, slots - static_cast<int64_t>(snapshot.pods(node).size()));
  }
  return room;
}

// What is left when pods come to a node of the group.
void Take(const LoopProblem& problem, size_t group, const PodShape& shape, int64_t count, EmptyNode* room) {
  const LineLeft line(problem.scale_down.fit.load_line, *problem.groups[group].node);
  room->room = Minus(room->room, Times(line.TakenBy(shape), count));
  room->slots = std::max<int64_t>(0, room->slots - count);
}

// Where nodes on their way stand in the snapshot.
struct UpcomingNodes {
  bool complete = true;  // all of them do
  NodeIndex first{0};
  std::vector<NodeIndex> untainted;  // the nodes that stand before it under new numbers
  std::vector<int32_t> group;        // by number from `first` on
  std::vector<EmptyNode> room;
  std::vector<char> used;  // whether pods are expected there
};

// The memory of the nodes is taken until growth has been planned.
UpcomingNodes AddUpcoming(const LoopProblem& problem, std::span<const GroupCounts> counts,
                          const LoopPlan& plan, Snapshot* snapshot, TrialMemory* memory, WorkBudget* budget) {
  UpcomingNodes upcoming;
  upcoming.untainted = Untaint(problem, plan, snapshot);
  upcoming.first = NodeIndex{snapshot->node_end()};
  const bool any =
      std::any_of(counts.begin(), counts.end(), [](const GroupCounts& count) { return count.upcoming > 0; });
  if (!any) return upcoming;
  Estimator nodes(snapshot, &problem.scale_down.fit, {}, problem.daemons, budget);
  for (size_t group = 0; group < problem.groups.size(); ++group) {
    if (!problem.groups[group].node.has_value()) continue;
    const NodeTemplate node = TemplateOf(problem.groups[group], "/upcoming");
    for (int64_t i = 0; i < counts[group].upcoming; ++i) {
      if (!memory->Node(*snapshot)) {
        upcoming.complete = false;
        return upcoming;
      }
      upcoming.room.push_back(RoomOn(problem, *snapshot, nodes.AddCopy(node, memory)));
      upcoming.group.push_back(static_cast<int32_t>(group));
      upcoming.used.push_back(0);
    }
  }
  return upcoming;
}

// What nodes of the groups have left when they are empty. Leaves copies of them in the snapshot.
std::vector<EmptyNode> AddEmptyOnes(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget) {
  std::vector<EmptyNode> rooms(problem.groups.size());
  Estimator nodes(snapshot, &problem.scale_down.fit, {}, problem.daemons, budget);
  TrialMemory memory(budget);
  for (size_t group = 0; group < rooms.size(); ++group) {
    if (!problem.groups[group].node.has_value()) continue;
    const NodeTemplate node = TemplateOf(problem.groups[group], "/empty");
    rooms[group] = RoomOn(problem, *snapshot, nodes.AddCopy(node, &memory));
  }
  return rooms;
}

void ExpectOnNodes(const LoopProblem& problem, const std::vector<ExistingUse>& uses, UpcomingNodes* upcoming,
                   LoopPlan* plan) {
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
    upcoming->used[at] = 1;
    Take(problem, static_cast<size_t>(upcoming->group[at]),
         plan->waiting[static_cast<size_t>(use.pods.pods)].pod.shape, use.pods.count, &upcoming->room[at]);
  }
}

// By group: nodes on their way that take pods.
std::vector<int64_t> UsedNodes(const LoopProblem& problem, const UpcomingNodes& upcoming) {
  std::vector<int64_t> used(problem.groups.size(), 0);
  for (size_t i = 0; i < upcoming.group.size(); ++i)
    used[static_cast<size_t>(upcoming.group[i])] += upcoming.used[i];
  return used;
}

// Nodes that the group may have beyond those that it has, those that are on their way, and what the plan
// adds.
int64_t RoomOf(const LoopProblem& problem, std::span<const GroupCounts> counts, const LoopPlan& plan,
               size_t group) {
  int64_t nodes = counts[group].registered + counts[group].upcoming;
  for (const LoopGrowth& growth : plan.growth) {
    // What comes for the minimum is among those on their way already.
    if (growth.group == static_cast<int32_t>(group)) nodes += growth.nodes() - growth.for_minimum;
  }
  return std::max<int64_t>(0, problem.groups[group].max_nodes - nodes);
}

// Groups that are similar, by position: those with the same number share what they grow by. A group joins the
// first set to whose first member it is similar.
std::vector<int32_t> BalanceSets(const LoopProblem& problem) {
  std::vector<int32_t> sets(problem.groups.size(), -1);
  if (!problem.balance.has_value()) return sets;
  std::vector<size_t> firsts;
  for (size_t group = 0; group < sets.size(); ++group) {
    const LoopGroup& of = problem.groups[group];
    if (of.drain.atomic || !MayGrow(problem, group)) continue;
    const auto similar = std::find_if(firsts.begin(), firsts.end(), [&](size_t first) {
      const LoopGroup& other = problem.groups[first];
      return AreSimilar({*of.node, of.priced}, {*other.node, other.priced}, *problem.balance);
    });
    sets[group] = static_cast<int32_t>(similar - firsts.begin());
    if (similar == firsts.end()) firsts.push_back(group);
  }
  return sets;
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

// What each group alone may win under the maxima of the cluster, by position.
std::vector<NodeLimit> CapsAlone(const LoopProblem& problem, const LoopPlan& plan) {
  const ResourceRoom room = RoomLeft(problem, plan);
  std::vector<NodeLimit> caps(problem.groups.size());
  for (size_t group = 0; group < caps.size(); ++group) caps[group] = MostNodesOf(problem, room, group);
  return caps;
}

// Plans growth by those groups that may grow; groups that have all of their nodes or none with the others.
// `caps`: new nodes of each group at most.
void PlanGrowth(const LoopProblem& problem, std::span<const GroupCounts> counts,
                std::span<const NodeLimit> caps, bool with_atomic, Snapshot* snapshot, WorkBudget* budget,
                LoopPlan* plan) {
  std::vector<RankedGroup> groups;
  const std::vector<int32_t> balance_sets = BalanceSets(problem);
  plan->grown.clear();
  for (size_t group = 0; group < problem.groups.size(); ++group) {
    const LoopGroup& of = problem.groups[group];
    if (!MayGrow(problem, group)) continue;
    if (of.drain.atomic) {
      const int64_t whole = MayAdd(problem, counts, *plan, group);
      if (!with_atomic || whole == 0 || caps[group].value_or(whole) < whole) continue;
    }
    const int64_t current = counts[group].registered + counts[group].upcoming;
    const int64_t most = SmallerLimit(caps[group], std::max<int64_t>(0, of.max_nodes - current)).value_or(0);
    groups.push_back(
        {{TemplateOf(of, ""), of.usd_per_hour.value_or(0), {current + most, current}, balance_sets[group]},
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
}

// By group: what the plan for pods lets it grow by. A group that has all of its nodes or none gets all.
NodesOfGroups WholeGrowth(const LoopProblem& problem, std::span<const GroupCounts> counts,
                          const LoopPlan& plan) {
  NodesOfGroups growth;
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    growth[plan.grown[static_cast<size_t>(nodes.group)]] += nodes.nodes;
  }
  for (auto& [group, nodes] : growth) {
    const size_t position = static_cast<size_t>(group);
    if (problem.groups[position].drain.atomic) nodes = RoomOf(problem, counts, plan, position);
  }
  return growth;
}

bool Within(NodeLimit limit, const NodesOfGroups& growth) {
  int64_t nodes = 0;
  for (const auto& [group, added] : growth) nodes += added;
  return nodes <= limit.value_or(nodes);
}

// Plans growth within all limits, and returns how far the groups grow.
NodesOfGroups PlanWithinLimits(const LoopProblem& problem, std::span<const GroupCounts> counts,
                               Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan) {
  std::vector<NodeLimit> caps = CapsAlone(problem, *plan);
  bool with_atomic = true;
  PlanGrowth(problem, counts, caps, with_atomic, snapshot, budget, plan);
  NodesOfGroups growth = WholeGrowth(problem, counts, *plan);
  if (!Within(NewNodesLeft(problem, *plan), growth)) {
    // A group that comes as a whole would take what others need: it has its turn when they have grown.
    with_atomic = false;
    PlanGrowth(problem, counts, caps, with_atomic, snapshot, budget, plan);
    growth = WholeGrowth(problem, counts, *plan);
  }
  if (!PermitsTogether(problem, *plan, growth)) {
    // Packings know of no such limit: each group gets its part of it, and the plan is made within these.
    caps = CapsTogether(problem, counts, *plan, growth);
    PlanGrowth(problem, counts, caps, with_atomic, snapshot, budget, plan);
    growth = WholeGrowth(problem, counts, *plan);
    if (!Within(NewNodesLeft(problem, *plan), growth)) {
      PlanGrowth(problem, counts, caps, /*with_atomic=*/false, snapshot, budget, plan);
      growth = WholeGrowth(problem, counts, *plan);
    }
  }
  return growth;
}

// Adds nodes that come and are left as they are to those that slack may use.
void AddComing(const EmptyNode& room, int64_t nodes, std::vector<EmptyNode>* coming) {
  const int64_t most = kMostUpcomingNodes - static_cast<int64_t>(coming->size());
  if (most > 0) coming->insert(coming->end(), static_cast<size_t>(std::min(nodes, most)), room);
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
  RemoveExpendablePods(snapshot);
  const std::vector<int64_t> nominated = PlaceNominated(problem, snapshot, budget, plan);
  TrialMemory memory(budget);
  UpcomingNodes upcoming = AddUpcoming(problem, counts, *plan, snapshot, &memory, budget);
  NodesOfGroups growth = PlanWithinLimits(problem, counts, snapshot, budget, plan);
  ExpectOnNodes(problem, plan->scale_up.existing, &upcoming, plan);

  GroupRooms rooms{AddEmptyOnes(problem, snapshot, budget),
                   std::vector<std::vector<EmptyNode>>(problem.groups.size()), upcoming.complete,
                   UsedNodes(problem, upcoming)};
  for (size_t i = 0; i < nominated.size(); ++i) plan->waiting[i].count += nominated[i];
  for (size_t i = 0; i < upcoming.room.size(); ++i) {
    rooms.coming[static_cast<size_t>(upcoming.group[i])].push_back(upcoming.room[i]);
  }
  for (const PlannedNodes& nodes : plan->scale_up.nodes) {
    const int32_t group = plan->grown[static_cast<size_t>(nodes.group)];
    EmptyNode room = rooms.empty[static_cast<size_t>(group)];
    for (const PodCount& pods : nodes.pods) {
      Take(problem, static_cast<size_t>(group), plan->waiting[static_cast<size_t>(pods.pods)].pod.shape,
           pods.count, &room);
    }
    AddComing(room, nodes.nodes, &rooms.coming[static_cast<size_t>(group)]);
    growth[group] -= nodes.nodes;
    GrowthOf(group, plan).for_pods += nodes.nodes;
  }
  for (const auto& [group, without_pods] : growth) {
    const size_t position = static_cast<size_t>(group);
    AddComing(rooms.empty[position], without_pods, &rooms.coming[position]);
    GrowthOf(group, plan).for_pods += without_pods;
  }
  snapshot->Revert();
  return rooms;
}

NodeLimit NewNodesLeft(const LoopProblem& problem, const LoopPlan& plan) {
  int64_t added = 0;
  for (const LoopGrowth& growth : plan.growth) added += growth.nodes();
  return LimitLeft(problem.growth.max_new_nodes, added);
}

int64_t MayAdd(const LoopProblem& problem, std::span<const GroupCounts> counts, const LoopPlan& plan,
               size_t group) {
  return MayGrow(problem, group) ? NodesWithinLimits(problem, counts, plan, group) : 0;
}

int64_t NodesWithinLimits(const LoopProblem& problem, std::span<const GroupCounts> counts,
                          const LoopPlan& plan, size_t group) {
  const int64_t room = RoomOf(problem, counts, plan, group);
  const NodeLimit of_maximum = MostNodesOf(problem, RoomLeft(problem, plan), group);
  const int64_t left = SmallerLimit(NewNodesLeft(problem, plan), of_maximum).value_or(room);
  if (problem.groups[group].drain.atomic && room > left) return 0;
  return std::min(left, room);
}

void GrowForSlack(const LoopProblem& problem, std::span<const GroupCounts> counts,
                  std::span<const int32_t> positions, LoopPlan* plan) {
  for (const SlackDemand& demand : plan->slack.demands) {
    for (const NewNodesOfGroup& nodes : demand.groups) {
      const int32_t group = positions[static_cast<size_t>(nodes.group)];
      const int64_t most = MayAdd(problem, counts, *plan, static_cast<size_t>(group));
      if (nodes.nodes <= 0 || most == 0) continue;
      const bool whole = problem.groups[static_cast<size_t>(group)].drain.atomic;
      GrowthOf(group, plan).for_slack += whole ? most : std::min(nodes.nodes, most);
    }
  }
}

}  // namespace loadline
