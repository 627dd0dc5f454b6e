#include "core/drain/keep_formers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/drain/node_reason.h"
#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Pod p of a was to move to b a minute ago.
DrainState FormerPlan(const std::string& to = "b") {
  DrainState state;
  state.unneeded = {{.node = "a", .since_s = kDrainNow - 60, .hints = {{"uid-p", to}}}};
  return state;
}

DrainCluster RoomOnB(int64_t free_on_b) {
  return {
      .nodes = {NodeWith("a", {ReplicaPod("p", 300)}), NodeWith("b", {ReplicaPod("q", 1'000 - free_on_b)})}};
}

std::vector<FormerNode> KeepAll(CallFixture* fixture) {
  return KeepFormers(std::move(fixture->formers()), /*same_rules=*/false, &fixture->call(),
                     &fixture->follower(), &fixture->memory());
}

TEST(KeepFormersTest, ANodeWhosePodsHaveTheirPlacesStaysWithItsTimer) {
  DrainModel model(RoomOnB(300));
  CallFixture fixture(&model, FormerPlan());
  EXPECT_THAT(KeepAll(&fixture), IsEmpty());
  ASSERT_THAT(fixture.Planned(), ElementsAre("a"));
  EXPECT_EQ(fixture.memory().planned()[0].since_s, kDrainNow - 60);
  EXPECT_THAT(*fixture.memory().planned()[0].moves, ElementsAre(DrainMove{PodRef::Pod(0), Slot{1}}));
  EXPECT_EQ(fixture.call().evaluated, 1);
}

TEST(KeepFormersTest, ANodeOfWhichAPodHasNoPlaceAnyMoreIsTriedAgainLater) {
  DrainModel model(RoomOnB(299));
  CallFixture fixture(&model, FormerPlan());
  const std::vector<FormerNode> displaced = KeepAll(&fixture);
  EXPECT_THAT(fixture.Planned(), IsEmpty());
  ASSERT_THAT(displaced, SizeIs(1));
  EXPECT_EQ(displaced[0].node, "a");
  EXPECT_EQ(displaced[0].since_s, kDrainNow - 60);
}

// Both pods have their places yet, but only one of them may move at a time.
TEST(KeepFormersTest, ANodeWhosePodsExceedTheirBudgetNowIsTriedAgainLater) {
  DisruptionBudget budget;
  budget.selector = Select("app", "app");
  for (const int32_t allowed : {1, 2}) {
    budget.disruptions_allowed = allowed;
    DrainCluster cluster = RoomOnB(600);
    cluster.nodes[0].pods.push_back(ReplicaPod("r", 300));
    cluster.budgets = {{.name = "budget", .budget = budget}};
    DrainState state = FormerPlan();
    state.unneeded[0].hints.push_back({"uid-r", "b"});
    DrainModel model(cluster);
    CallFixture fixture(&model, std::move(state));
    EXPECT_THAT(KeepAll(&fixture), SizeIs(allowed == 1 ? 1 : 0));
    EXPECT_THAT(fixture.Planned(), SizeIs(allowed == 1 ? 0 : 1));
  }
}

TEST(KeepFormersTest, ANewNodeOfTheSameNameIsAnotherOne) {
  DrainCluster cluster = RoomOnB(300);
  cluster.nodes[0].node.traits.uid = "new";
  DrainModel model(cluster);
  DrainState state = FormerPlan();
  state.unneeded[0].uid = "old";
  CallFixture fixture(&model, std::move(state));
  EXPECT_THAT(KeepAll(&fixture), IsEmpty());
  EXPECT_THAT(fixture.Planned(), IsEmpty());
}

TEST(KeepFormersTest, WhereTheWorkHasEndedTheTimerGoesOn) {
  DrainModel model(RoomOnB(300));
  CallFixture fixture(&model, FormerPlan(), WorkBudget(0));
  fixture.options().min_evaluated_nodes = 0;
  EXPECT_FALSE(fixture.work().Spend());
  EXPECT_THAT(KeepAll(&fixture), IsEmpty());
  EXPECT_THAT(fixture.Planned(), IsEmpty());
  EXPECT_EQ(fixture.judged(0).reason, NodeReason::kNotEvaluated);
  EXPECT_EQ(fixture.call().skipped, 1);
  EXPECT_THAT(fixture.memory().TakeTimers(), SizeIs(1));
}

TEST(KeepFormersTest, WithABrakeOnTimersGoOnOrStartAnew) {
  for (const bool anew : {false, true}) {
    DrainModel model(RoomOnB(300));
    CallFixture fixture(&model, FormerPlan());
    KeepTimers(std::move(fixture.formers()), anew, fixture.call(), fixture.follower(), &fixture.memory());
    const std::vector<FormerNode> timers = fixture.memory().TakeTimers();
    ASSERT_THAT(timers, SizeIs(1));
    EXPECT_EQ(timers[0].since_s, anew ? kDrainNow : kDrainNow - 60);
  }
}

}  // namespace
}  // namespace loadline
