// Plans of slack for single cases, counted by hand.
#include "core/slack/slack_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/core/slack/slack_world.h"

namespace loadline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Nodes of 4000 and 16000.
class SlackPlannerTest : public ::testing::Test {
 protected:
  SlackPlannerTest() { world_.kinds.push_back({"a", {4000, 16'000}, 110, {}}); }

  void AddNodes(int count, const std::vector<WorldPod>& pods = {}) {
    for (int i = 0; i < count; ++i) {
      const int32_t slot = world_.AddNode(0);
      world_.nodes[slot].pods = pods;
      world_.Sync(slot);
    }
  }
  // A node with a pod of 3900, and one that has a startup taint.
  void AddFullAndStartingNode() {
    AddNodes(1, {{{3900, 1000}, "x"}});
    world_.cluster().Put(Slot{1},
                         {.name = "node-1",
                          .allocatable = {{"cpu", 4000}, {"memory", 16'000}, {"pods", 110}},
                          .labels = {{"topology.kubernetes.io/zone", "a"}},
                          .taints = {{"node.cilium.io/agent-not-ready", "", "NoExecute"}}},
                         {});
  }
  SlackPlan Plan(int64_t now_s = 0) { return PlanSlackOnce(&planner_, world_.Question(options_, now_s)); }
  std::vector<CpuMemory> Sizes(PlaceholderKind kind) const {
    std::vector<CpuMemory> sizes;
    for (const Placeholder& placeholder : planner_.State().placeholders) {
      if (placeholder.kind == kind) sizes.push_back(placeholder.size);
    }
    return sizes;
  }

  SlackWorld world_;
  SlackOptions options_;
  SlackPlanner planner_;
};

// Half of 4 * 2000 is 4000 in parts of at most 800: five. Each version keeps more for the biggest pods.
TEST_F(SlackPlannerTest, ReservesForTheBiggestPodsThatMayBe) {
  AddNodes(2, {{{1500, 1000}, "wide"}, {{100, 6000}, "deep"}, {{400, 1000}, ""}});
  options_.rate = kWholeRate / 2;
  Plan();
  EXPECT_TRUE(Sizes(PlaceholderKind::kReserved).empty());
  options_.reserve = ReserveMode::kBiggest;
  Plan();
  EXPECT_THAT(Sizes(PlaceholderKind::kReserved), ElementsAre(CpuMemory{1500, 1000}, CpuMemory{100, 6000}));
  planner_ = SlackPlanner();
  options_.reserve = ReserveMode::kHull;
  const SlackPlan plan = Plan();
  EXPECT_THAT(Sizes(PlaceholderKind::kReserved), ElementsAre(CpuMemory{1500, 6000}));
  // 2000 of cpu and 8000 of memory are wanted; 500 and 2000 are left.
  EXPECT_THAT(Sizes(PlaceholderKind::kStandard), ElementsAre(CpuMemory{500, 2000}));
  EXPECT_EQ(plan.classes[0].status, SlackStatus::kReady);
}

// One of its kind, without an owner, critical, of a StatefulSet: none of them counts as the biggest.
TEST_F(SlackPlannerTest, LeavesOutPodsThatNeedNoSpare) {
  const auto pod = [](const std::string& owner, const std::string& kind, int32_t priority, bool opted_out) {
    FitPod pod;
    pod.requests = SlackWorld::Requests({1000, 1000});
    if (!kind.empty()) pod.traits.owner = PodOwner{kind, "apps/v1", owner, owner};
    pod.traits.priority = priority;
    pod.traits.slack.opted_out = opted_out;
    return pod;
  };
  FitPod small = pod("small", "ReplicaSet", 0, false);
  small.requests = SlackWorld::Requests({300, 300});
  world_.cluster().Add(
      {.name = "node", .allocatable = {{"cpu", 16'000}, {"memory", 16'000}, {"pods", 110}}},
      {pod("single", "ReplicaSet", 0, false), pod("", "", 0, false), pod("set", "StatefulSet", 0, false),
       pod("set", "StatefulSet", 0, false), pod("critical", "ReplicaSet", 2'000'000'000, false),
       pod("critical", "ReplicaSet", 2'000'000'000, false), pod("out", "ReplicaSet", 0, true),
       pod("out", "ReplicaSet", 0, true), small, small});
  options_.reserve = ReserveMode::kBiggest;
  Plan();
  EXPECT_THAT(Sizes(PlaceholderKind::kReserved), ElementsAre(CpuMemory{300, 300}));
}

// R8: copies that keep apart are on nodes of their own, and nodes are asked for where there are too few.
TEST_F(SlackPlannerTest, CopiesKeepTheirRules) {
  AddNodes(2);
  FitPod pod;
  pod.requests = SlackWorld::Requests({100, 100});
  pod.labels = {{"app", "x"}};
  pod.rules.anti_affinity = {Term(Select("app", "x"), kHostnameLabel)};
  world_.Mirror("x", pod, 3);
  const SlackPlan plan = Plan();
  ASSERT_EQ(plan.mirrored.size(), 1u);
  EXPECT_EQ(plan.mirrored[0].placed, 2);
  EXPECT_EQ(plan.mirrored[0].status, SlackStatus::kMissing);
  ASSERT_EQ(plan.demands.size(), 1u);
  EXPECT_EQ(plan.demands[0].nodes, 1);
  std::set<std::string> nodes;
  for (const Placeholder& placeholder : planner_.State().placeholders) nodes.insert(placeholder.node);
  EXPECT_EQ(nodes, (std::set<std::string>{"", "node-0", "node-1"}));
}

// Zone a has room for two copies, but balance lets it take the second one only after zone b has one, and b is
// full. One new node of b takes two: 2 and 2.
TEST_F(SlackPlannerTest, RoomIsTriedAgainOnceNodesHaveCome) {
  world_.kinds.push_back({"b", {4000, 16'000}, 110, {}});
  AddNodes(1);
  const int32_t full = world_.AddNode(1);
  world_.nodes[full].pods = {{{4000, 1000}, "full"}};
  world_.Sync(full);
  FitPod pod;
  pod.requests = SlackWorld::Requests({2000, 100});
  pod.labels = {{"app", "x"}};
  pod.rules.has_spread = true;
  pod.rules.spread = {{.topology_key = "topology.kubernetes.io/zone", .selector = Select("app", "x")}};
  world_.Mirror("x", pod, 4);
  for (int run = 0; run < 2; ++run) {
    const SlackPlan plan = Plan(run);
    ASSERT_EQ(plan.mirrored.size(), 1u);
    EXPECT_EQ(plan.mirrored[0].placed, 1);
    EXPECT_EQ(plan.mirrored[0].status, SlackStatus::kMissing);
    ASSERT_EQ(plan.demands.size(), 1u) << "a second run asks for the same";
    EXPECT_EQ(plan.demands[0].nodes, 1);
  }
  world_.AddNode(1);
  const SlackPlan plan = Plan(2);
  EXPECT_EQ(plan.mirrored[0].placed, 4);
  EXPECT_TRUE(plan.demands.empty());
}

// R9: a copy that only runs in a zone without nodes fits no new node either.
TEST_F(SlackPlannerTest, CopiesOfPodsForOtherNodesAreUnplaceable) {
  AddNodes(2);
  FitPod pod;
  pod.requests = SlackWorld::Requests({100, 100});
  pod.rules.node_selector = MakeLabels({{"topology.kubernetes.io/zone", "elsewhere"}});
  world_.Mirror("x", pod, 1);
  const SlackPlan plan = Plan();
  ASSERT_EQ(plan.mirrored.size(), 1u);
  EXPECT_EQ(plan.mirrored[0].status, SlackStatus::kUnplaceable);
  EXPECT_THAT(plan.mirrored[0].reason, HasSubstr("node affinity"));
  EXPECT_TRUE(plan.demands.empty());
}

// Classes differ by labels that pods select nodes by, and stay so when such a pod is gone: they would change
// with each run of a CronJob.
TEST_F(SlackPlannerTest, ClassesFollowWhatPodsSelect) {
  const auto put = [&](int32_t slot, const std::string& disk, bool selects) {
    FitPod pod;
    pod.requests = SlackWorld::Requests({1000, 1000});
    if (selects) pod.rules.node_selector = MakeLabels({{"disk", disk}});
    world_.cluster().Put(Slot{slot},
                         {.name = "node-" + std::to_string(slot),
                          .allocatable = {{"cpu", 4000}, {"memory", 16'000}, {"pods", 110}},
                          .labels = {{"disk", disk}}},
                         {pod});
  };
  put(0, "ssd", false);
  put(1, "hdd", false);
  EXPECT_EQ(Plan().classes.size(), 1u);
  put(0, "ssd", true);
  EXPECT_EQ(Plan().classes.size(), 2u);
  Plan();
  const SlackState before = planner_.State();
  put(0, "ssd", false);
  const SlackPlan after = Plan();
  EXPECT_EQ(after.classes.size(), 2u);
  EXPECT_EQ(after.added + after.removed, 0);
  EXPECT_EQ(planner_.State(), before);
}

// Placeholders that are no longer wanted are removed after the delay, unless they are wanted again meanwhile.
TEST_F(SlackPlannerTest, OnlyRemovalIsDelayed) {
  AddNodes(2, {{{2000, 2000}, "x"}});
  options_.rate = kWholeRate;
  EXPECT_EQ(Plan(0).added, 5);  // 4000 in parts of 800
  options_.rate = kWholeRate / 5;
  EXPECT_EQ(Plan(100).removed, 0);
  EXPECT_EQ(Plan(699).removed, 0);
  EXPECT_EQ(Plan(700).removed, 4);
  options_.rate = kWholeRate;
  EXPECT_EQ(Plan(701).added, 4);
  options_.rate = kWholeRate / 5;
  Plan(800);
  options_.rate = kWholeRate;
  EXPECT_EQ(Plan(1000).removed, 0);
  options_.rate = kWholeRate / 5;
  EXPECT_EQ(Plan(1500).removed, 0);
}

// A node of 8000 is cordoned, and its placeholder and then its pod move to one of 3400: 10 % of 3000 are
// wanted there, and the placeholder of the former class would leave 100. No node is asked for.
TEST_F(SlackPlannerTest, ExcessGivesWayToWhatIsWanted) {
  world_.kinds = {{"a", {8000, 16'000}, 110, {}}, {"a", {3400, 16'000}, 110, {}}};
  const int32_t large = world_.AddNode(0);
  const int32_t small = world_.AddNode(1);
  world_.nodes[large].pods = {{{3000, 1000}, "x"}};
  world_.Sync(large);
  EXPECT_TRUE(Plan().demands.empty());
  world_.nodes[large].cordoned = true;
  world_.SyncAll();
  EXPECT_TRUE(Plan(1).demands.empty());
  EXPECT_EQ(planner_.State().placeholders[0].node, "node-1");
  std::swap(world_.nodes[large].pods, world_.nodes[small].pods);
  world_.SyncAll();
  const SlackPlan plan = Plan(2);
  EXPECT_TRUE(plan.demands.empty());
  EXPECT_EQ(plan.removed, 1);
  const std::vector<Placeholder> kept = planner_.State().placeholders;
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].node, "node-1");
  EXPECT_THAT(kept[0].owner, HasSubstr("3400"));
  planner_.CheckConsistent();
}

// In place of one of 1000 there is room for three of 300: the other one of 1000 stays.
TEST_F(SlackPlannerTest, ExcessGivesWayOnlyAsFarAsNeeded) {
  PlaceholderSet set;
  set.SetNode(0, {.name = "n", .allocatable = {2000, 2000}, .real = {}, .free_slots = 110, .node_class = 0});
  const PlaceholderGroup excess{PlaceholderKind::kStandard, "a", {1000, 10}};
  const PlaceholderGroup wanted{PlaceholderKind::kStandard, "b", {300, 10}};
  for (const int64_t id : {1, 2}) set.Add(excess, id);
  const std::vector<int32_t> classes = {0};
  EXPECT_EQ(set.Place(excess, classes), 2);
  for (const int64_t id : {3, 4, 5}) set.Add(wanted, id);
  const PlaceholderSet::Replaced replaced = set.PlaceInstead(wanted, excess, 2, classes);
  EXPECT_EQ(replaced.placed, 3);
  EXPECT_EQ(replaced.removed, 1);
  EXPECT_TRUE(set.Has(int64_t{1}) && !set.Has(int64_t{2}));
  set.CheckConsistent();
}

// Half of 2000 are 500 twice, and then one of them is wanted. The other one loses its node, and none is asked
// for it. It is kept until the delay is over.
TEST_F(SlackPlannerTest, NoNodeIsAskedForExcess) {
  options_.rate = kWholeRate / 2;
  AddNodes(1, {{{2000, 1000}, "x"}});
  EXPECT_THAT(Plan().demands, SizeIs(0));
  EXPECT_THAT(planner_.State().placeholders, SizeIs(2));
  world_.nodes[0].pods = {{{1000, 500}, "x"}};
  world_.SyncAll();
  Plan(1);
  world_.kinds[0].slots = 2;  // for a pod and a placeholder
  world_.SyncAll();
  EXPECT_TRUE(Plan(2).demands.empty());
  EXPECT_THAT(planner_.State().placeholders, SizeIs(2));
  EXPECT_EQ(Plan(601).removed, 1);
  planner_.CheckConsistent();
}

// The next process knows how much is kept, and since when it is more than wanted.
TEST_F(SlackPlannerTest, TheDelayOfRemovalOutlivesTheProcess) {
  AddNodes(2, {{{2000, 2000}, "x"}});
  AddNodes(1);
  options_.rate = kWholeRate;
  Plan(0);
  options_.rate = kWholeRate / 5;
  EXPECT_EQ(Plan(100).removed, 0);
  const KeptSlack kept = planner_.Kept();
  planner_ = SlackPlanner();
  planner_.Restore(SlackState());  // a loop that failed was undone
  planner_.Restore(kept);
  const SlackPlan plan = Plan(699);
  EXPECT_EQ(plan.added + plan.removed, 0);
  EXPECT_EQ(plan.classes[0].count, 5);
  EXPECT_EQ(plan.classes[0].placed, 5);
  EXPECT_EQ(planner_.Kept(), kept);
  EXPECT_EQ(Plan(700).removed, 4);
  planner_.Restore(kept);  // who keeps something itself knows best
  EXPECT_EQ(Plan(701).classes[0].count, 1);
}

// A loop that took over what another process kept, and failed, leaves no trace in a state that is put back:
// the fifth placeholder, for which two nodes have no room, stays.
TEST_F(SlackPlannerTest, AStateThatIsPutBackKeepsWhatHasNoRoom) {
  AddNodes(2, {{{2000, 2000}, "x"}});
  options_.rate = kWholeRate;
  Plan(0);
  const SlackState state = planner_.State();
  const KeptSlack kept = planner_.Kept();
  planner_ = SlackPlanner();
  planner_.Restore(kept);
  planner_.Restore(state);
  const SlackPlan plan = Plan(100);
  EXPECT_EQ(plan.added + plan.removed, 0);
  EXPECT_EQ(plan.classes[0].count, 5);
}

// The state of a process that has not led for long must not buy nodes: a node with 2000 left takes two of
// 800.
TEST_F(SlackPlannerTest, WhatAnotherProcessKeptBuysNoNodes) {
  AddNodes(1, {{{2000, 2000}, "x"}});
  options_.rate = kWholeRate / 5;  // 400 are wanted
  Plan(0);
  KeptSlack kept = planner_.Kept();
  kept.groups[0].of.size = {800, 800};
  kept.groups[0].count = 1'000;
  planner_ = SlackPlanner();
  planner_.Restore(kept);
  const SlackPlan plan = Plan(100);
  EXPECT_TRUE(plan.demands.empty());
  EXPECT_LE(plan.classes[0].count, 2);
  EXPECT_EQ(plan.classes[0].count, plan.classes[0].placed);
}

// Five of 800 and 800 as before are too much memory where 400 are wanted: 4000, of which 400 would be made
// anew, 800 are one placeholder, and 2800, which is 7 times what is wanted, are tolerated or not.
TEST_F(SlackPlannerTest, PlaceholdersGetANewSizeWhereTheOldOneExceedsTheTolerance) {
  AddNodes(2, {{{2000, 2000}, "x"}});
  options_.rate = kWholeRate;
  options_.removal_delay_s = 0;
  Plan(0);
  EXPECT_THAT(Sizes(PlaceholderKind::kStandard), AllOf(SizeIs(5), Each(CpuMemory{800, 800})));
  for (auto& [slot, node] : world_.nodes) {
    node.pods = {{{2000, 200}, "x"}};
    world_.Sync(slot);
  }
  options_.size_tolerance = 7 * kWholeRate;
  Plan(1);
  EXPECT_THAT(Sizes(PlaceholderKind::kStandard), AllOf(SizeIs(5), Each(CpuMemory{800, 800})));
  options_.size_tolerance = 7 * kWholeRate - kWholeRate / 400;
  Plan(2);
  EXPECT_THAT(Sizes(PlaceholderKind::kStandard), AllOf(SizeIs(5), Each(CpuMemory{800, 80})));
}

TEST_F(SlackPlannerTest, LimitsAreNamed) {
  AddNodes(4, {{{2000, 2000}, "x"}});
  options_.rate = kWholeRate;
  options_.max_placeholders = 3;
  SlackPlan plan = Plan();
  EXPECT_EQ(plan.classes[0].count, 3);
  EXPECT_EQ(plan.classes[0].status, SlackStatus::kLimited);
  EXPECT_EQ(plan.classes[0].reason, "at most 3 placeholders");
  options_ = SlackOptions();
  options_.max_extra = {100, 100};
  planner_ = SlackPlanner();
  plan = Plan();
  EXPECT_EQ(plan.classes[0].sum, (CpuMemory{100, 100}));
  EXPECT_EQ(plan.classes[0].status, SlackStatus::kLimited);
}

// E1: placeholders that run as pods take no room, and are no demand.
TEST_F(SlackPlannerTest, PlaceholdersThatRunDoNotCount) {
  AddNodes(1, {{{1000, 1000}, "x"}});
  const SlackPlan before = Plan();
  FitPod pod, placeholder;
  pod.requests = SlackWorld::Requests({1000, 1000});
  placeholder.requests = SlackWorld::Requests({3000, 15'000});
  placeholder.traits.placeholder = true;
  world_.cluster().Put(Slot{0},
                       {.name = "node-0",
                        .allocatable = {{"cpu", 4000}, {"memory", 16'000}, {"pods", 2}},
                        .labels = {{"topology.kubernetes.io/zone", "a"}}},
                       {pod, placeholder});
  const SlackPlan after = Plan();
  EXPECT_EQ(after.classes[0].basis, before.classes[0].basis);
  EXPECT_EQ(after.classes[0].placed, 1);
}

// A tenth of 1000 is wanted, and fits: a pod of a priority below -10 gives way to it. It does so to a pod
// that waits as well, of which a tenth of 2950 is wanted too, and for which 50 stay free; another expendable
// pod that waits is nothing.
TEST_F(SlackPlannerTest, ExpendablePodsDoNotCount) {
  FitPod pod, expendable, waiting;
  pod.requests = SlackWorld::Requests({1000, 1000});
  expendable.requests = SlackWorld::Requests({2900, 1000});
  expendable.traits.priority = -100;
  waiting.requests = SlackWorld::Requests({2950, 1000});
  world_.cluster().Put(Slot{0},
                       {.name = "node-0",
                        .allocatable = {{"cpu", 4000}, {"memory", 16'000}, {"pods", 3}},
                        .labels = {{"topology.kubernetes.io/zone", "a"}}},
                       {pod, expendable});
  SlackPlan plan = Plan();
  ASSERT_EQ(plan.classes.size(), 1u);
  EXPECT_EQ(plan.classes[0].sum, (CpuMemory{100, 100}));
  EXPECT_EQ(plan.classes[0].status, SlackStatus::kReady);
  EXPECT_TRUE(plan.demands.empty());
  planner_ = SlackPlanner();
  SlackQuestion question = world_.Question(options_);
  question.waiting.push_back({world_.cluster().Incoming(waiting), 1});
  question.waiting.push_back({world_.cluster().Incoming(expendable), 1});
  plan = PlanSlackOnce(&planner_, question);
  EXPECT_EQ(plan.classes[0].basis, (CpuMemory{3950, 2000}));
  EXPECT_EQ(plan.classes[0].placed, 0);
  ASSERT_EQ(plan.demands.size(), 1u);
  EXPECT_EQ(plan.demands[0].nodes, 1);
}

// A tenth of 3900 + 3000 is 690: beside the pod that waits for it the node that starts has room for that, and
// beside one of 3500, for which 740 are wanted, it has not.
TEST_F(SlackPlannerTest, NodesThatStartTakePodsAndPlaceholdersOnceTheyHave) {
  AddFullAndStartingNode();
  const auto nodes_for = [&](int64_t waiting_cpu, bool starting) {
    FitPod waiting;
    waiting.requests = SlackWorld::Requests({waiting_cpu, 1000});
    planner_ = SlackPlanner();
    SlackQuestion question = world_.Question(options_);
    question.waiting.push_back({world_.cluster().Incoming(waiting), 1});
    if (starting) question.starting = {Slot{1}};
    const SlackPlan plan = PlanSlackOnce(&planner_, question);
    EXPECT_EQ(plan.classes.size(), 1u);
    EXPECT_EQ(plan.classes[0].basis, (CpuMemory{3900 + waiting_cpu, 2000}));
    return plan.demands.empty() ? 0 : plan.demands[0].nodes;
  };
  EXPECT_EQ(nodes_for(3000, true), 0);
  EXPECT_EQ(nodes_for(3000, false), 1);
  EXPECT_EQ(nodes_for(3500, true), 1);
}

// Beside the pod of 2000 that waits for it, the node that starts has room for two copies of 1000.
TEST_F(SlackPlannerTest, NodesThatStartTakeCopiesBesidePodsThatWait) {
  AddFullAndStartingNode();
  options_.rate = 0;
  FitPod waiting, copied;
  waiting.requests = SlackWorld::Requests({2000, 1000});
  copied.requests = SlackWorld::Requests({1000, 1000});
  const auto nodes_for = [&](int32_t copies) {
    world_.Mirror("burst", copied, copies);
    planner_ = SlackPlanner();
    SlackQuestion question = world_.Question(options_);
    question.waiting.push_back({world_.cluster().Incoming(waiting), 1});
    question.starting = {Slot{1}};
    const SlackPlan plan = PlanSlackOnce(&planner_, question);
    return plan.demands.empty() ? 0 : plan.demands[0].nodes;
  };
  EXPECT_EQ(nodes_for(2), 0);
  EXPECT_EQ(nodes_for(3), 1);
}

// The pod of a node that leaves needs 2000 of the 2100 that are free elsewhere: it would be evicted again
// from its own node, which has room for a second one and is the fuller one. It does not keep its replacement
// out of the zone. Its slack is wanted once: 390 in all.
TEST_F(SlackPlannerTest, PodsOfNodesThatLeaveNeedRoomElsewhere) {
  AddNodes(1, {{{1900, 1000}, "x"}});
  FitPod pod;
  pod.requests = SlackWorld::Requests({2000, 1000});
  pod.labels = {{"app", "y"}};
  pod.rules.tolerations = {{"", "Exists", "", ""}};
  pod.rules.anti_affinity = {Term(Select("app", "y"), "topology.kubernetes.io/zone")};
  world_.cluster().Put(Slot{1},
                       {.name = "node-1",
                        .allocatable = {{"cpu", 4000}, {"memory", 16'000}, {"pods", 110}},
                        .labels = {{"topology.kubernetes.io/zone", "a"}},
                        .unschedulable = true},
                       {pod});
  SlackQuestion question = world_.Question(options_);
  question.leaving = {Slot{1}};
  question.waiting.push_back(
      {world_.cluster().Incoming(pod), 1, std::nullopt, std::nullopt, /*still_run=*/true});
  const SlackPlan plan = PlanSlackOnce(&planner_, question);
  ASSERT_EQ(plan.classes.size(), 1u);
  EXPECT_EQ(plan.classes[0].basis, (CpuMemory{3900, 2000}));
  EXPECT_EQ(plan.classes[0].sum, (CpuMemory{390, 200}));
  EXPECT_EQ(plan.classes[0].placed, 0);
  ASSERT_EQ(plan.demands.size(), 1u);
  EXPECT_EQ(plan.demands[0].nodes, 1);
}

}  // namespace
}  // namespace loadline
