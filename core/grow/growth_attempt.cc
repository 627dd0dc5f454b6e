#include "core/grow/growth_attempt.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/cluster/pod_role.h"
#include "core/expand/node_limits.h"
#include "core/fit/line_left.h"
#include "core/fit/trial_memory.h"
#include "core/grow/empty_room.h"
#include "core/grow/left_as_scheduled.h"
#include "core/grow/loop_sizes.h"
#include "core/grow/plan_growth.h"
#include "core/grow/upcoming_nodes.h"
#include "core/grow/waiting.h"

namespace loadline {
namespace {

// New nodes of each group at most.
using GroupCaps = StrongVector<GroupIndex, NodeLimit>;

// Returns how many nodes each group alone may win under the maxima of the cluster.
GroupCaps CapsAlone(const GrowthLedger& ledger) {
  const ResourceRoom room = ledger.RoomLeft();
  GroupCaps caps(ledger.counts.size());
  for (const GroupIndex group : caps.indices()) caps[group] = ledger.MostNodesOf(group, room);
  return caps;
}

bool Within(NodeLimit limit, const NodesOfGroups& growth) {
  int64_t nodes = 0;
  for (const auto& [group, added] : growth) nodes += added;
  return nodes <= limit.value_or(nodes);
}

// Returns what new nodes cost, US dollars per hour.
double PriceOf(NodeGroupSpan groups, const NodesOfGroups& growth) {
  double usd = 0;
  for (const auto& [group, nodes] : growth) usd += UsdOf(groups[group]) * static_cast<double>(nodes);
  return usd;
}

class Attempt {
 public:
  Attempt(const GrowthQuestion& question, const GrowthLedger& before, const GrowthWay& way)
      : untainted_(question.untainted),
        problem_(question.problem),
        fit_(question.problem.scale_down.fit),
        facts_(*before.facts),
        snapshot_(*question.snapshot),
        budget_(question.budget),
        waiting_(question.waiting),
        result_{.way = way, .plan = {}, .ledger = before, .rooms = {}},
        plan_(result_.plan),
        ledger_(result_.ledger) {}

  GrowthAttempt Run() && {
    snapshot_.Fork();
    RemovePodsThatGiveWay(&snapshot_);
    CloseNodesBeingDeleted(facts_.cluster, facts_.deleting, PodsOfDeleting::kWait, &snapshot_);
    PlaceNominated(problem_, &snapshot_, budget_, &waiting_, &plan_);
    TrialMemory memory(budget_);
    AddUpcoming(&memory);
    const NodesOfGroups growth = way().packs_upcoming ? PlanPacked() : PlanWithinLimits();
    if (GrowsWhole(growth)) plan_.scale_up.cost = PriceOf(facts_.groups, growth);
    CountLeft();
    ExpectOnNodes();
    AddEmptyOnes();
    ExpectWherePacked();
    CountGrowth(growth);
    if (problem_.decisions.slack) FillRooms(growth);
    snapshot_.Revert();
    return std::move(result_);
  }

 private:
  const GrowthWay& way() const { return result_.way; }

  // Nodes that start come first. Their memory is taken until growth has been planned.
  void AddUpcoming(TrialMemory* memory) {
    upcoming_.untainted = Untaint(untainted_, facts_.cluster, &snapshot_);
    upcoming_.first = NodeIndex{snapshot_.node_end()};
    Estimator nodes(&snapshot_, &fit_, {}, problem_.daemons, budget_);
    for (const GroupIndex group : facts_.groups.indices()) {
      int64_t most = ledger_.counts[group].upcoming;
      if (!facts_.groups[group].model.has_value() || most == 0) continue;
      NodeGroup node = TemplateOf(facts_.groups[group], "/upcoming");
      for (const StartingNodes& starting : facts_.starting[group]) {
        node.model = starting.model;
        const int64_t added = std::min(starting.nodes, most);
        AddCopies(node, group, added, &nodes, memory);
        most -= added;
      }
      node.model = facts_.groups[group].model;
      if (!way().packs_upcoming) AddCopies(node, group, most, &nodes, memory);
    }
  }

  void AddCopies(const NodeGroup& node, GroupIndex group, int64_t copies, Estimator* nodes,
                 TrialMemory* memory) {
    for (int64_t i = 0; i < copies && upcoming_.complete; ++i) {
      upcoming_.complete = memory->Node(snapshot_);
      if (upcoming_.complete)
        upcoming_.Add(group, RoomOnNode(nodes->AddCopy(node, memory)), /*is_used=*/false);
    }
  }

  // Returns how many nodes on their way are packed with new ones: those that will be as the group's model.
  int64_t Packed(GroupIndex group) const {
    int64_t packed = facts_.groups[group].model.has_value() ? ledger_.counts[group].upcoming : 0;
    for (const StartingNodes& starting : facts_.starting[group]) packed -= starting.nodes;
    return std::max<int64_t>(0, packed);
  }

  EmptyNode RoomOnNode(NodeIndex node) const {
    return RoomOn(fit_.load_line, problem_.names.Find("pods"), snapshot_, node);
  }

  // Leaves a copy of an empty node of each group in the snapshot, for slack.
  void AddEmptyOnes() {
    result_.rooms.empty.resize(facts_.groups.size());
    if (!problem_.decisions.slack) return;
    Estimator nodes(&snapshot_, &fit_, {}, problem_.daemons, budget_);
    TrialMemory memory(budget_);
    for (const GroupIndex group : facts_.groups.indices()) {
      const NodeGroup& of = facts_.groups[group];
      if (!of.model.has_value()) continue;
      result_.rooms.empty[group] = RoomOnNode(nodes.AddCopy(TemplateOf(of, "/empty"), &memory));
    }
  }

  // Leaves a part of each new node free.
  void KeepReserve(NodeShape* model) const {
    if (way().reserve == 0) return;
    for (const ResourceId resource : {kCpu, kMemory}) {
      int64_t* const amount = model->allocatable.Find(resource);
      if (amount != nullptr) *amount -= static_cast<int64_t>(static_cast<double>(*amount) * way().reserve);
    }
  }

  // Plans growth by those groups that may grow; groups that have all of their nodes or none with the others.
  void PlanGrowth(const GroupCaps& caps, bool with_atomic) {
    GrowableGroups groups;
    plan_.grown.clear();
    for (const GroupIndex group : facts_.groups.indices()) {
      const NodeGroup& of = facts_.groups[group];
      if (!facts_.may_grow[group]) continue;
      if (of.atomic) {
        const int64_t whole = ledger_.MayAdd(group);
        if (!with_atomic || whole == 0 || caps[group].value_or(whole) < whole) continue;
      }
      const int64_t current = ledger_.NodesOf(group);
      const int64_t most =
          SmallerLimit(caps[group], std::max<int64_t>(0, of.max_nodes - current)).value_or(0);
      NodeGroup& grows = groups.emplace_back(of);
      KeepReserve(&grows.model->shape);
      grows.target = current;
      grows.max_nodes = current + most;
      grows.balance_set = facts_.balance_sets[group];
      plan_.grown.push_back(group);
    }
    if (way().packs_upcoming) AddUpcomingAsGroups(&groups);
    NodeLimit limit = ledger_.NewNodesLeft();
    if (way().packs_upcoming && limit.has_value()) {
      for (const GroupIndex group : facts_.groups.indices()) *limit += Packed(group);
    }
    PlannedGrowth planned = PlanGrowthOf(problem_, {waiting_, problem_.daemons, groups, limit, way().further},
                                         &snapshot_, budget_);
    plan_.scale_up = std::move(planned.plan);
    plan_.ranked = std::move(planned.ranked);
    plan_.preferred_node = planned.preferred_node;
  }

  void AddUpcomingAsGroups(GrowableGroups* groups) {
    std::optional<int64_t> highest;
    for (const NodeGroup& group : *groups) highest = std::max(highest, group.priority);
    for (const GroupIndex group : facts_.groups.indices()) {
      const NodeGroup& of = facts_.groups[group];
      if (Packed(group) == 0) continue;
      NodeGroup& upcoming = groups->emplace_back(TemplateOf(of, "/upcoming"));
      upcoming.usd_per_hour = 0;
      upcoming.target = 0;
      upcoming.max_nodes = Packed(group);
      upcoming.priority = highest;
      coming_groups_.push_back(group);
    }
  }

  // By group: what the plan for pods lets it grow by. A group that has all of its nodes or none gets all.
  NodesOfGroups WholeGrowth() const {
    NodesOfGroups growth;
    for (const PlannedNodes& nodes : plan_.scale_up.nodes) growth[plan_.grown[nodes.group]] += nodes.nodes;
    for (auto& [group, nodes] : growth) {
      if (facts_.groups[group].atomic) nodes = ledger_.RoomOf(group);
    }
    return growth;
  }

  bool GrowsWhole(const NodesOfGroups& growth) const {
    return std::any_of(growth.begin(), growth.end(),
                       [&](const auto& entry) { return facts_.groups[entry.first].atomic; });
  }

  // Plans growth, and returns how far the groups grow. A packing prices a node of a group that has all of its
  // nodes or none as any other: such a group grows only where no plan without it costs less for as many pods.
  NodesOfGroups PlanWhole(const GroupCaps& caps, bool* with_atomic) {
    PlanGrowth(caps, *with_atomic);
    NodesOfGroups growth = WholeGrowth();
    if (!GrowsWhole(growth) || problem_.ranking.has_value()) return growth;
    WaitingPodsPlan whole = plan_;
    PlanGrowth(caps, /*with_atomic=*/false);
    NodesOfGroups without = WholeGrowth();
    if (CountUnplaced(plan_.scale_up) <= CountUnplaced(whole.scale_up) &&
        PriceOf(facts_.groups, without) < PriceOf(facts_.groups, growth)) {
      *with_atomic = false;
      return without;
    }
    plan_ = std::move(whole);
    return growth;
  }

  // The same, within all limits.
  NodesOfGroups PlanWithinLimits() {
    GroupCaps caps = CapsAlone(ledger_);
    bool with_atomic = true;
    NodesOfGroups growth = PlanWhole(caps, &with_atomic);
    if (!Within(ledger_.NewNodesLeft(), growth)) {
      // A group that grows as a whole would take what others need: it has its turn when they have grown.
      with_atomic = false;
      PlanGrowth(caps, with_atomic);
      growth = WholeGrowth();
    }
    if (!ledger_.Permits(growth)) {
      // Packings know of no such limit: each group gets its part of it, and the plan is made within these.
      caps = ledger_.CapsTogether(growth);
      PlanGrowth(caps, with_atomic);
      growth = WholeGrowth();
      if (!Within(ledger_.NewNodesLeft(), growth)) {
        PlanGrowth(caps, /*with_atomic=*/false);
        growth = WholeGrowth();
      }
    }
    return growth;
  }

  // Nodes on their way are no new ones: they leave the plan for `packed_`.
  NodesOfGroups PlanPacked() {
    PlanGrowth(CapsAlone(ledger_), /*with_atomic=*/true);
    std::vector<PlannedNodes>& nodes = plan_.scale_up.nodes;
    const auto coming = std::stable_partition(nodes.begin(), nodes.end(), [&](const PlannedNodes& entry) {
      return plan_.grown.Contains(entry.group);
    });
    std::move(coming, nodes.end(), std::back_inserter(packed_));
    nodes.erase(coming, nodes.end());
    const std::optional<GrowableIndex> single = plan_.scale_up.best_single.group;
    if (single.has_value() && !plan_.grown.Contains(*single)) plan_.scale_up.best_single = {};
    NodesOfGroups growth = WholeGrowth();
    result_.within_limits = Within(ledger_.NewNodesLeft(), growth) && ledger_.Permits(growth);
    return growth;
  }

  void CountLeft() {
    if (plan_.scale_up.nodes.empty() || problem_.ranking.has_value()) return;
    std::vector<ComingNodes> coming;
    std::vector<NodeGroup> on_their_way;
    on_their_way.reserve(way().packs_upcoming ? ledger_.counts.size() : 0);  // they stay where they are
    for (const GroupIndex group : ledger_.counts.indices()) {
      if (!way().packs_upcoming || Packed(group) == 0) continue;
      on_their_way.push_back(TemplateOf(facts_.groups[group], "/upcoming"));
      coming.push_back({&on_their_way.back(), Packed(group)});
    }
    for (const PlannedNodes& nodes : plan_.scale_up.nodes) {
      coming.push_back({&facts_.groups[plan_.grown[nodes.group]], nodes.nodes});
    }
    const int64_t left = LeftAsScheduled(waiting_, problem_.daemons, coming, fit_, &snapshot_, budget_);
    result_.left_as_scheduled = std::max<int64_t>(0, left - CountUnplaced(plan_.scale_up));
  }

  void ExpectOnNodes() {
    const int64_t untainted = static_cast<int64_t>(upcoming_.untainted.size());
    for (const ExistingUse& use : plan_.scale_up.existing) {
      const int64_t number = static_cast<int64_t>(use.node) - static_cast<int64_t>(upcoming_.first);
      if (number < 0) {
        const bool renumbered = number >= -untainted;
        plan_.expected.push_back(
            {use.pods.pods, use.pods.count,
             renumbered ? upcoming_.untainted[static_cast<size_t>(untainted + number)] : use.node,
             std::nullopt});
        continue;
      }
      const size_t at = static_cast<size_t>(number);
      plan_.expected.push_back({use.pods.pods, use.pods.count, NodeIndex{-1}, upcoming_.group[at]});
      upcoming_.used[at] = 1;
      TakePods(upcoming_.group[at], {&use.pods, 1}, &upcoming_.room[at]);
    }
  }

  void ExpectWherePacked() {
    if (!way().packs_upcoming) return;
    StrongVector<GroupIndex, int64_t> unused(ledger_.counts.size(), 0);
    for (const GroupIndex group : coming_groups_) unused[group] = Packed(group);
    for (const PlannedNodes& nodes : packed_) {
      const GroupIndex group = coming_groups_[IndexOf(nodes.group) - plan_.grown.size()];
      EmptyNode room = result_.rooms.empty[group];
      TakePods(group, nodes.pods, &room);
      for (const PodCount& pods : nodes.pods) {
        plan_.expected.push_back({pods.pods, pods.count * nodes.nodes, NodeIndex{-1}, group});
      }
      for (int64_t i = 0; i < nodes.nodes; ++i) upcoming_.Add(group, room, /*is_used=*/true);
      unused[group] -= nodes.nodes;
    }
    for (const GroupIndex group : coming_groups_) {
      for (int64_t i = 0; i < unused[group]; ++i)
        upcoming_.Add(group, result_.rooms.empty[group], /*is_used=*/false);
    }
  }

  // Takes the room of pods that are placed on a node of the group.
  void TakePods(GroupIndex group, std::span<const PodCount> pods, EmptyNode* room) const {
    const LineLeft line(fit_.load_line, facts_.groups[group].model->shape);
    for (const PodCount& entry : pods) {
      const PodShape& shape = waiting_[static_cast<size_t>(entry.pods)].pod.shape;
      room->room = Minus(room->room, Times(line.TakenBy(shape), entry.count));
      room->slots = std::max<int64_t>(0, room->slots - entry.count);
    }
  }

  // Counts the growth, and nodes on their way that take pods.
  void CountGrowth(const NodesOfGroups& growth) {
    StrongVector<GroupIndex, int64_t>& used = result_.rooms.used;
    used.assign(facts_.groups.size(), 0);
    for (size_t i = 0; i < upcoming_.used.size(); ++i) used[upcoming_.group[i]] += upcoming_.used[i];
    result_.rooms.complete = upcoming_.complete;
    for (const auto& [group, nodes] : growth) ledger_.Of(group).for_pods += nodes;
  }

  // Fills in what upcoming and new nodes have left, which slack alone asks for.
  void FillRooms(NodesOfGroups growth) {
    GroupRooms& rooms = result_.rooms;
    rooms.coming.resize(facts_.groups.size());
    for (size_t i = 0; i < upcoming_.room.size(); ++i)
      rooms.coming[upcoming_.group[i]].push_back(upcoming_.room[i]);
    for (const PlannedNodes& nodes : plan_.scale_up.nodes) {
      const GroupIndex group = plan_.grown[nodes.group];
      EmptyNode room = rooms.empty[group];
      TakePods(group, nodes.pods, &room);
      AddComing(room, nodes.nodes, &rooms.coming[group]);
      growth[group] -= nodes.nodes;
    }
    for (const auto& [group, without_pods] : growth)
      AddComing(rooms.empty[group], without_pods, &rooms.coming[group]);
  }

  const std::span<const Slot> untainted_;
  const LoopProblem& problem_;
  const FitOptions& fit_;
  const LoopFacts& facts_;
  Snapshot& snapshot_;
  WorkBudget* budget_;
  std::vector<PendingPods> waiting_;  // without those that are placed as nominated
  GrowthAttempt result_;
  WaitingPodsPlan& plan_;
  GrowthLedger& ledger_;
  UpcomingNodes upcoming_;
  std::vector<GroupIndex> coming_groups_;  // that stand behind those that may grow
  std::vector<PlannedNodes> packed_;       // of these
};

}  // namespace

GrowthAttempt TryGrowth(const GrowthQuestion& question, const GrowthLedger& before, const GrowthWay& way) {
  return Attempt(question, before, way).Run();
}

}  // namespace loadline
