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

// A phase that uses up its part leaves the others theirs, and its memory.
TEST(WorkPhase, LeavesTheRestToTheNext) {
  WorkBudget budget(1'000, nullptr, 100);
  {
    const WorkPhase growth(&budget, 0.5);
    EXPECT_TRUE(budget.Reserve(80));
    EXPECT_TRUE(budget.Spend(500));
    EXPECT_FALSE(budget.Spend(1));
    EXPECT_EQ(budget.end(), BudgetEnd::kOutOfWork);
  }
  EXPECT_FALSE(budget.ended());
  EXPECT_EQ(budget.units(), 499) << "what was begun is taken";
  EXPECT_EQ(budget.bytes(), 100);
  {
    const WorkPhase slack(&budget, 0.5);
    EXPECT_EQ(budget.units(), 249);
    EXPECT_TRUE(budget.Spend(49));
    EXPECT_FALSE(budget.Reserve(101));
  }
  EXPECT_EQ(budget.units(), 450) << "what a phase leaves is there for the next";
  EXPECT_FALSE(budget.Spend(451));
  EXPECT_EQ(budget.end(), BudgetEnd::kOutOfWork);
}

TEST(WorkPhase, SharesTheTime) {
  double elapsed = 0.2;
  WorkBudget budget(1'000'000, [&elapsed] { return elapsed; });
  {
    const WorkPhase growth(&budget, 0.5);  // until 0.2 + 0.8 / 2
    elapsed = 0.59;
    EXPECT_TRUE(budget.Spend(1'000));
    elapsed = 0.61;
    EXPECT_FALSE(budget.Spend(1'000));
    EXPECT_EQ(budget.end(), BudgetEnd::kOutOfTime);
  }
  elapsed = 0.7;
  EXPECT_TRUE(budget.Spend());
  elapsed = 1;
  EXPECT_FALSE(budget.Spend(1'000));
  const WorkPhase late(&budget, 0.5);
  EXPECT_FALSE(budget.Spend()) << "what has ended stays ended";
}

TEST(WorkPhase, WhatItKeepsStaysTaken) {
  WorkBudget budget(1'000, nullptr, 100);
  EXPECT_TRUE(budget.Keep(20));
  {
    const WorkPhase phase(&budget, 0.5);
    EXPECT_TRUE(budget.Keep(30));
    EXPECT_TRUE(budget.Reserve(50)) << "of the other memory it has all";
    EXPECT_FALSE(budget.Keep(11)) << "only half of what was left is its to keep";
    EXPECT_EQ(budget.end(), BudgetEnd::kOutOfMemory);
  }
  EXPECT_FALSE(budget.ended());
  EXPECT_EQ(budget.bytes(), 50) << "what it has only reserved ends with it";
  EXPECT_TRUE(budget.Keep(50)) << "others have their part";
  EXPECT_FALSE(budget.Reserve(1));
}

TEST(WorkPortion, OneLeavesTheOthersTheirs) {
  WorkBudget budget(1'000, nullptr, 1'000);
  {
    const WorkPortion portion(&budget, 0.25);
    EXPECT_TRUE(budget.Reserve(200));
    EXPECT_FALSE(budget.Spend(251));
  }
  EXPECT_EQ(budget.units(), 749);
  EXPECT_EQ(budget.bytes(), 800) << "its memory stays taken";
  {
    const WorkPortion all(&budget, 1);
    EXPECT_FALSE(budget.Reserve(801));
  }
  EXPECT_EQ(budget.end(), BudgetEnd::kOutOfMemory);
}

}  // namespace
}  // namespace loadline
