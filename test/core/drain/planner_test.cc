#include "core/drain/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/cluster/node_kind.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

DrainNode Node(std::string name, int64_t milli_cpu, std::vector<FitPod> pods = {}) {
  return {
      .node = {.name = std::move(name), .allocatable = {{"cpu", milli_cpu}, {"memory", 1000}, {"pods", 110}}},
      .pods = std::move(pods)};
}

// The result of a plan, by names.
struct Outcome {
  std::vector<std::string> removed;
  std::map<std::string, std::string> moves;  // pod, node
  std::map<std::string, std::string> kept;   // node, reason
};

Outcome Read(const DrainModel& model, const DrainPlan& plan) {
  Outcome outcome;
  for (const DrainRemoval& removal : plan.remove) {
    outcome.removed.push_back(model.name(removal.slot));
    for (const DrainMove& move : removal.moves()) {
      const std::string pod =
          move.pod.is_placeholder()
              ? model.problem().placeholders[move.pod.position()].name
              : std::string(model.problem().cluster->pods(removal.slot).name(move.pod.position()));
      outcome.moves[pod] = model.name(move.to);
    }
  }
  for (const DrainKeep& keep : plan.keep)
    outcome.kept[model.name(keep.slot)] = std::string(Name(keep.reason));
  return outcome;
}

Outcome PlanOnce(const DrainCluster& cluster, const DrainOptions& options = {}) {
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  return Read(model, planner.Plan(model.problem(), options, &budget));
}

// Six nodes of which 26.1 % is used: two full ones of 1 core, three of 4 cores and one of 9 cores with a pod
// of 1 core each. Best is to keep one of 4 cores: 6 of 6 cores used. Cluster Autoscaler's order may keep the
// large one, and ends at 6 of 11.
DrainCluster Efficiency() {
  DrainCluster cluster;
  cluster.groups = {{.name = "group", .target = 6, .utilization_threshold = 0.75}};
  cluster.nodes = {
      Node("a-full", 1000, {ReplicaPod("p1", 1000)}), Node("b-full", 1000, {ReplicaPod("p2", 1000)}),
      Node("c-4", 4000, {ReplicaPod("p3", 1000)}),    Node("d-4", 4000, {ReplicaPod("p4", 1000)}),
      Node("e-4", 4000, {ReplicaPod("p5", 1000)}),    Node("f-9", 9000, {ReplicaPod("p6", 1000)})};
  return cluster;
}

TEST(DrainPlannerTest, PacksTheEfficiencyCaseFull) {
  DrainCluster cluster = Efficiency();
  std::sort(cluster.nodes.begin(), cluster.nodes.end(),
            [](const DrainNode& a, const DrainNode& b) { return a.node.name < b.node.name; });
  int64_t orders = 0;
  do {
    const Outcome outcome = PlanOnce(cluster);
    ASSERT_THAT(outcome.removed, UnorderedElementsAre("f-9", "c-4", "d-4"));
    ASSERT_EQ(outcome.moves,
              (std::map<std::string, std::string>{{"p3", "e-4"}, {"p4", "e-4"}, {"p6", "e-4"}}));
    ++orders;
  } while (std::next_permutation(
      cluster.nodes.begin(), cluster.nodes.end(),
      [](const DrainNode& a, const DrainNode& b) { return a.node.name < b.node.name; }));
  EXPECT_EQ(orders, 720);
}

TEST(DrainPlannerTest, ExactFitIsAFitAndOneMoreIsNot) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 400)}), Node("b", 1000, {ReplicaPod("q", 600)})};
  cluster.groups[GroupIndex{0}].utilization_threshold = 0.5;
  EXPECT_THAT(PlanOnce(cluster).removed, ElementsAre("a"));
  cluster.nodes[1] = Node("b", 1000, {ReplicaPod("q", 601)});
  const Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre());
  EXPECT_EQ(outcome.kept,
            (std::map<std::string, std::string>{{"a", "NoPlaceToMovePods"}, {"b", "NotUnderutilized"}}));
}

// The closest node is the one that stays and whose refusal is that of the last filter: c is cordoned, b
// has 400m or 399m left for the 400m of p, and runs another pod that p must not run beside.
TEST(DrainPlannerTest, APodWithoutAPlaceIsToldWithTheFilterOfTheNearestNode) {
  DrainCluster cluster;
  FitPod pod = ReplicaPod("p", 400);
  pod.rules.anti_affinity = {Term(Select("app", "app"), kHostnameLabel)};
  cluster.nodes = {Node("a", 1000, {pod}), Node("b", 1000, {ReplicaPod("q", 600)}), Node("c", 1000, {})};
  cluster.nodes[2].node.unschedulable = true;
  cluster.nodes[2].group.reset();
  const auto nearest = [&] {
    const DrainModel model(cluster);
    DrainPlanner planner;
    WorkBudget budget;
    const DrainPlan& plan = planner.Plan(model.problem(), DrainOptions(), &budget);
    EXPECT_EQ(plan.keep.front().reason, NodeReason::kNoPlaceToMovePods);
    return plan.keep.front().nearest.value_or(Verdict()).filter;
  };
  EXPECT_EQ(nearest(), FilterName::kInterPodAffinity);
  cluster.nodes[1] = Node("b", 1000, {ReplicaPod("q", 601)});
  EXPECT_EQ(nearest(), FilterName::kNodeResourcesFit);
  cluster.nodes.erase(cluster.nodes.begin() + 1);
  EXPECT_EQ(nearest(), FilterName::kNodeUnschedulable);
}

// Only b has room, and is not ready: room is not what the pod lacks. It counts no longer once it lacks room
// itself.
TEST(DrainPlannerTest, APodThatOnlyANodeThatIsNotReadyTakesIsToldSo) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 400)}), Node("b", 1000, {ReplicaPod("q", 600)}),
                   Node("c", 1000, {ReplicaPod("r", 601)})};
  cluster.nodes[1].node.traits.ready = false;
  const auto nearest = [&] {
    const DrainModel model(cluster);
    DrainPlanner planner;
    WorkBudget budget;
    const DrainPlan& plan = planner.Plan(model.problem(), DrainOptions(), &budget);
    EXPECT_EQ(plan.keep.front().reason, NodeReason::kNoPlaceToMovePods);
    return plan.keep.front().nearest.value_or(Verdict()).reasons;
  };
  EXPECT_THAT(nearest(), ElementsAre("b would take it, but is not ready"));
  cluster.nodes[1] = Node("b", 1000, {ReplicaPod("q", 601)});
  cluster.nodes[1].node.traits.ready = false;
  EXPECT_THAT(nearest(), ElementsAre("Insufficient cpu"));
  cluster.nodes.pop_back();
  EXPECT_THAT(nearest(), ElementsAre("Insufficient cpu"));
}

TEST(DrainPlannerTest, ATaintThatKeepsAPodAwayIsNamedWithItsNode) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 400)}), Node("b", 1000, {ReplicaPod("q", 600)})};
  cluster.nodes[1].node.taints = {{"dedicated", "db", "NoSchedule"}};
  const DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan& plan = planner.Plan(model.problem(), DrainOptions(), &budget);
  EXPECT_EQ(plan.keep.front().reason, NodeReason::kNoPlaceToMovePods);
  EXPECT_THAT(plan.keep.front().nearest.value_or(Verdict()).reasons,
              ElementsAre("b has dedicated=db:NoSchedule"));
}

// The other node is removed itself, and would refuse the pod of "a" if it stayed: room is not what the pod
// lacks.
TEST(DrainPlannerTest, APodThatNoNodeTakesIsToldWhyThoughAllOthersGo) {
  DrainCluster cluster;
  FitPod pod = ReplicaPod("p", 400);
  pod.rules.node_selector.Set("disk", "ssd");
  FitNode special = Node("a", 1000, {}).node;
  special.labels.emplace_back("disk", "ssd");
  cluster.nodes = {Node("a", 1000, {pod}), Node("b", 1000, {})};
  cluster.nodes[0].node = special;
  cluster.groups[GroupIndex{0}].utilization_threshold = 0.5;
  const DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan& plan = planner.Plan(model.problem(), DrainOptions(), &budget);
  EXPECT_EQ(plan.remove.size(), 1U);
  EXPECT_EQ(plan.keep.front().reason, NodeReason::kNoPlaceToMovePods);
  EXPECT_EQ(plan.keep.front().nearest.value_or(Verdict()).filter, FilterName::kNodeAffinity);
}

TEST(DrainPlannerTest, DestinationIsNoCandidate) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}), Node("b", 1000, {ReplicaPod("q", 200)})};
  const Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre("a"));
  EXPECT_EQ(outcome.moves, (std::map<std::string, std::string>{{"p", "b"}}));
  EXPECT_EQ(outcome.kept, (std::map<std::string, std::string>{{"b", "AlreadyADestination"}}));
}

// Both are in no group of the question; a node of a group that has not started says so.
TEST(DrainPlannerTest, ANodeThatHasNotStartedHasAReasonOfItsOwn) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {}), Node("b", 1000, {}), Node("c", 1000, {})};
  cluster.nodes[1].group.reset();
  cluster.nodes[2].group.reset();
  DrainModel model(cluster);
  model.problem().not_started = {Slot{1}};
  DrainPlanner planner;
  WorkBudget budget;
  const Outcome outcome = Read(model, planner.Plan(model.problem(), DrainOptions(), &budget));
  EXPECT_EQ(outcome.kept, (std::map<std::string, std::string>{{"b", "NotStarted"}, {"c", "NotAutoscaled"}}));
}

TEST(DrainPlannerTest, RoomIsUsedOnce) {
  DrainCluster cluster;
  cluster.groups[GroupIndex{0}].utilization_threshold = 0.65;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 600)}), Node("b", 1000, {ReplicaPod("q", 610)}),
                   Node("c", 1000, {ReplicaPod("r", 400), ReplicaPod("s", 0)})};
  cluster.nodes[2].group.reset();
  const Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre("a"));
  EXPECT_EQ(outcome.moves, (std::map<std::string, std::string>{{"p", "c"}}));
  EXPECT_EQ(outcome.kept,
            (std::map<std::string, std::string>{{"b", "NoPlaceToMovePods"}, {"c", "NotAutoscaled"}}));
}

TEST(DrainPlannerTest, AVirtualNodeStaysAndTakesNoPods) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}), Node("b", 100'000, {})};
  cluster.nodes[1].group.reset();
  cluster.nodes[1].node.traits.kind = NodeKind::kVirtual;
  Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre());
  EXPECT_EQ(outcome.kept,
            (std::map<std::string, std::string>{{"a", "NoPlaceToMovePods"}, {"b", "VirtualNode"}}));
  // A server of k3s takes pods like any other node, but does not go.
  cluster.nodes[1].node.traits.kind = NodeKind::kControlPlane;
  outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre("a"));
  EXPECT_EQ(outcome.kept, (std::map<std::string, std::string>{{"b", "ControlPlane"}}));
}

TEST(DrainPlannerTest, DearerNodesGoWhereAsManyGo) {
  DrainCluster cluster;
  cluster.groups = {{.name = "cheap", .target = 1, .node_price = 1.0},
                    {.name = "dear", .target = 1, .node_price = 9.0}};
  // The cheap one is emptier, and would go first.
  cluster.nodes = {Node("cheap", 1000, {ReplicaPod("p", 100)}), Node("dear", 1000, {ReplicaPod("q", 200)})};
  cluster.nodes[1].group = GroupIndex{1};
  DrainOptions options;
  EXPECT_THAT(PlanOnce(cluster, options).removed, ElementsAre("dear"));
  options.improve = false;
  EXPECT_THAT(PlanOnce(cluster, options).removed, ElementsAre("cheap"));
}

TEST(DrainPlannerTest, PlaceholdersMoveAndNeedRoom) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000), Node("b", 1000, {ReplicaPod("q", 600)})};
  cluster.placeholders = {{"slack-0", "a", ReplicaPod("", 400)}};
  Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre("a"));
  EXPECT_EQ(outcome.moves, (std::map<std::string, std::string>{{"slack-0", "b"}}));
  cluster.placeholders[0].pod = ReplicaPod("", 401);
  outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre());
  EXPECT_EQ(outcome.kept.at("a"), "PlaceholdersNeedRoom");
}

// A pod that waits and is expected on a node brings names that the cluster does not have, or has under
// another number: its resources are matched by name.
FitPod Expendable(std::string name, int64_t milli_cpu) {
  FitPod pod = ReplicaPod(std::move(name), milli_cpu);
  pod.traits.priority = -11;
  return pod;
}

// a has nothing but an expendable pod of 3 of its 4 cores; the pod on b finds room where one is on c.
TEST(DrainPlannerTest, ExpendablePodsKeepNoNodeAndHoldNoRoom) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 4000, {Expendable("batch-a", 3000)}), Node("b", 4000, {ReplicaPod("web", 1000)}),
                   Node("c", 4000, {ReplicaPod("big", 3000), Expendable("batch-c", 1000)})};
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan plan = planner.Plan(model.problem(), {}, &budget);
  const Outcome outcome = Read(model, plan);
  EXPECT_THAT(outcome.removed, UnorderedElementsAre("a", "b"));
  EXPECT_EQ(outcome.moves, (std::map<std::string, std::string>{{"web", "c"}}));
  for (const DrainRemoval& removal : plan.remove) EXPECT_EQ(removal.empty, model.name(removal.slot) == "a");

  cluster.nodes[2].pods[1] = ReplicaPod("batch-c", 1000);
  EXPECT_THAT(PlanOnce(cluster).removed, ElementsAre("a")) << "c is full, and a is empty";
}

// The trial cluster that is kept from call to call leaves them out as well.
TEST(DrainPlannerTest, AnExpendablePodThatComesLaterHoldsNoRoom) {
  DrainCluster cluster;
  cluster.nodes = {Node("b", 4000, {ReplicaPod("web", 1000)}), Node("c", 4000, {ReplicaPod("big", 3000)})};
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  planner.Plan(model.problem(), {}, &budget);
  cluster.nodes[1].pods.push_back(Expendable("batch", 1000));
  model.Update(cluster);
  EXPECT_THAT(Read(model, planner.Plan(model.problem(), {}, &budget)).removed, ElementsAre("b"));
}

TEST(DrainPlannerTest, ResourcesOfPlaceholdersAreMatchedByName) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000), Node("b", 1000, {ReplicaPod("q", 600)})};
  cluster.nodes[1].node.allocatable.push_back({"example.com/gpu", 1});
  DrainModel model(cluster);
  const auto removed_with = [&](int64_t gpus) {
    ResourceNames names;
    PodResources resources;
    ContainerResources& container = resources.containers.emplace_back();
    container.requests[kCpu] = Quantity::FromMilli(400);
    container.requests[names.Intern("example.com/unknown")] = Quantity::FromUnits(0);
    container.requests[names.Intern("example.com/gpu")] = Quantity::FromUnits(gpus);
    IncomingPod pod;
    pod.shape = MakePodShape("default", /*finished=*/false, resources, names, PodRole::kIncoming);
    pod.names = names;
    model.problem().placeholders.clear();
    model.problem().placeholders.emplace_back("expected", "a", std::move(pod));
    DrainPlanner planner;
    WorkBudget budget;
    DrainOptions options;
    const DrainPlan& plan = planner.Plan(model.problem(), options, &budget);
    return plan.remove.size();
  };
  EXPECT_EQ(removed_with(1), 1u) << "b has one";
  EXPECT_EQ(removed_with(2), 0u) << "b has one";
}

TEST(DrainPlannerTest, GroupsKeepTheirMinimum) {
  DrainCluster cluster;
  cluster.groups = {{.name = "group", .min_nodes = 2, .target = 3}};
  cluster.nodes = {Node("a", 1000), Node("b", 1000), Node("c", 1000)};
  const Outcome outcome = PlanOnce(cluster);
  EXPECT_THAT(outcome.removed, ElementsAre("a"));
  EXPECT_EQ(outcome.kept, (std::map<std::string, std::string>{{"b", "NodeGroupMinSizeReached"},
                                                              {"c", "NodeGroupMinSizeReached"}}));
}

// The order of the last call is gone on with: nodes come, and a slot has another node.
TEST(DrainPlannerTest, NodesAreInNameOrderInEachCall) {
  DrainCluster cluster;
  cluster.groups = {{.name = "group", .min_nodes = 9, .target = 9}};
  cluster.nodes = {Node("m", 1000), Node("c", 1000), Node("x", 1000)};
  DrainModel model(cluster);
  DrainPlanner planner;
  const auto kept = [&] {
    model.Update(cluster);
    WorkBudget budget;
    std::vector<std::string> names;
    for (const DrainKeep& keep : planner.Plan(model.problem(), {}, &budget).keep)
      names.push_back(model.name(keep.slot));
    return names;
  };
  EXPECT_THAT(kept(), ElementsAre("c", "m", "x"));
  cluster.nodes.push_back(Node("k", 1000));
  cluster.nodes.push_back(Node("a", 1000));
  EXPECT_THAT(kept(), ElementsAre("a", "c", "k", "m", "x"));
  cluster.nodes[2] = Node("b", 1000);
  EXPECT_THAT(kept(), ElementsAre("a", "b", "c", "k", "m"));
}

// Three nodes with a pod each, of which a budget lets two go: the third one waits for others only, so that
// its time runs with theirs.
TEST(DrainPlannerTest, TimersRunBehindABudgetThatOthersUseUp) {
  DrainCluster cluster;
  for (const char* const name : {"a", "b", "c"})
    cluster.nodes.push_back(Node(name, 1000, {ReplicaPod(std::string("p-") + name, 100)}));
  cluster.nodes.push_back(Node("full", 1000, {ReplicaPod("q", 600, 0, "other")}));
  DrainBudget entry;
  entry.name = "budget";
  entry.budget.selector = {false, {{"app", SelectorOperator::kIn, {"app"}}}};
  entry.budget.disruptions_allowed = 2;
  entry.budget.desired_healthy = 1;
  entry.budget.current_healthy = entry.budget.expected_pods = 3;
  cluster.budgets = {entry};
  DrainModel model(cluster);
  const DrainOptions options;
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan& first = planner.Plan(model.problem(), options, &budget);
  ASSERT_THAT(first.remove, ::testing::SizeIs(2));
  EXPECT_THAT(first.behind_budgets, ElementsAre(TimedNode{Slot{2}, kDrainNow}));
  // Two are gone, and their pods run elsewhere: what the budget lets go is as before. While they went nothing
  // was left of it.
  const auto allow = [&](int32_t pods) {
    ClusterObject object;
    object.key = {ObjectKind::kDisruptionBudget, entry.namespace_name, entry.name};
    DisruptionBudget now = entry.budget;
    now.disruptions_allowed = pods;
    object.content = now;
    model.cluster().state().objects().Set(std::move(object));
  };
  allow(0);
  model.problem().now_s += 300;
  ASSERT_THAT(planner.Plan(model.problem(), options, &budget).remove, ElementsAre());
  DrainPlanner restarted;
  restarted.SetState(planner.state());
  allow(3);
  entry.budget.desired_healthy = 0;
  allow(3);
  model.problem().now_s += 301;
  for (DrainPlanner* const of : {&planner, &restarted}) {
    const DrainPlan& plan = of->Plan(model.problem(), options, &budget);
    ASSERT_THAT(plan.remove, ::testing::SizeIs(3));
    for (const DrainRemoval& removal : plan.remove) EXPECT_EQ(removal.since_s, kDrainNow);
  }
}

// A budget that now wants all pods keeps a node like any other reason: its timer ends.
TEST(DrainPlannerTest, TimersEndBehindABudgetThatLetsNothingGo) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}),
                   Node("b", 1000, {ReplicaPod("q", 600, 0, "other")})};
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  ASSERT_THAT(planner.Plan(model.problem(), {}, &budget).remove, ::testing::SizeIs(1));
  ClusterObject object;
  object.key = {ObjectKind::kDisruptionBudget, "default", "budget"};
  DisruptionBudget closed;
  closed.selector = {false, {{"app", SelectorOperator::kIn, {"app"}}}};
  closed.desired_healthy = closed.current_healthy = closed.expected_pods = 1;
  object.content = closed;
  model.cluster().state().objects().Set(std::move(object));
  model.problem().now_s += 10;
  const DrainPlan& plan = planner.Plan(model.problem(), {}, &budget);
  EXPECT_THAT(plan.remove, ElementsAre());
  EXPECT_THAT(plan.behind_budgets, ElementsAre());
  EXPECT_THAT(planner.state().unneeded, ElementsAre());
}

// A budget that never had anything left keeps a node like any other reason.
TEST(DrainPlannerTest, NoTimerStartsBehindABudgetWithoutAnythingLeft) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}),
                   Node("b", 1000, {ReplicaPod("q", 600, 0, "other")})};
  DrainBudget entry;
  entry.name = "budget";
  entry.budget.selector = {false, {{"app", SelectorOperator::kIn, {"app"}}}};
  cluster.budgets = {entry};
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  const DrainPlan& plan = planner.Plan(model.problem(), {}, &budget);
  ASSERT_THAT(plan.remove, ElementsAre());
  EXPECT_THAT(plan.behind_budgets, ElementsAre());
  EXPECT_THAT(planner.state().unneeded, ElementsAre());
}

TEST(DrainPlannerTest, TimersRunOverARestartAndStartAnewAfterABreak) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}), Node("b", 1000, {ReplicaPod("q", 600)})};
  DrainModel model(cluster);
  const DrainOptions options;
  DrainPlanner planner;
  WorkBudget budget;
  ASSERT_EQ(planner.Plan(model.problem(), options, &budget).remove.at(0).since_s, kDrainNow);
  model.problem().now_s += 100;
  ASSERT_EQ(planner.Plan(model.problem(), options, &budget).remove.at(0).since_s, kDrainNow);
  DrainPlanner restarted;
  restarted.SetState(planner.state());
  model.problem().now_s += 501;
  const DrainPlan& plan = restarted.Plan(model.problem(), options, &budget);
  ASSERT_EQ(plan.remove.at(0).since_s, kDrainNow);
  EXPECT_TRUE(plan.remove.at(0).start);
  // Its pod fits nowhere for one loop.
  cluster.nodes[1] = Node("b", 1000, {ReplicaPod("q2", 950)});
  cluster.now_s = model.problem().now_s + 10;
  model.Update(cluster);
  ASSERT_THAT(restarted.Plan(model.problem(), options, &budget).remove, ElementsAre());
  cluster.nodes[1] = Node("b", 1000, {ReplicaPod("q3", 600)});
  cluster.now_s += 10;
  model.Update(cluster);
  EXPECT_EQ(restarted.Plan(model.problem(), options, &budget).remove.at(0).since_s, cluster.now_s);
}

// The memory of a node from call to call depends on its group.
TEST(DrainPlannerTest, WhatIsKnownOfNodesFollowsTheirGroups) {
  DrainCluster cluster;
  cluster.nodes = {Node("a", 1000, {ReplicaPod("p", 100)}), Node("b", 1000, {ReplicaPod("q", 600)})};
  cluster.groups = {{.name = "group", .target = 2},
                    {.name = "other", .target = 2, .utilization_threshold = 0.05}};
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  const DrainOptions options;
  const auto plan = [&] { return Read(model, planner.Plan(model.problem(), options, &budget)); };
  ASSERT_THAT(plan().removed, ElementsAre("a"));
  model.problem().group_of.Set(Slot{0}, GroupIndex{1});
  EXPECT_EQ(plan().kept["a"], "NotUnderutilized");
  model.problem().group_of.Set(Slot{0}, GroupIndex{0});
  EXPECT_THAT(plan().removed, ElementsAre("a"));
  model.problem().groups[GroupIndex{0}].min_nodes = 2;
  EXPECT_EQ(plan().kept["b"], "NodeGroupMinSizeReached");
  model.problem().groups[GroupIndex{0}].target = 3;
  EXPECT_EQ(plan().kept["b"], "NotUnderutilized");
}

TEST(DrainPlannerTest, BrakesRemoveNothingAndSayWhy) {
  DrainCluster cluster;
  for (int i = 0; i < 10; ++i) {
    cluster.nodes.push_back(Node("n" + std::to_string(i), 1000, {ReplicaPod("p" + std::to_string(i), 10)}));
  }
  const DrainOptions options;
  struct Case {
    DrainBrake brake;
    void (*change)(DrainProblem*, DrainState*);
  };
  const std::vector<Case> cases = {
      {DrainBrake::kDoubt, [](DrainProblem* problem, DrainState*) { problem->doubt = "the view is stale"; }},
      {DrainBrake::kUnhealthy,
       [](DrainProblem* problem, DrainState*) { problem->unhealthy = "half is not ready"; }},
      {DrainBrake::kClockWentBack, [](DrainProblem* problem, DrainState*) { problem->now_s -= 3600; }},
      // 10 of 13 are left: 23 % are gone.
      {DrainBrake::kPodsVanished, [](DrainProblem*, DrainState* state) { state->pods[0].pods = 13; }},
      {DrainBrake::kNodesVanished, [](DrainProblem*, DrainState* state) { state->nodes = 13; }},
      {DrainBrake::kRecentEvictions,
       [](DrainProblem* problem, DrainState* state) {
         RecentEviction eviction{.name = "evicted", .node = "gone", .at_s = problem->now_s};
         eviction.shape.namespace_name = "default";
         eviction.shape.requests[kCpu] = 2000;
         state->recent_evictions.push_back(std::move(eviction));
       }},
      // 10 of 12: 17 %.
      {DrainBrake::kNone, [](DrainProblem*, DrainState* state) { state->pods[0].pods = state->nodes = 12; }},
  };
  for (const Case& c : cases) {
    DrainModel model(cluster);
    WorkBudget budget;
    DrainPlanner first;
    ASSERT_EQ(first.Plan(model.problem(), options, &budget).remove.size(), 9);
    DrainState state = first.state();
    model.problem().now_s += 1000;
    c.change(&model.problem(), &state);
    DrainPlanner planner;
    planner.SetState(std::move(state));
    const DrainPlan& plan = planner.Plan(model.problem(), options, &budget);
    EXPECT_EQ(Name(plan.brake), Name(c.brake));
    EXPECT_EQ(plan.remove.size(), c.brake == DrainBrake::kNone ? 9 : 0) << Name(c.brake);
    EXPECT_EQ(plan.brake_text.empty(), c.brake == DrainBrake::kNone) << Name(c.brake);
    const bool anew = c.brake == DrainBrake::kUnhealthy;
    const DrainState after = planner.state();
    ASSERT_EQ(after.unneeded.size(), 9) << Name(c.brake);
    EXPECT_EQ(after.unneeded[0].since_s,
              anew ? model.problem().now_s : std::min(kDrainNow, model.problem().now_s))
        << Name(c.brake);
  }
}

TEST(DrainPlannerTest, WorkEndsAndGoesOnWhereItEnded) {
  DrainCluster cluster;
  for (int i = 0; i < 30; ++i) {
    cluster.nodes.push_back(
        Node("n" + std::to_string(10 + i), 1000, {ReplicaPod("p" + std::to_string(i), 10 + i)}));
  }
  DrainOptions options;
  options.min_evaluated_nodes = 5;
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget none(0);
  const DrainPlan& plan = planner.Plan(model.problem(), options, &none);
  EXPECT_EQ(plan.evaluated, 5);
  EXPECT_EQ(plan.skipped, 24);  // one took their pods
  ASSERT_EQ(plan.remove.size(), 5);
  EXPECT_EQ(planner.state().resume_at, "n15");
  WorkBudget enough;
  EXPECT_EQ(planner.Plan(model.problem(), options, &enough).remove.size(), 29);
  EXPECT_EQ(planner.state().resume_at, "");
}

}  // namespace
}  // namespace loadline
