// The state that one loop of scale-down leaves for the next one: brakes, timers, and what was begun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/drain/node_reason.h"
#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

DrainNode LoopNode(std::string name, std::vector<FitPod> pods = {}) {
  return {.node = {.name = std::move(name), .allocatable = {{"cpu", 1000}, {"memory", 1000}, {"pods", 110}}},
          .pods = std::move(pods)};
}

FitPod PodOwnedBy(std::string name, const std::string& kind, const std::string& owner, int64_t milli_cpu) {
  FitPod pod = ReplicaPod(std::move(name), milli_cpu, 0, owner);
  pod.traits.owner->kind = kind;
  if (kind == "Job") pod.traits.owner->api_version = "batch/v1";
  return pod;
}

void SetReplicas(ObjectKind kind, const std::string& name, int64_t wanted, int64_t there, DrainModel* model) {
  ClusterObject object;
  object.key = {kind, "default", name};
  object.content = Workload{.uid = "uid-" + name, .target_replicas = wanted, .current_replicas = there};
  model->cluster().state().objects().Set(std::move(object));
}

// 20 nodes with a pod of each of six DaemonSets. Six of them have five more pods of one ReplicaSet each, 14
// have none.
DrainCluster WithDaemons() {
  DrainCluster cluster;
  for (int i = 0; i < 20; ++i) {
    const std::string number = std::to_string(10 + i);
    DrainNode node = LoopNode("n" + number);
    for (int k = 0; k < 6; ++k) {
      const std::string ds = "ds-" + std::to_string(k);
      node.pods.push_back(PodOwnedBy(absl::StrCat(ds, "-", number), "DaemonSet", ds, 10));
    }
    for (int k = 0; i < 6 && k < 5; ++k) {
      node.pods.push_back(ReplicaPod(absl::StrCat("app-", number, "-", k), 150));
    }
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

std::vector<std::string> Started(const DrainModel& model, const DrainPlan& plan) {
  std::vector<std::string> names;
  for (const DrainRemoval& removal : plan.remove) {
    if (removal.start) names.push_back(model.name(removal.slot));
  }
  return names;
}

// The state once the client has begun to delete nodes.
DrainState WithBegun(DrainState state, const std::vector<std::string>& names, int64_t now_s) {
  for (const std::string& name : names) {
    std::erase_if(state.unneeded, [&](const UnneededNode& node) { return node.node == name; });
    state.deleting.push_back({.node = name, .since_s = now_s});
  }
  return state;
}

TEST(DrainLoopsTest, OurOwnRemovalsTripNoBrake) {
  DrainCluster cluster = WithDaemons();
  DrainOptions options;
  DrainPlanner planner;
  WorkBudget budget;
  DrainModel model(cluster);
  ASSERT_THAT(planner.Plan(model.problem(), options, &budget).remove, SizeIs(14));
  model.problem().now_s += 601;
  const std::vector<std::string> begun = Started(model, planner.Plan(model.problem(), options, &budget));
  ASSERT_THAT(begun, SizeIs(10));

  // All ten went: 60 of 150 pods, and half of the nodes.
  std::erase_if(cluster.nodes, [&](const DrainNode& node) {
    return std::find(begun.begin(), begun.end(), node.node.name) != begun.end();
  });
  cluster.now_s = kDrainNow + 701;
  DrainModel after(cluster);
  DrainPlanner next;
  next.SetState(WithBegun(planner.state(), begun, kDrainNow + 601));
  const DrainPlan& plan = next.Plan(after.problem(), options, &budget);
  EXPECT_EQ(Name(plan.brake), Name(DrainBrake::kNone)) << plan.brake_text;
  ASSERT_THAT(plan.remove, SizeIs(4));
  for (const DrainRemoval& removal : plan.remove) {
    EXPECT_EQ(removal.since_s, kDrainNow);
    EXPECT_TRUE(removal.start);
  }
}

// Ten nodes: nine with ten pods of an owner each, and one that is idle. All pods of the owner go.
class VanishedPodsTest : public ::testing::Test {
 protected:
  DrainBrake BrakeAfter(ObjectKind kind, const std::string& kind_name, int64_t wanted, bool exists,
                        bool complete) {
    DrainCluster cluster;
    for (int i = 0; i < 9; ++i) {
      DrainNode node = LoopNode("n" + std::to_string(i), {ReplicaPod("stays-" + std::to_string(i), 600)});
      for (int k = 0; k < 2; ++k) {
        node.pods.push_back(
            PodOwnedBy("goes-" + std::to_string(i) + "-" + std::to_string(k), kind_name, "wave", 10));
      }
      cluster.nodes.push_back(std::move(node));
    }
    cluster.nodes.push_back(LoopNode("idle"));
    DrainOptions options;
    WorkBudget budget;
    DrainModel before(cluster);
    DrainPlanner planner;
    EXPECT_THAT(planner.Plan(before.problem(), options, &budget).remove, SizeIs(1));
    for (DrainNode& node : cluster.nodes) {
      while (node.pods.size() > 1) node.pods.pop_back();
    }
    cluster.now_s += 601;
    DrainModel after(cluster);
    if (exists) SetReplicas(kind, "wave", wanted, 0, &after);
    if (complete) after.cluster().state().objects().SetComplete(kind);
    DrainPlanner next;
    next.SetState(planner.state());
    const DrainPlan& plan = next.Plan(after.problem(), options, &budget);
    EXPECT_EQ(Started(after, plan).size(), plan.brake == DrainBrake::kNone ? 1u : 0u);
    EXPECT_EQ(next.state().unneeded.at(0).since_s, kDrainNow) << "timers go on over a brake";
    text_ = plan.brake_text;
    return plan.brake;
  }
  std::string text_;
};

TEST_F(VanishedPodsTest, ReasonsAreThatTheOwnerWantsThemNoMoreOrIsGone) {
  EXPECT_EQ(BrakeAfter(ObjectKind::kJob, "Job", 0, true, true), DrainBrake::kNone);
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 0, true, true), DrainBrake::kNone);
  // 5 of 27 that are wanted are missing: 18 %.
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 5, true, true), DrainBrake::kNone);
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 0, false, true), DrainBrake::kNone);
}

TEST_F(VanishedPodsTest, WithoutAReasonTheyHoldTheLoop) {
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 6, true, true), DrainBrake::kPodsVanished);
  EXPECT_EQ(text_, "6 of the 27 pods of the last loop are gone, and nothing says why");
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 18, true, true), DrainBrake::kPodsVanished);
  EXPECT_EQ(BrakeAfter(ObjectKind::kReplicaSet, "ReplicaSet", 0, false, false), DrainBrake::kPodsVanished)
      << "the owner may be there";
  EXPECT_EQ(BrakeAfter(ObjectKind::kJob, "Workflow", 0, false, true), DrainBrake::kPodsVanished);
}

// Anybody can name an owner, and may so hide what becomes of his own pods only.
TEST(DrainLoopsTest, AForgedOwnerHidesNoVanishedPod) {
  struct ForgedOwner {
    const char* kind;
    const char* api_version;
    bool counts;
  };
  const std::vector<ForgedOwner> owners = {{"DaemonSet", "apps/v1", false},
                                           {"DaemonSet", "example.com/v1", true},
                                           {"ReplicaSet", "apps/v1", false},
                                           {"ReplicaSet", "example.com/v1", true},
                                           {"Job", "batch/v1", false},
                                           {"Job", "example.com/v1", true},
                                           {"ReplicationController", "v1", false},
                                           {"ReplicationController", "example.com/v1", true}};
  for (const ForgedOwner& forged : owners) {
    FitPod pod = PodOwnedBy("p", forged.kind, "forged", 10);
    pod.traits.owner->api_version = forged.api_version;
    FitCluster cluster;
    cluster.Add(LoopNode("a").node, {pod});
    FitCluster later;
    later.Add(LoopNode("a").node, {});
    for (size_t kind = 0; kind < kObjectKinds; ++kind) {
      later.state().objects().SetComplete(static_cast<ObjectKind>(kind));
    }
    const std::vector<OwnerPods> now = CountPods(later.state());
    EXPECT_EQ(VanishedPods(CountPods(cluster.state()), now, now, later.state().objects()).all.vanished,
              forged.counts ? 1 : 0)
        << forged.api_version << " " << forged.kind;
  }
}

// A ReplicaSet wants two pods and has lost one. A pod of another namespace that names its UID is not in its
// place.
TEST(DrainLoopsTest, PodsOfOtherNamespacesAreNotOfAnOwner) {
  FitPod forged = PodOwnedBy("forged", "ReplicaSet", "web", 10);
  forged.namespace_name = "evil";
  const FitPod one = PodOwnedBy("p", "ReplicaSet", "web", 10);
  const FitPod two = PodOwnedBy("q", "ReplicaSet", "web", 10);
  FitCluster cluster;
  cluster.Add(LoopNode("a").node, {one, two, forged});
  FitCluster later;
  later.Add(LoopNode("a").node, {one, forged});
  ClusterObject object;
  object.key = {ObjectKind::kReplicaSet, "default", "web"};
  object.content = Workload{.uid = "uid-web", .target_replicas = 2, .current_replicas = 2};
  later.state().objects().Set(std::move(object));
  later.state().objects().SetComplete(ObjectKind::kReplicaSet);
  const std::vector<OwnerPods> now = CountPods(later.state());
  EXPECT_EQ(VanishedPods(CountPods(cluster.state()), now, now, later.state().objects()).all.vanished, 1);
}

TEST(DrainLoopsTest, AFinishedPodHasNotVanished) {
  FitPod pod = PodOwnedBy("p", "Workflow", "flow", 10);
  FitCluster cluster;
  cluster.Add(LoopNode("a").node, {pod, pod});
  const std::vector<OwnerPods> before = CountPods(cluster.state());
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_EQ(before[0].pods, 2);
  EXPECT_EQ(before[0].kind, std::nullopt);
  FitPod done = pod;
  done.traits.phase = PodPhase::kSucceeded;
  FitCluster later;
  later.Add(LoopNode("a").node, {done});
  const std::vector<OwnerPods> now = CountPods(later.state());
  EXPECT_EQ(VanishedPods(before, now, now, later.state().objects()).all.vanished, 1)
      << "one is gone, one is done";
}

// The followed counts are those of a new one: pods that are added, removed and changed, nodes that are
// removed.
TEST(DrainLoopsTest, ACounterFollowsItsCluster) {
  const auto node = [](const char* name) { return LoopNode(name).node; };
  FitPod done = PodOwnedBy("d", "Job", "job", 10);
  done.traits.phase = PodPhase::kSucceeded;
  FitCluster cluster;
  cluster.Put(Slot{0}, node("a"), {ReplicaPod("p", 10), PodOwnedBy("j", "Job", "job", 10)});
  cluster.Put(Slot{1}, node("b"), {ReplicaPod("q", 10), PodOwnedBy("ds", "DaemonSet", "ds", 10)});
  PodCounter counter;
  counter.Follow(cluster.state(), std::nullopt);
  ASSERT_THAT(counter.counts(), SizeIs(2));
  int64_t since = cluster.state().change_count();
  const auto follows = [&] {
    counter.Follow(cluster.state(), cluster.state().changes(since));
    since = cluster.state().change_count();
    return counter.counts() == CountPods(cluster.state());
  };
  const auto pods = [&] {
    int64_t sum = 0;
    for (const OwnerPods& owner : counter.counts()) sum += owner.pods;
    return sum;
  };
  cluster.Put(Slot{0}, node("a"), {ReplicaPod("p", 10), ReplicaPod("p2", 20), done});
  cluster.Put(Slot{0}, node("a"), {ReplicaPod("p", 10), done, ReplicaPod("p2", 20)});
  EXPECT_TRUE(follows());
  EXPECT_EQ(pods(), 3);
  cluster.Put(Slot{2}, node("c"), {ReplicaPod("r", 10)});
  cluster.state().RemoveNode(Slot{0});
  EXPECT_TRUE(follows());
  EXPECT_THAT(counter.counts(), SizeIs(1)) << "of the job nothing is left";
  EXPECT_EQ(pods(), 2);
}

// Three of ten nodes vanish by themselves, which is more than 20 %: timers keep running.
TEST(DrainLoopsTest, NodesThatVanishWithoutUsBrake) {
  DrainCluster cluster;
  for (int i = 0; i < 10; ++i) cluster.nodes.push_back(LoopNode("n" + std::to_string(i)));
  DrainOptions options;
  WorkBudget budget;
  DrainPlanner planner;
  DrainModel model(cluster);
  planner.Plan(model.problem(), options, &budget);
  cluster.nodes.resize(7);
  cluster.now_s += 601;
  DrainModel after(cluster);
  DrainPlanner next;
  next.SetState(planner.state());
  EXPECT_EQ(next.Plan(after.problem(), options, &budget).brake, DrainBrake::kNodesVanished);
  EXPECT_EQ(next.state().unneeded.at(0).since_s, kDrainNow);
}

// The clock was an hour ahead when the eviction was noted.
TEST(DrainLoopsTest, AnEvictionOfTheFutureIsKeptAsLongAsAnyOther) {
  DrainCluster cluster;
  cluster.nodes = {LoopNode("a"), LoopNode("b", {ReplicaPod("p", 900)})};
  DrainModel model(cluster);
  const DrainOptions options;
  WorkBudget budget;
  DrainState state;
  state.recent_evictions.push_back({.name = "evicted", .node = "gone", .at_s = kDrainNow + 3600});
  state.recent_evictions.back().shape.namespace_name = "default";
  DrainPlanner planner;
  planner.SetState(std::move(state));
  planner.Plan(model.problem(), options, &budget);
  ASSERT_THAT(planner.state().recent_evictions, SizeIs(1));
  EXPECT_EQ(planner.state().recent_evictions[0].at_s, kDrainNow);
  model.problem().now_s += options.recent_eviction_s;
  planner.Plan(model.problem(), options, &budget);
  EXPECT_THAT(planner.state().recent_evictions, IsEmpty());
}

// The names that the pod was read with: "example.com/gpu" has the number that another resource has by now.
TEST(DrainLoopsTest, AnEvictedPodKeepsItsNames) {
  DrainCluster cluster;
  cluster.nodes = {LoopNode("a"), LoopNode("b", {ReplicaPod("p", 900)})};
  for (DrainNode& node : cluster.nodes) node.node.allocatable.emplace_back("example.com/other", 0);
  for (DrainNode& node : cluster.nodes) node.node.allocatable.emplace_back("example.com/gpu", 1);
  for (const int64_t gpus : {1, 2}) {
    DrainModel model(cluster);
    RecentEviction eviction{.name = "evicted", .node = "gone", .at_s = kDrainNow};
    eviction.shape.namespace_name = "default";
    eviction.shape.requests[eviction.names.Intern("example.com/gpu")] = gpus;
    ASSERT_NE(eviction.names.Find("example.com/gpu"), model.cluster().names().Find("example.com/gpu"));
    DrainPlanner planner;
    planner.SetState({.recent_evictions = {eviction}});
    WorkBudget budget;
    EXPECT_EQ(Name(planner.Plan(model.problem(), DrainOptions(), &budget).brake),
              Name(gpus == 1 ? DrainBrake::kNone : DrainBrake::kRecentEvictions));
  }
}

// An id that the new table does not have at all.
TEST(DrainLoopsTest, AnEvictedPodOutlivesALongerTable) {
  DrainCluster cluster;
  cluster.nodes = {LoopNode("a"), LoopNode("b", {ReplicaPod("p", 900)})};
  DrainModel model(cluster);
  RecentEviction eviction{.name = "evicted", .node = "gone", .at_s = kDrainNow};
  eviction.shape.namespace_name = "default";
  for (const char* name : {"example.com/a", "example.com/b", "example.com/c", "example.com/d"}) {
    eviction.shape.requests[eviction.names.Intern(name)] = 1;
  }
  DrainPlanner planner;
  planner.SetState({.recent_evictions = {eviction}});
  WorkBudget budget;
  EXPECT_EQ(Name(planner.Plan(model.problem(), DrainOptions(), &budget).brake), Name(DrainBrake::kNone));
}

DrainCluster SixNodes() {
  DrainCluster cluster;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    cluster.nodes.push_back(LoopNode("n" + number, {ReplicaPod("p" + number, 10 + i)}));
  }
  return cluster;
}

TEST(DrainLoopsTest, ANodeThatWasNotLookedAtIsSkippedOnce) {
  DrainModel model(SixNodes());
  DrainOptions options;
  options.min_evaluated_nodes = 2;
  WorkBudget enough;
  DrainPlanner first;
  ASSERT_THAT(first.Plan(model.problem(), options, &enough).remove, SizeIs(5));
  DrainPlanner planner;
  planner.SetState(first.state());
  model.problem().now_s += 30;
  WorkBudget none(0);
  const DrainPlan& plan = planner.Plan(model.problem(), options, &none);
  EXPECT_EQ(plan.evaluated, 2);
  EXPECT_EQ(plan.skipped, 3);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfWork);
  EXPECT_THAT(plan.remove, SizeIs(2));
  const DrainState state = planner.state();
  EXPECT_EQ(state.resume_at, "") << "nodes of the former plan come first in any case";
  ASSERT_THAT(state.unneeded, SizeIs(5));
  for (const UnneededNode& node : state.unneeded) EXPECT_EQ(node.since_s, kDrainNow);
}

TEST(DrainLoopsTest, NothingGoesThatWasNotVerified) {
  const DrainCluster cluster = SixNodes();
  const DrainOptions options;
  for (const bool evicted : {false, true}) {
    DrainModel model(cluster);
    WorkBudget enough;
    DrainPlanner first;
    ASSERT_THAT(first.Plan(model.problem(), options, &enough).remove, SizeIs(5));
    EXPECT_EQ(first.Plan(model.problem(), options, &enough).cut_short_by, BudgetEnd::kNotEnded);
    model.problem().now_s += 601;
    DrainState state = first.state();
    if (evicted) {
      state.recent_evictions.push_back({.name = "q", .node = "gone", .at_s = model.problem().now_s});
    } else {
      state = WithBegun(std::move(state), {"n0"}, model.problem().now_s);
    }
    DrainPlanner planner;
    planner.SetState(std::move(state));
    WorkBudget none(0);
    const DrainPlan& plan = planner.Plan(model.problem(), options, &none);
    EXPECT_EQ(Name(plan.brake), Name(DrainBrake::kNotVerified));
    EXPECT_EQ(plan.brake_text,
              "the limit of work was reached before pods of nodes being deleted and replacements of evicted "
              "pods had been looked at");
    EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfWork);
    EXPECT_THAT(plan.remove, IsEmpty());
    EXPECT_EQ(planner.state().unneeded.at(0).since_s, kDrainNow);
  }
}

// A kind of pod that nobody has placed yet costs a table of all nodes.
TEST(DrainLoopsTest, VerificationEndsAtItsMemory) {
  DrainModel model(SixNodes());
  DrainPlanner planner;
  planner.SetState({.deleting = {{.node = "n0", .drain = true}}});
  WorkBudget budget(1'000'000, nullptr, 1'000);
  const DrainPlan& plan = planner.Plan(model.problem(), DrainOptions(), &budget);
  EXPECT_EQ(Name(plan.brake), Name(DrainBrake::kNotVerified));
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfMemory);
}

// Two pods of one budget that allows one of them: its node is drained alone, also when it began in another
// loop.
TEST(DrainLoopsTest, ARiskyDrainThatIsUnderWayKeepsOthersFromStarting) {
  DrainCluster cluster;
  cluster.nodes = {LoopNode("a", {ReplicaPod("p1", 10, 0, "web"), ReplicaPod("p2", 10, 0, "web")}),
                   LoopNode("b", {ReplicaPod("q", 20)}), LoopNode("c", {ReplicaPod("r", 600)})};
  DrainBudget budget_of_web;
  budget_of_web.name = "web";
  budget_of_web.budget.selector = Select("app", "web");
  budget_of_web.budget.disruptions_allowed = 1;
  cluster.budgets = {budget_of_web};
  DrainOptions options;
  options.deletion.timers.unneeded_time_s = 0;
  DrainModel model(cluster);
  WorkBudget work;
  DrainPlanner first;
  const DrainPlan& plan = first.Plan(model.problem(), options, &work);
  ASSERT_THAT(plan.remove, SizeIs(2));
  DrainState state = first.state();
  EXPECT_EQ(state.unneeded[0].risky, state.unneeded[0].node == "a");
  EXPECT_EQ(state.unneeded[1].risky, state.unneeded[1].node == "a");

  for (const bool known : {true, false}) {
    if (known) {
      state = {.deleting = {{.node = "a", .since_s = kDrainNow, .drain = true, .risky = true}}};
    } else {
      state = {};  // after a restart there is a taint only
      cluster.nodes[0].node.taints = {
          {"ToBeDeletedByClusterAutoscaler", std::to_string(kDrainNow), "NoSchedule"}};
    }
    DrainModel next_model(cluster);
    DrainPlanner next;
    next.SetState(state);
    const DrainPlan& next_plan = next.Plan(next_model.problem(), options, &work);
    ASSERT_THAT(next_plan.remove, SizeIs(1)) << known;
    EXPECT_EQ(Name(next_plan.remove[0].waits), Name(NodeReason::kWaitsForOtherDrains)) << known;
  }
}

// The drain of a node is over once the cloud deletes it, though the node may be there for minutes; it still
// counts as one that is being removed.
TEST(DrainLoopsTest, ANodeThatTheCloudDeletesIsNoDrain) {
  DrainCluster cluster;
  cluster.nodes = {LoopNode("a", {ReplicaPod("p", 10)}), LoopNode("b", {ReplicaPod("q", 20)}),
                   LoopNode("c", {ReplicaPod("r", 600)})};
  DrainOptions options;
  options.deletion.timers.unneeded_time_s = 0;
  options.deletion.max_drain_parallelism = 1;
  const auto starts = [&](std::vector<Slot> drained) {
    DrainModel model(cluster);
    model.problem().drained = std::move(drained);
    DrainPlanner planner;
    planner.SetState({.deleting = {{.node = "a", .since_s = kDrainNow, .drain = true}}});
    WorkBudget work;
    const DrainPlan& plan = planner.Plan(model.problem(), options, &work);
    return plan.remove.size() == 1 && plan.remove[0].start;
  };
  EXPECT_FALSE(starts({}));
  EXPECT_TRUE(starts({Slot{0}}));
  options.deletion.max_scale_down_parallelism = 1;
  EXPECT_FALSE(starts({Slot{0}}));
}

}  // namespace
}  // namespace loadline
