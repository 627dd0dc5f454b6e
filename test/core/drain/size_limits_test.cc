#include "core/drain/size_limits.h"

#include <gtest/gtest.h>

#include "core/base/amount.h"
#include "core/drain/node_reason.h"

namespace loadline {
namespace {

// Three nodes of 1,000m and 4,000 bytes in a group that may lose them all, and one without a group.
class SizeLimitsTest : public ::testing::Test {
 protected:
  SizeLimits Limits(const ClusterMinimum& minimum, bool third_leaves = false) const {
    SizeLimits limits(groups_, minimum);
    for (int i = 0; i < 3; ++i) limits.AddNode(kGroup, kNode, third_leaves && i == 2);
    limits.AddNode(std::nullopt, kNode, false);
    return limits;
  }
  // How many of the group's nodes may go, and why not one more.
  static std::pair<int, NodeReason> MostThatMayGo(SizeLimits limits) {
    for (int taken = 0;; ++taken) {
      const NodeReason reason = limits.Take(kGroup, kNode);
      if (reason != NodeReason::kNone) return {taken, reason};
    }
  }

  static constexpr GroupIndex kGroup{0};
  static constexpr NodeOffer kNode = {1'000, 4'000};
  NodeGroups groups_ = {{.name = "group", .target = 3}};
};

using LimitOutcome = std::pair<int, NodeReason>;

TEST_F(SizeLimitsTest, EachMinimumOfTheClusterHoldsByItself) {
  constexpr NodeReason kLeast = NodeReason::kMinimalResourceLimitExceeded;
  EXPECT_EQ(MostThatMayGo(Limits({})), LimitOutcome(3, NodeReason::kNodeGroupMinSizeReached));
  EXPECT_EQ(MostThatMayGo(Limits({.amounts = {2'000, 0}})), LimitOutcome(2, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.amounts = {2'001, 0}})), LimitOutcome(1, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.amounts = {0, 8'000}})), LimitOutcome(2, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.amounts = {0, 8'001}})), LimitOutcome(1, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.nodes = 2})), LimitOutcome(2, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.nodes = 5})), LimitOutcome(0, kLeast)) << "there are fewer already";
}

TEST_F(SizeLimitsTest, WhatIsBeingDeletedIsGone) {
  constexpr NodeReason kLeast = NodeReason::kMinimalResourceLimitExceeded;
  EXPECT_EQ(MostThatMayGo(Limits({.amounts = {0, 8'000}}, /*third_leaves=*/true)), LimitOutcome(1, kLeast));
  EXPECT_EQ(MostThatMayGo(Limits({.nodes = 2}, /*third_leaves=*/true)), LimitOutcome(1, kLeast));
  groups_.front().min_nodes = 1;
  EXPECT_EQ(MostThatMayGo(Limits({}, /*third_leaves=*/true)),
            LimitOutcome(1, NodeReason::kNodeGroupMinSizeReached));
}

TEST_F(SizeLimitsTest, WhatIsGivenBackMayBeTakenAgain) {
  for (const ClusterMinimum& minimum : {ClusterMinimum{.amounts = {3'000, 0}},
                                        ClusterMinimum{.amounts = {0, 12'000}}, ClusterMinimum{.nodes = 3}}) {
    SizeLimits limits = Limits(minimum);
    EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kNone);
    EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kMinimalResourceLimitExceeded);
    limits.GiveBack(kGroup, kNode);
    EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kNone);
  }
  groups_.front().min_nodes = 2;
  SizeLimits limits = Limits({});
  EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kNone);
  EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kNodeGroupMinSizeReached);
  limits.GiveBack(kGroup, kNode);
  EXPECT_EQ(limits.Take(kGroup, kNode), NodeReason::kNone);
}

TEST_F(SizeLimitsTest, ANodeWithoutAGroupDoesNotGo) {
  EXPECT_EQ(Limits({}).Take(std::nullopt, kNode), NodeReason::kNotAutoscaled);
}

TEST_F(SizeLimitsTest, AWholeGroupIsItsTargetOrAllThatThereIsAndWillBe) {
  EXPECT_TRUE(Limits({}).AreWholeGroup(kGroup, 3));
  EXPECT_FALSE(Limits({}).AreWholeGroup(kGroup, 2));
  EXPECT_TRUE(Limits({}, /*third_leaves=*/true).AreWholeGroup(kGroup, 2));
  groups_.front().target = 5;
  EXPECT_TRUE(Limits({}).AreWholeGroup(kGroup, 3)) << "more are wanted, but none is on its way";
  groups_.front().upcoming = 1;
  EXPECT_FALSE(Limits({}).AreWholeGroup(kGroup, 3));
  EXPECT_TRUE(Limits({}).AreWholeGroup(kGroup, 5));
}

// Nine GPUs of two types: those of one type do not stand in for the other one.
TEST_F(SizeLimitsTest, GPUsOfEachTypeKeepTheirMinimum) {
  groups_.front().target = 5;
  SizeLimits limits(groups_, {.gpus = {{"t4", 5}, {"v100", 2}}});
  const NodeOffer three{1'000, 4'000, "t4", 3};
  const NodeOffer one{1'000, 4'000, "v100", 1};
  for (int i = 0; i < 3; ++i) limits.AddNode(kGroup, three, /*being_deleted=*/i == 2);
  limits.AddNode(kGroup, {1'000, 4'000, "t4", 0}, false);
  limits.AddNode(kGroup, one, false);
  EXPECT_EQ(limits.Take(kGroup, three), NodeReason::kMinimalResourceLimitExceeded)
      << "six are left, five must be";
  EXPECT_EQ(limits.Take(kGroup, one), NodeReason::kMinimalResourceLimitExceeded) << "there are fewer already";
  EXPECT_EQ(limits.Take(kGroup, {1'000, 4'000, "t4", 1}), NodeReason::kNone) << "an exact fit";
  EXPECT_EQ(limits.Take(kGroup, {1'000, 4'000, "t4", 1}), NodeReason::kMinimalResourceLimitExceeded);
  limits.GiveBack(kGroup, {1'000, 4'000, "t4", 1});
  EXPECT_EQ(limits.Take(kGroup, {1'000, 4'000, "t4", 1}), NodeReason::kNone);
  EXPECT_EQ(limits.Take(kGroup, {1'000, 4'000, "a100", 8}), NodeReason::kNone) << "a type without a minimum";
  EXPECT_EQ(limits.Take(kGroup, {1'000, 4'000, "t4", 0}), NodeReason::kNone) << "its devices are not there";
}

// The sums of such amounts do not fit into 64 bits.
TEST_F(SizeLimitsTest, TheLargestAmountsDoNotWrap) {
  constexpr NodeOffer kLargest = {kMaxAmount, kMaxAmount, "t4", kMaxAmount};
  SizeLimits limits(groups_, {.amounts = {kMaxAmount, kMaxAmount}, .gpus = {{"t4", kMaxAmount}}});
  for (int i = 0; i < 3; ++i) limits.AddNode(kGroup, kLargest, false);
  EXPECT_EQ(limits.Take(kGroup, kLargest), NodeReason::kNone);
  EXPECT_EQ(limits.Take(kGroup, kLargest), NodeReason::kNone);
  EXPECT_EQ(limits.Take(kGroup, kLargest), NodeReason::kMinimalResourceLimitExceeded);
}

}  // namespace
}  // namespace loadline
