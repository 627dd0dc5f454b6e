#include "core/drain/hold_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/drain/candidate_rounds.h"
#include "core/drain/node_reason.h"
#include "test/core/drain/call_fixture.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// a and b are empty and go at once; c stays, since its pod fits nowhere else.
class HoldBackTest : public ::testing::Test {
 protected:
  Deletions Decide() {
    CallFixture fixture(&model_);
    fixture.options().deletion.timers.unneeded_time_s = 0;
    PlanCandidates({}, /*anew=*/true, &fixture.call(), &fixture.follower(), &fixture.memory());
    EXPECT_THAT(fixture.Planned(), ElementsAre("a", "b"));
    return DecideStarts(fixture.memory().planned(), fixture.memory().state(), &fixture.call(),
                        &fixture.follower());
  }

  void OnTheWay(int64_t milli_cpu, int64_t count) {
    model_.problem().on_the_way = {{model_.cluster().Incoming(ReplicaPod("w", milli_cpu)), count}};
    model_.cluster().state().set_resource_names(model_.cluster().names());
  }

  DrainModel model_{{.nodes = {NodeWith("a", {}), NodeWith("b", {}),
                               NodeWith("c", {ReplicaPod("p", 1'000), ReplicaPod("q", 0)})},
                     .groups = {{.name = "group", .min_nodes = 1, .target = 3}}}};
};

TEST_F(HoldBackTest, WhatTheLimitsAllowStarts) { EXPECT_THAT(Decide().start, ElementsAre(0, 1)); }

TEST_F(HoldBackTest, NothingStartsWhileGroupsGrow) {
  model_.problem().groups_grow = true;
  const Deletions deletions = Decide();
  EXPECT_THAT(deletions.start, IsEmpty());
  EXPECT_EQ(deletions.decisions[0].waits, NodeReason::kGroupsGrow);
  EXPECT_EQ(deletions.status, DrainStatus::kNoNodeDeleted);
}

TEST_F(HoldBackTest, TheLastNodesHoldTheRoomOfPodsOnTheWay) {
  OnTheWay(400, 2);
  Deletions deletions = Decide();
  EXPECT_THAT(deletions.start, ElementsAre(0)) << "two of 400m fit on b";
  EXPECT_EQ(deletions.decisions[1].waits, NodeReason::kHoldsRoomForWaitingPods);
  OnTheWay(400, 3);
  EXPECT_THAT(Decide().start, IsEmpty());
}

TEST_F(HoldBackTest, AnAtomicGroupIsHeldBackAsAWhole) {
  model_.problem().groups[GroupIndex{0}] = {.name = "group", .target = 3, .atomic = true};
  model_.problem().group_of = GroupsBySlot({GroupIndex{0}, GroupIndex{0}, std::nullopt});
  model_.problem().groups[GroupIndex{0}].target = 2;
  OnTheWay(400, 1);
  const Deletions deletions = Decide();
  EXPECT_THAT(deletions.start, IsEmpty());
  EXPECT_EQ(deletions.decisions[0].waits, NodeReason::kAtomicScaleDownFailed);
  EXPECT_EQ(deletions.decisions[1].waits, NodeReason::kHoldsRoomForWaitingPods);
}

}  // namespace
}  // namespace loadline
