#include "core/drain/node_budget.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace loadline {
namespace {

constexpr RemovalReason kAllReasons[] = {RemovalReason::kEmpty, RemovalReason::kUnderutilized,
                                         RemovalReason::kReplaced};

TEST(NodeBudgetTest, WithoutBudgetsAllMayGo) {
  const NodeGroups groups = {{.name = "a"}};
  const NodeAllowance allowance({}, groups, StrongVector<GroupIndex, int64_t>{3}, 0);
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), INT64_MAX);
  EXPECT_EQ(allowance.Left(std::nullopt, RemovalReason::kEmpty), INT64_MAX);  // of no group
  EXPECT_TRUE(allowance.Allows(GroupIndex{0}, kAllReasons));
}

TEST(NodeBudgetTest, PercentagesAreRoundedUp) {
  const NodeGroups groups = {{.name = "a"}, {.name = "b"}, {.name = "none"}};
  const std::vector<NodeBudget> budgets = {{.nodes = 10, .percent = true}};
  const NodeAllowance allowance(budgets, groups, StrongVector<GroupIndex, int64_t>{10, 11, 0}, 0);
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), 1);
  EXPECT_EQ(allowance.Left(GroupIndex{1}, RemovalReason::kEmpty), 2);
  EXPECT_EQ(allowance.Left(GroupIndex{2}, RemovalReason::kEmpty), 0);
}

// 10 % of 10 and 11 nodes are 3 together; the third group has a budget of its own.
TEST(NodeBudgetTest, GroupsThatHaveOneTogether) {
  const NodeGroups groups = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
  const std::vector<NodeBudget> budgets = {
      {.groups = {"c", "a"}, .together = true, .nodes = 10, .percent = true}, {.groups = {"b"}, .nodes = 1}};
  NodeAllowance allowance(budgets, groups, StrongVector<GroupIndex, int64_t>{10, 50, 11}, 0);
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), 3);
  EXPECT_EQ(allowance.Left(GroupIndex{1}, RemovalReason::kEmpty), 1);
  allowance.Take(GroupIndex{0}, RemovalReason::kEmpty);
  allowance.Take(GroupIndex{2}, RemovalReason::kEmpty);
  EXPECT_EQ(allowance.Left(GroupIndex{2}, RemovalReason::kEmpty), 1);
  EXPECT_FALSE(allowance.Allows(GroupIndex{0}, kAllReasons));
  EXPECT_EQ(allowance.Left(GroupIndex{1}, RemovalReason::kEmpty), 1);
}

// A group that a budget names twice takes from it once.
TEST(NodeBudgetTest, NamesMayBeThereTwiceOrOfNoGroup) {
  const NodeGroups groups = {{.name = "a"}, {.name = "b"}};
  for (const bool together : {false, true}) {
    const std::vector<NodeBudget> budgets = {
        {.groups = {"a", "gone", "a"}, .together = together, .nodes = 3}};
    NodeAllowance allowance(budgets, groups, StrongVector<GroupIndex, int64_t>{9, 9}, 0);
    allowance.Take(GroupIndex{0}, RemovalReason::kEmpty);
    EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), 2);
    EXPECT_EQ(allowance.Left(GroupIndex{1}, RemovalReason::kEmpty), INT64_MAX);
  }
}

// One budget for all reasons and a stricter one for one of them: a removal for that one counts for both.
TEST(NodeBudgetTest, TheStrictestBudgetCounts) {
  const NodeGroups groups = {{.name = "a"}};
  const std::vector<NodeBudget> budgets = {{.nodes = 3}, {.reasons = {RemovalReason::kReplaced}, .nodes = 1}};
  NodeAllowance allowance(budgets, groups, StrongVector<GroupIndex, int64_t>{9}, 0);
  EXPECT_TRUE(allowance.Allows(GroupIndex{0}, kAllReasons));
  allowance.Take(GroupIndex{0}, RemovalReason::kReplaced);
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kReplaced), 0);
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), 2);
  EXPECT_FALSE(allowance.Allows(GroupIndex{0}, kAllReasons));
  for (int i = 0; i < 3; ++i)
    allowance.Take(GroupIndex{0}, RemovalReason::kUnderutilized);  // more than are allowed
  EXPECT_EQ(allowance.Left(GroupIndex{0}, RemovalReason::kEmpty), 0);
}

}  // namespace
}  // namespace loadline
