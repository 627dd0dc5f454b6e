#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/drain/node_reason.h"
#include "core/grow/loop_plan.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(LoopTest, PodsFirstUseNodesThatAreThereThenThoseOnTheirWayThenNewOnes) {
  AddGroup("g", 1000, 1, /*target=*/2);  // one there, one on its way
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 500)}}};
  Pending(Replica("w", 500), 5);
  const LoopPlan plan = Plan();
  // 500m are left on a, 1000m on the node to come; two pods need one more.
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}},
                                         ExpectedPlace{0, 2, NodeIndex{-1}, GroupIndex{0}}));
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0));
}

TEST_F(LoopTest, NodesOnTheirWayCountTowardsTheMaximum) {
  AddGroup("g", 1000, 1, /*target=*/2, /*max=*/2);
  Pending(Replica("w", 1000), 5);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(3));
}

TEST_F(LoopTest, AGroupThatIsHeldOrWithoutAPriceOrTemplateDoesNotGrow) {
  AddGroup("held", 1000, 1, 0);
  AddGroup("unpriced", 1000, 1, 0);
  AddGroup("dear", 1000, 9, 0);
  problem_.groups[GroupIndex{0}].blocked_reason = "back-off";
  problem_.groups[GroupIndex{1}].usd_per_hour.reset();
  Pending(Replica("w", 1000), 1);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{2}, 1, 0}));
}

TEST_F(LoopTest, PodsOfNodesBeingDeletedWaitAsWell) {
  AddGroup("g", 1000, 1, 1);
  FitPod daemon = Replica("d", 100);
  daemon.traits.owner->kind = "DaemonSet";
  FitPod mirror = Replica("m", 100);
  mirror.traits.mirror = true;
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 400), Replica("q", 400), daemon, mirror}}};
  nodes_[0].node.taints = {{"ToBeDeletedByClusterAutoscaler", std::to_string(kLoopNow), "NoSchedule"}};
  drain_.deleting = {{.node = "a", .uid = "", .since_s = kLoopNow, .drain = true}};
  const LoopPlan plan = Plan();
  ASSERT_THAT(plan.waiting, SizeIs(1));
  EXPECT_EQ(plan.waiting[0].count, 2);
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
}

TEST_F(LoopTest, PlaceholderPodsAndExpendableOnesHoldNothingAgainstPodsThatWait) {
  AddGroup("g", 1000, 1, 1);
  FitPod placeholder = Replica("slack", 900);
  placeholder.traits.placeholder = true;
  FitPod expendable = Replica("batch", 100);
  expendable.traits.priority = -11;
  nodes_ = {{NodeOf("a", 1000), {placeholder, expendable}}};
  Pending(Replica("w", 1000), 1);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  EXPECT_THAT(plan.growth, IsEmpty());
}

TEST_F(LoopTest, SlackUsesWhatNewNodesHaveLeftBeforeItAsksForMore) {
  // 10 % of what is requested, with w 2400m: two placeholders of 120m. The node to come for w has 400m left.
  problem_.decisions.slack = true;
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 900)}}, {NodeOf("b", 1000), {Replica("q", 900)}}};
  Pending(Replica("w", 600), 1);
  const LoopPlan plan = Plan();
  ASSERT_THAT(plan.slack.shapes, SizeIs(1));
  EXPECT_EQ(plan.slack.shapes[0].count, 2);
  EXPECT_EQ(plan.slack.shapes[0].group.size.cpu, 120);
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
}

// The one pod is expected on a, the first node that takes it, though b is fuller. 10 % of 1700m are kept:
// they fit beside it on neither but on b.
TEST_F(LoopTest, SlackLeavesTheRoomWherePodsAreExpected) {
  problem_.decisions.slack = true;
  AddGroup("g", 1000, 1, 2, /*max=*/2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}, {NodeOf("b", 1000), {Replica("q", 800)}}};
  Pending(Replica("w", 300), 1);
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  ASSERT_THAT(slack_.placeholders, SizeIs(1));
  EXPECT_EQ(slack_.placeholders[0].node, "b");

  nodes_[1].pods = {Replica("q", 650)};  // 350m are left there, and 100m on a
  slack_ = {};
  plan = Plan();
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  EXPECT_EQ(slack_.placeholders[0].node, "b") << "and not a, as if the pod were on b";
}

TEST_F(LoopTest, SlackGrowsTheCheapestGroupOfItsClassAndAsksOnce) {
  problem_.decisions.slack = true;
  AddGroup("dear", 1000, 2, 1);
  AddGroup("cheap", 1000, 1, 0);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 0, 1}));
  problem_.groups[GroupIndex{1}].target = 1;
  EXPECT_THAT(Plan().growth, IsEmpty()) << "the node is on its way";
}

// The sum by which all groups may grow binds slack as well, and pods are served first, also those of a group
// that is named later.
TEST_F(LoopTest, SlackGetsWhatPodsLeaveOfWhatAllGroupsMayGrowBy) {
  problem_.decisions.slack = true;
  AddGroup("a", 1000, 1, 1);
  AddGroup("b", 2000, 2, 0);
  nodes_ = {{NodeOf("n", 1000), {Replica("p", 1000)}}};  // its slack wants one more node of "a"
  Pending(Replica("w", 2000), 2);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}, LoopGrowth{GroupIndex{1}, 2, 0}));
  problem_.growth.max_new_nodes = 2;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 2, 0}));
  problem_.growth.max_new_nodes = 3;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}, LoopGrowth{GroupIndex{1}, 2, 0}));
  ClearPending();
  problem_.growth.max_new_nodes = 0;
  EXPECT_THAT(Plan().growth, IsEmpty());
}

// A group of five nodes or none at 5 costs less than two others at 6, and counts with all five.
TEST_F(LoopTest, AGroupThatHasAllOfItsNodesOrNoneGrowsAsAWholeWithinTheLimitOfAll) {
  AddGroup("a", 1000, 1, /*target=*/0, /*max=*/5);
  AddGroup("b", 1000, 3, 0);
  problem_.groups[GroupIndex{0}].atomic = true;
  Pending(Replica("w", 1000), 2);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 5, 0}));
  problem_.growth.max_new_nodes = 5;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 5, 0}));
  problem_.growth.max_new_nodes = 4;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 2, 0}));
  // With another group that has to grow beside it.
  problem_.growth.max_new_nodes = 5;
  problem_.groups[GroupIndex{1}].usd_per_hour = 1;
  templates_[GroupIndex{1}] = NodeOf("b", 2000);
  ClearPending();
  Pending(Replica("v", 2000), 1);
  Pending(Replica("w", 1000), 1);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 2, 0}));
}

TEST_F(LoopTest, SlackGrowsAGroupThatHasAllOfItsNodesOrNoneAsAWhole) {
  problem_.decisions.slack = true;
  AddGroup("a", 1000, 1, /*target=*/1, /*max=*/1);
  AddGroup("b", 1000, 1, /*target=*/0, /*max=*/3);
  problem_.groups[GroupIndex{1}].atomic = true;
  nodes_ = {{NodeOf("n", 1000), {Replica("p", 1000)}}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 0, 3}));
  problem_.growth.max_new_nodes = 2;
  EXPECT_THAT(Plan().growth, IsEmpty());
}

// A node without a UID, whose UID is remembered; and one that nothing but its taint tells of.
TEST_F(LoopTest, PodsOfAllNodesBeingDeletedWait) {
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}, {NodeOf("b", 1000), {Replica("q", 700)}}};
  nodes_[1].node.taints = {{"ToBeDeletedByClusterAutoscaler", std::to_string(kLoopNow), "NoSchedule"}};
  drain_.deleting = {{.node = "a", .uid = "u1", .since_s = kLoopNow, .drain = true}};
  const LoopPlan plan = Plan();
  ASSERT_THAT(plan.waiting, SizeIs(2));
  EXPECT_EQ(plan.waiting[0].pod.shape.requests.Get(kCpu), 600);
  EXPECT_EQ(plan.waiting[1].pod.shape.requests.Get(kCpu), 700);
}

// Four nodes at 0.2 for a pod that one node at 0.5 takes as well; for three pods they cost less.
TEST_F(LoopTest, AGroupThatHasAllOfItsNodesOrNoneCostsWhatAllOfThemDo) {
  AddGroup("atomic", 1000, 0.2, 0, 4);
  AddGroup("single", 1000, 0.5, 0);
  problem_.groups[GroupIndex{0}].atomic = true;
  Pending(Replica("w", 900), 1);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));
  ClearPending();
  Pending(Replica("w", 900), 3);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 4, 0}));
  EXPECT_DOUBLE_EQ(plan.scale_up.cost, 0.8) << "of all four";
}

// The same beside a node on its way, which is packed anew: one at 0.5 for the second pod, and not four at
// 0.2.
TEST_F(LoopTest, AGroupThatHasAllOfItsNodesOrNoneCostsAsMuchBesideNodesOnTheirWay) {
  AddGroup("atomic", 1000, 0.2, 0, 4);
  AddGroup("single", 1000, 0.5, 1);
  problem_.groups[GroupIndex{0}].atomic = true;
  Pending(Replica("w", 900), 2);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));
  EXPECT_DOUBLE_EQ(plan.scale_up.cost, 0.5);
}

// The pod of a, which is being deleted, keeps apart from its own kind by zone: on b there is none any more.
TEST_F(LoopTest, APodOfANodeBeingDeletedDoesNotKeepItselfAway) {
  AddGroup("g", 1000, 1, 2);
  FitPod apart = Replica("p", 400);
  apart.labels = {{"app", "p"}};
  apart.rules.anti_affinity = {Term(Select("app", "p"), kZone)};
  nodes_ = {{NodeOf("a", 1000), {apart}}, {NodeOf("b", 1000), {}}};
  for (TestNode& node : nodes_) node.node.labels.push_back({kZone, "one"});
  drain_.deleting = {{.node = "a", .uid = "", .since_s = kLoopNow, .drain = true}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{1}}));
  EXPECT_THAT(plan.growth, IsEmpty());
}

// 300m of a, which is being deleted, beside 400m and 300m: all fit on one of the other nodes.
TEST_F(LoopTest, PodsOfNodesBeingDeletedAreCountedOnceInDrains) {
  problem_.decisions.scale_down = true;
  AddGroup("g", 1000, 1, 3);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 300)}},
            {NodeOf("b", 1000), {Replica("q", 400)}},
            {NodeOf("c", 1000), {Replica("r", 300)}}};
  drain_.deleting = {{.node = "a", .uid = "", .since_s = kLoopNow, .drain = true}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(Removed(plan), SizeIs(1));
}

// One pod in each of three zones. That of zone one leaves, and only b takes it there: b stays, though it is
// empty.
TEST_F(LoopTest, ANodeStaysOnWhichAPodOfANodeBeingDeletedIsExpected) {
  problem_.decisions.scale_down = true;
  AddGroup("g", 1000, 1, 4);
  FitPod pod = Replica("p", 400);
  pod.labels = {{"app", "p"}};
  pod.rules.has_spread = true;
  pod.rules.spread = {{.max_skew = 1, .topology_key = kZone, .selector = Select("app", "p")}};
  nodes_ = {{NodeOf("a", 1000), {pod}},
            {NodeOf("b", 1000), {}},
            {NodeOf("c", 1000), {pod}},
            {NodeOf("d", 1000), {pod}}};
  const std::string zones[] = {"one", "one", "two", "three"};
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].node.labels.push_back({kZone, zones[i]});
    for (FitPod& there : nodes_[i].pods) there.name = there.uid = "p-" + zones[i];
  }
  drain_.deleting = {{.node = "a", .uid = "", .since_s = kLoopNow, .drain = true}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{1}}));
  EXPECT_THAT(Removed(plan), IsEmpty());
}

// 500m fit on b only, beside a pod that waits: it makes no group grow, and b stays.
TEST_F(LoopTest, PodsThatAreTooYoungToGrowForKeepNodes) {
  problem_.decisions.scale_down = true;
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}, {NodeOf("b", 1000), {}}};
  Pending(Replica("w", 300), 1);
  EXPECT_THAT(Removed(Plan()), ElementsAre("b")) << "600m and 300m fit on a";
  drain_ = {};
  young_ = {Replica("y", 500)};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(Removed(plan), IsEmpty());
  EXPECT_THAT(plan.waiting, SizeIs(1));
}

TEST_F(LoopTest, NodesGoOnlyWhenNothingGrows) {
  problem_.decisions.scale_down = true;
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 100)}}, {NodeOf("b", 1000), {Replica("q", 200)}}};
  LoopPlan plan = Plan();
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kConsidered);
  EXPECT_THAT(Removed(plan), SizeIs(1));

  Pending(Replica("w", 950), 1);
  plan = Plan();
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kGrowing);
  EXPECT_THAT(Removed(plan), ElementsAre("a"));
  EXPECT_EQ(plan.scale_down.remove[0].waits, NodeReason::kGroupsGrow);
  EXPECT_FALSE(plan.scale_down.remove[0].start);
  EXPECT_EQ(plan.scale_down.status, DrainStatus::kNoNodeDeleted);

  problem_.groups[GroupIndex{0}].target =
      3;  // it was asked for; a holds 100m, which would be gone, so w needs it
  plan = Plan();
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kConsidered);
  EXPECT_THAT(Removed(plan), ElementsAre("a"));
  EXPECT_EQ(plan.scale_down.remove[0].waits, NodeReason::kHoldsRoomForWaitingPods);
  EXPECT_FALSE(plan.scale_down.remove[0].start);
  problem_.decisions.scale_down = false;
  EXPECT_EQ(Plan().no_scale_down, NoScaleDown::kNotDecided);
}

// Three of four nodes can go. One pod waits for a node on its way: one of them is kept for it, which is
// enough, and timers of all run on.
TEST_F(LoopTest, PodsThatWaitForNodesOnTheirWayKeepAsMuchRoomAsTheyNeed) {
  problem_.decisions.scale_down = true;
  problem_.scale_down.deletion.timers.unneeded_time_s = 600;
  AddGroup("g", 1000, 1, 5);
  for (const std::string name : {"a", "b", "c", "d"}) {
    nodes_.push_back({NodeOf(name, 1000), {Replica("p-" + name, 100)}});
  }
  Pending(Replica("w", 950), 1);
  LoopPlan plan = Plan();
  ASSERT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(Removed(plan), ElementsAre("a", "b", "c"));
  problem_.drain.now_s += 601;
  plan = Plan();
  std::vector<std::string> waits;
  for (const DrainRemoval& removal : plan.scale_down.remove) {
    EXPECT_EQ(removal.since_s, kLoopNow);
    waits.push_back(removal.start ? "start" : std::string(Name(removal.waits)));
  }
  EXPECT_THAT(waits, ElementsAre("start", "start", "HoldsRoomForWaitingPods"));

  // Pods that no emptied node would take keep none.
  ClearPending();
  templates_[GroupIndex{0}] = NodeOf("g", 4000);
  Pending(Replica("w", 3000), 1);
  plan = Plan();
  ASSERT_THAT(plan.growth, IsEmpty());
  for (const DrainRemoval& removal : plan.scale_down.remove) EXPECT_TRUE(removal.start);
}

TEST_F(LoopTest, ANodeGoesWithThePodsThatAreExpectedOnIt) {
  problem_.decisions.scale_down = true;
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 400)}}, {NodeOf("b", 1000), {Replica("q", 400)}}};
  EXPECT_THAT(Removed(Plan()), SizeIs(1)) << "800m fit on one node";
  drain_ = {};
  Pending(Replica("w", 300), 1);  // 1100m do not
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.expected, SizeIs(1));
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(Removed(plan), IsEmpty());
}

TEST_F(LoopTest, ANodeGoesOnlyWhereItsSlackFitsElsewhere) {
  problem_.decisions.scale_down = true;
  problem_.decisions.slack = true;
  problem_.slack.rate = kWholeRate / 2;  // 400m of 800m
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 400)}}, {NodeOf("b", 1000), {Replica("q", 400)}}};
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(Removed(plan), IsEmpty());
  problem_.slack.rate = kWholeRate / 5;  // 160m: 960m fit on one node
  slack_ = {};
  drain_ = {};
  EXPECT_THAT(Removed(Plan()), SizeIs(1));
}

// Follows plans as a cloud without delay does, until nothing is left to do.
TEST_F(LoopTest, FollowedItComesToRestAndStaysThere) {
  problem_.decisions = {};
  AddGroup("small", 1000, 1, 1, 40);
  AddGroup("large", 4000, 3.9, 0, 40);
  nodes_ = {{NodeOf("small-0", 1000), {}}};
  int64_t wait = 37;  // pods of 300m
  int64_t named = 1;
  int32_t acted = 0;
  for (int32_t loop = 0; loop < 60; ++loop) {
    problem_.drain.now_s += 700;  // beyond every delay
    ClearPending();
    if (wait > 0) Pending(Replica("w", 300), wait);
    const LoopPlan plan = Plan();
    bool changed = false;
    for (const LoopGrowth& growth : plan.growth) {
      const std::string& group = problem_.groups[growth.group].name;
      const int64_t cpu = growth.group == GroupIndex{0} ? 1000 : 4000;
      for (int64_t i = 0; i < growth.nodes(); ++i) {
        nodes_.push_back({NodeOf(group + "-" + std::to_string(named++), cpu), {}, growth.group});
        changed = true;
      }
      problem_.groups[growth.group].target += growth.nodes();
    }
    // A scheduler that fills the first node that takes a pod.
    for (TestNode& node : nodes_) {
      int64_t free = node.node.allocatable[0].second;
      for (const FitPod& pod : node.pods) free -= pod.requests[0].second;
      for (; wait > 0 && free >= 300; free -= 300, --wait) {
        node.pods.push_back(Replica("p" + std::to_string(named++), 300));
        changed = true;
      }
    }
    std::vector<std::string> gone;
    for (const DrainRemoval& removal : plan.scale_down.remove) {
      if (!removal.start) continue;
      TestNode& node = nodes_[static_cast<size_t>(removal.slot)];
      wait += static_cast<int64_t>(node.pods.size());
      gone.push_back(node.node.name);
      --problem_.groups[*node.group].target;
    }
    std::erase_if(nodes_, [&](const TestNode& node) {
      return std::find(gone.begin(), gone.end(), node.node.name) != gone.end();
    });
    changed |= !gone.empty();
    if (changed) acted = loop;
  }
  EXPECT_EQ(wait, 0);
  EXPECT_LE(acted, 10) << "fifty loops at rest";
  // 37 * 300m = 11100m, with 10 % slack 12210m.
  int64_t cpu = 0;
  for (const TestNode& node : nodes_) cpu += node.node.allocatable[0].second;
  EXPECT_GE(cpu, 12'210);
  EXPECT_LE(cpu, 20'000);
}

}  // namespace
}  // namespace loadline
