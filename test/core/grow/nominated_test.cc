// Pods for which the scheduler makes room on a node.
#include "core/grow/nominated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/drain/node_reason.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Node a of 1,000m is full of a pod that ends in 30 seconds, b has a pod of 800m. A pod of 800m is nominated
// to a.
class NominatedTest : public LoopTest {
 protected:
  NominatedTest() {
    AddGroup("g", 1000, 1, /*target=*/2);
    FitPod ending = Replica("ending", 1000);
    ending.traits.deleted_s = kLoopNow + 30;
    nodes_ = {{NodeOf("a", 1000), {ending}}, {NodeOf("b", 1000), {Replica("stays", 800)}}};
    nominated_ = Replica("w", 800);
    nominated_.traits.priority = 10;
    Pending(nominated_, 1);
    problem_.nominations = {{0, Slot{0}, 1}};
  }

  FitPod& ending() { return nodes_[0].pods[0]; }
  // The next plan starts from the last one.
  LoopPlan PlanAt(int64_t seconds) {
    problem_.drain.now_s = kLoopNow + seconds;
    ending().traits.deleted_s = problem_.drain.now_s + 30;
    LoopPlan plan = Plan();
    problem_.reserved_nodes = plan.next_reserved_nodes;
    return plan;
  }

  FitPod nominated_;
};

TEST_F(NominatedTest, ANominatedPodNeedsNoNewNode) {
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  EXPECT_EQ(plan.waiting[0].count, 1);
  EXPECT_THAT(plan.reserved_nodes, ElementsAre(Slot{0}));
  problem_.nominations.clear();
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1})) << "it would need one";
}

TEST_F(NominatedTest, ItsRoomIsHeldAgainstOthers) {
  Pending(Replica("other", 300), 1);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1})) << "200m are left on a, and on b";
  ClearPending();
  Pending(nominated_, 1);
  Pending(Replica("other", 200), 2);
  EXPECT_THAT(Plan().growth, IsEmpty()) << "what is left is for others";
}

TEST_F(NominatedTest, OnlyEndingPodsOfLowerPriorityMakeRoom) {
  ending().traits.priority = 10;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  ending().traits.priority = 9;
  ending().traits.deleted_s = kLoopNow + kLongestPreemptionS;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1})) << "it takes too long";
  ending().traits.deleted_s = kLoopNow + kLongestPreemptionS - 1;
  EXPECT_THAT(Plan().growth, IsEmpty());
  ending().traits.deleted_s = kLoopNow - kOverduePreemptionS;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1})) << "it should have ended";
  ending().traits.deleted_s.reset();
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
}

TEST_F(NominatedTest, OnceTheyHaveEndedTheRoomIsStillHeld) {
  nodes_[0].pods.clear();
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(plan.reserved_nodes, ElementsAre(Slot{0}));
}

TEST_F(NominatedTest, WhatDoesNotFitIsNotNominated) {
  nodes_[0].pods.push_back(Replica("stays-too", 201));
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  EXPECT_THAT(plan.reserved_nodes, IsEmpty());
  nodes_[0].pods.pop_back();
  problem_.nominations = {{0, Slot{7}, 1}, {0, Slot{-1}, 1}, {0, Slot{0}, 0}};
  plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1})) << "there is no such node";
}

TEST_F(NominatedTest, NoMoreAreNominatedThanWait) {
  problem_.nominations = {{0, Slot{0}, 1'000'000}, {0, Slot{0}, 1}};
  EXPECT_THAT(Plan().expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  ClearPending();
  nominated_.requests[0].second = 100;
  Pending(nominated_, 3);
  EXPECT_THAT(Plan().expected, ElementsAre(ExpectedPlace{0, 3, NodeIndex{0}})) << "ten would fit";
}

// The node would be the one to go: b takes no pod of it, and it is unneeded once its pod has ended.
TEST_F(NominatedTest, ItsNodeDoesNotStartToGoAndItsTimerGoesOn) {
  problem_.decisions.scale_down = true;
  nominated_ = Replica("small", 100);
  nominated_.traits.priority = 10;
  ClearPending();
  Pending(nominated_, 1);
  nodes_[0].pods.clear();
  nodes_[1].pods = {Replica("stays", 600)};
  LoopPlan plan = Plan();
  ASSERT_THAT(Removed(plan), ElementsAre("a"));
  EXPECT_EQ(plan.scale_down.remove[0].waits, NodeReason::kHoldsRoomForNominatedPods);
  problem_.nominations.clear();
  plan = Plan();
  ASSERT_THAT(Removed(plan), ElementsAre("a"));
  EXPECT_TRUE(plan.scale_down.remove[0].start);
}

TEST_F(NominatedTest, NobodyHoldsANodeForEver) {
  EXPECT_THAT(PlanAt(0).reserved_nodes, ElementsAre(Slot{0}));
  EXPECT_THAT(PlanAt(kLongestHoldS - 1).reserved_nodes, ElementsAre(Slot{0}));
  LoopPlan plan = PlanAt(kLongestHoldS);
  EXPECT_THAT(plan.reserved_nodes, IsEmpty());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
  problem_.nominations.clear();
  PlanAt(kLongestHoldS + 10);
  problem_.nominations = {{0, Slot{0}, 1}};
  EXPECT_THAT(PlanAt(kHoldAgainAfterS - 1).reserved_nodes, IsEmpty()) << "a pause does not help";
  EXPECT_THAT(PlanAt(kHoldAgainAfterS).reserved_nodes, ElementsAre(Slot{0}));
}

TEST_F(NominatedTest, AnotherNodeOfTheNameIsHeldAnew) {
  nodes_[0].node.traits.uid = "first";
  PlanAt(0);
  nodes_[0].node.traits.uid = "second";
  EXPECT_THAT(PlanAt(kLongestHoldS).reserved_nodes, ElementsAre(Slot{0}));
  problem_.reserved_nodes = {{"a", "second", kLoopNow + 100'000}};
  EXPECT_THAT(PlanAt(700).next_reserved_nodes, ElementsAre(ReservedNode{"a", "second", kLoopNow + 700}))
      << "of the future";
}

TEST_F(NominatedTest, ANodeThatIsBeingDeletedIsNotHeld) {
  drain_.deleting = {{.node = "a", .since_s = kLoopNow}};
  EXPECT_THAT(Plan().reserved_nodes, IsEmpty());
}

}  // namespace
}  // namespace loadline
