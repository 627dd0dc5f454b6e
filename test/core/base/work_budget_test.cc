#include "core/base/work_budget.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace loadline {
namespace {

TEST(WorkBudget, NeverEndsByDefault) {
  WorkBudget budget;
  EXPECT_TRUE(budget.Spend(int64_t{1} << 40));
  EXPECT_TRUE(budget.Reserve(int64_t{1} << 40));
  EXPECT_EQ(budget.end(), BudgetEnd::kNotEnded);
  EXPECT_EQ(Name(budget.end()), "");
}

TEST(WorkBudget, EndsOneUnitBehindTheLast) {
  WorkBudget budget(3);
  EXPECT_TRUE(budget.Spend(3));
  EXPECT_FALSE(budget.Spend(1));
  EXPECT_EQ(Name(budget.end()), "work");
  EXPECT_FALSE(budget.Reserve(0));
}

TEST(WorkBudget, EndsWhenItsPredicateSaysSo) {
  int asked = 0;
  WorkBudget budget(1'000'000, [&asked] { return ++asked == 2; });
  EXPECT_TRUE(budget.Spend(1'000));
  EXPECT_TRUE(budget.Spend(999));
  EXPECT_FALSE(budget.Spend(1));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(Name(budget.end()), "time");
}

TEST(WorkBudget, HoldsSoManyBytesAtOnce) {
  WorkBudget budget(10, nullptr, 100);
  EXPECT_TRUE(budget.Reserve(100));
  budget.Release(60);
  {
    const ReservedMemory table(&budget, 60);
    EXPECT_TRUE(table.ok());
  }
  EXPECT_TRUE(ReservedMemory(&budget, 60).ok());
  const ReservedMemory table(&budget, 61);
  EXPECT_FALSE(table.ok());
  EXPECT_EQ(Name(budget.end()), "memory");
  EXPECT_FALSE(budget.Spend());
}

}  // namespace
}  // namespace loadline
