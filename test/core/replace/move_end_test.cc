// How moves end that are given up, and what becomes of what was ordered for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/cluster/node_annotations.h"
#include "test/core/replace/replacement_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MoveEndTest : public ReplacementTest {
 protected:
  // A move that has come to nothing: its new node is ready, and its saving is gone. The node may not go.
  void GiveUpWithANodeThatStays() {
    TwoSmallNodes();
    Loop();
    Arrive("big-1", GroupIndex{1});
    nodes_.back().node.traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
    problem_.groups[GroupIndex{1}].usd_per_hour = 0.20;
    EXPECT_THAT(Loop().replacement.ended, SizeIs(1));
    ASSERT_THAT(memory_.moves, SizeIs(1));
    ASSERT_EQ(memory_.moves[0].phase, MoveUnderWay::Phase::kGivingBack);
    problem_.groups[GroupIndex{1}].usd_per_hour = 0.18;
  }

  // A move that drains. From now on its pods may go when one more of them is ready, but that never happens.
  void BeginDrainsThatWait() {
    budget_of_all_.reset();
    ASSERT_THAT(Loop().replacement.begun, SizeIs(1));
    Arrive("big-1", GroupIndex{1});
    Loop();
    ASSERT_EQ(memory_.moves[0].phase, MoveUnderWay::Phase::kDraining);
    budget_of_all_.emplace();
    budget_of_all_->current_healthy = budget_of_all_->desired_healthy = 8;
    budget_of_all_->expected_pods = 9;
  }
  // Takes the new node and the budget away.
  void TheNewNodeGoes() {
    nodes_.pop_back();
    --problem_.groups[GroupIndex{1}].target;
    budget_of_all_.reset();
  }
  // A pod of an old node has ended, and another one runs on the new node in its place.
  void APodHasMoved() {
    nodes_.front().pods.pop_back();
    nodes_.back().pods.push_back(Replica("moved-" + std::to_string(nodes_.back().pods.size()), 500));
  }
};

TEST_F(MoveEndTest, AnEmptyNodeThatMayNotGoHoldsMovesUpForALimitedTime) {
  GiveUpWithANodeThatStays();
  EXPECT_THAT(Loop(15 * kMinuteMs - 1).replacement.begun, IsEmpty());
  EXPECT_THAT(memory_.moves, SizeIs(1)) << "it is to go until then";
  Loop(1);
  EXPECT_THAT(memory_.moves, IsEmpty());
  // Once its old nodes have rested, they go into the room that is there.
  const LoopPlan plan = Loop(15 * kMinuteMs);
  ASSERT_THAT(plan.replacement.begun, SizeIs(2));
  EXPECT_THAT(plan.growth, IsEmpty());
}

TEST_F(MoveEndTest, AGroupAtItsMinimumHoldsMovesUpForALimitedTime) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  problem_.groups[GroupIndex{1}].usd_per_hour = 0.20;
  problem_.groups[GroupIndex{1}].min_nodes = 1;
  EXPECT_THAT(Started(Loop()), IsEmpty());
  problem_.groups[GroupIndex{1}].usd_per_hour = 0.18;
  Loop(15 * kMinuteMs);
  EXPECT_THAT(memory_.moves, IsEmpty());
  EXPECT_THAT(Loop(15 * kMinuteMs).replacement.begun, SizeIs(2));
}

// Whatever makes moves with these nodes fail is likely to do so again.
TEST_F(MoveEndTest, AMoveThatIsGivenUpAgainIsTriedAfterTwiceAsLong) {
  TwoSmallNodes();
  for (const int64_t rest_ms : {30 * kMinuteMs, 60 * kMinuteMs, 120 * kMinuteMs}) {
    ASSERT_THAT(Loop().replacement.begun, SizeIs(1)) << rest_ms;
    ASSERT_THAT(Loop(15 * kMinuteMs).replacement.ended, SizeIs(1));
    problem_.groups[GroupIndex{1}].target = 0;  // its machine is taken back
    EXPECT_THAT(Loop(rest_ms - 1).replacement.begun, IsEmpty());
  }
  problem_.replacement.windows = {{1, 2}};  // no move begins
  Loop(24 * 60 * kMinuteMs);
  EXPECT_THAT(memory_.given_up, SizeIs(2));
  Loop(1);
  EXPECT_THAT(memory_.given_up, IsEmpty()) << "it could have been tried for a day";
}

// The second attempt fails later than the nodes of the first one have rested.
TEST_F(MoveEndTest, AMoveWhoseDrainsTakeTooLongIsTriedAfterTwiceAsLong) {
  TwoSmallNodes();
  for (const int64_t rest_ms : {30 * kMinuteMs, 60 * kMinuteMs, 120 * kMinuteMs}) {
    BeginDrainsThatWait();
    const LoopPlan plan = Loop(problem_.replacement.drain_wait_ms);
    ASSERT_THAT(plan.replacement.ended, SizeIs(1));
    EXPECT_EQ(plan.replacement.ended[0].why, "its drains have taken too long");
    TheNewNodeGoes();
    EXPECT_THAT(Loop(rest_ms - 1).replacement.begun, IsEmpty());
  }
}

// A day and a half hour after the first one the nodes would be forgotten, while the second move drains.
TEST_F(MoveEndTest, AMoveThatBeginsLateIsNoFirstOne) {
  TwoSmallNodes();
  for (const int64_t count : {1, 2}) {
    BeginDrainsThatWait();
    Loop(problem_.replacement.drain_wait_ms);
    ASSERT_THAT(memory_.given_up, SizeIs(2));
    EXPECT_EQ(memory_.given_up.begin()->second.count, count);
    TheNewNodeGoes();
    problem_.replacement.windows = {{1, 2}};  // no move begins
    Loop(24 * 60 * kMinuteMs);
    problem_.replacement.windows.reset();
  }
}

TEST_F(MoveEndTest, DrainsMayTakeLongerWhilePodsLeave) {
  TwoSmallNodes();
  BeginDrainsThatWait();
  for (int i = 0; i < 3; ++i) {
    APodHasMoved();
    EXPECT_THAT(Loop(59 * kMinuteMs).replacement.ended, IsEmpty());
  }
  EXPECT_THAT(memory_.moves[0].places, SizeIs(8 - 3));
  EXPECT_THAT(Loop(60 * kMinuteMs - 1).replacement.ended, IsEmpty());
  const LoopPlan plan = Loop(1);
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_EQ(plan.replacement.ended[0].why, "its drains have taken too long");
}

TEST_F(MoveEndTest, DrainsMayNotTakeForEver) {
  TwoSmallNodes();
  problem_.replacement.all_drains_ms = 100 * kMinuteMs;
  BeginDrainsThatWait();
  APodHasMoved();
  EXPECT_THAT(Loop(59 * kMinuteMs).replacement.ended, IsEmpty());
  APodHasMoved();
  EXPECT_THAT(Loop(41 * kMinuteMs - 1).replacement.ended, IsEmpty());
  EXPECT_THAT(Loop(1).replacement.ended, SizeIs(1));
}

// A target is lowered once, by all that nobody waits for any more: four orders would each expect to find it
// as the first one did, and all but one would be refused.
TEST_F(MoveEndTest, OrdersThatEndTogetherTakeBackTheirSum) {
  for (int i = 0; i < 4; ++i) {
    AddNode("small-" + std::to_string(i), GroupIndex{0}, 4);
    MoveUnderWay& move = memory_.moves.emplace_back();
    move.at_ms = move.step_ms = now_ms_;
    move.orders = {{"big", 1}};
    move.came = {0};
    move.remove = {FleetKey("small-" + std::to_string(i))};
  }
  problem_.groups[GroupIndex{1}].target = 4;
  problem_.groups[GroupIndex{1}].not_begun = 3;
  const LoopPlan plan = Loop(15 * kMinuteMs);
  EXPECT_THAT(plan.replacement.ended, SizeIs(4));
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 3}));
}

}  // namespace
}  // namespace loadline
