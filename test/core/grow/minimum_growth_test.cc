// Groups below their minimum: --enforce-node-group-min-size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr LoopGrowth Minimum(int32_t group, int64_t nodes, int64_t for_pods = 0) {
  return {.group = GroupIndex{group}, .for_pods = for_pods, .for_minimum = nodes};
}

// A group of one node that is to have three.
class MinimumGrowthTest : public LoopTest {
 protected:
  MinimumGrowthTest() {
    AddGroup("g", 1000, 1, /*target=*/1);
    problem_.groups[GroupIndex{0}].min_nodes = 3;
    nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
    problem_.enforce_minima = true;
  }
};

TEST_F(MinimumGrowthTest, AMinimumIsReachedWhereItIsEnforced) {
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2)));
  problem_.groups[GroupIndex{0}].target = 2;
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 1))) << "one is on its way";
  problem_.groups[GroupIndex{0}].target = 3;
  EXPECT_THAT(Plan().growth, IsEmpty());
}

TEST_F(MinimumGrowthTest, ByDefaultItIsNot) {
  problem_.enforce_minima = LoopProblem().enforce_minima;
  EXPECT_THAT(Plan().growth, IsEmpty());
}

TEST_F(MinimumGrowthTest, PodsUseTheseNodes) {
  Pending(Replica("w", 1000), 5);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(Minimum(0, 2, /*for_pods=*/3)));
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{-1}, GroupIndex{0}},
                                         ExpectedPlace{0, 1, NodeIndex{-1}, GroupIndex{0}}));
}

TEST_F(MinimumGrowthTest, TheMaximumOfTheGroupHoldsForPodsAndMinimumTogether) {
  problem_.groups[GroupIndex{0}].max_nodes = 4;
  Pending(Replica("w", 1000), 5);
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2, /*for_pods=*/1)));
  problem_.groups[GroupIndex{0}].max_nodes = 2;
  ClearPending();
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 1))) << "a minimum above the maximum";
}

TEST_F(MinimumGrowthTest, LimitsOfAllGroupsHold) {
  AddGroup("h", 500, 1, /*target=*/0);
  problem_.groups[GroupIndex{1}].min_nodes = 2;
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2), Minimum(1, 2)));
  problem_.growth.max_new_nodes = 3;
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2), Minimum(1, 1)));
  problem_.growth.max_new_nodes.reset();
  problem_.maxima = {{.milli_cpu = 3'500}};
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2), Minimum(1, 1)));
}

TEST_F(MinimumGrowthTest, WhatMayNotGrowDoesNot) {
  problem_.groups[GroupIndex{0}].usd_per_hour.reset();
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2))) << "no price is needed";
  problem_.groups[GroupIndex{0}].blocked_reason = "back-off";
  EXPECT_THAT(Plan().growth, IsEmpty());
  problem_.groups[GroupIndex{0}].blocked_reason.clear();
  problem_.decisions.scale_up = false;
  EXPECT_THAT(Plan().growth, IsEmpty());
  problem_.decisions.scale_up = true;
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 2)));
}

TEST_F(MinimumGrowthTest, AGroupOfAllOrNoneGetsAllOrNone) {
  problem_.groups[GroupIndex{0}].atomic = true;
  problem_.groups[GroupIndex{0}].max_nodes = 5;
  EXPECT_THAT(Plan().growth, ElementsAre(Minimum(0, 4)));
  problem_.growth.max_new_nodes = 3;
  EXPECT_THAT(Plan().growth, IsEmpty());
}

// While pods still come, growth for them waits; the minimum does not.
TEST_F(MinimumGrowthTest, BatchesDoNotHoldItBack) {
  Pending(Replica("w", 1000), 3);
  problem_.batch.idle_ms = 1'000;
  problem_.batch.max_ms = 10'000;
  problem_.batch.ages = {{500, 500}};
  const LoopPlan plan = Plan();
  EXPECT_EQ(plan.batch_wait_ms, 500);
  EXPECT_THAT(plan.growth, ElementsAre(Minimum(0, 2)));
}

}  // namespace
}  // namespace loadline
