#include "core/expand/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMany = 1'000'000;

PackingProblem Problem(std::vector<PackingItem> items,
                       const std::vector<std::pair<std::vector<int64_t>, double>>& types) {
  PackingProblem problem;
  problem.items = std::move(items);
  for (const auto& [free, cost] : types) {
    problem.types.push_back({free, cost, kNoLimit, std::vector<int64_t>(problem.items.size(), kMany)});
  }
  return problem;
}

Packing PackAll(const PackingProblem& problem) {
  WorkBudget budget;
  return Pack(problem, &budget);
}

TEST(PackingTest, OneTypeByHand) {
  // 5 of 3 on nodes of 10: three each.
  const Packing packing = PackAll(Problem({{{3}, 5}}, {{{10}, 1.0}}));
  EXPECT_DOUBLE_EQ(packing.cost, 2);
  EXPECT_THAT(packing.left, ElementsAre(0));
  EXPECT_TRUE(packing.proven);
  EXPECT_LE(packing.lower_bound, 2);
  EXPECT_GE(packing.lower_bound, 5.0 / 3 - 0.01);
}

TEST(PackingTest, AMixIsCheaperThanEachTypeAlone) {
  // Nodes of 8 for 8 and of 2 for 2.5: 10 of 1. 8 + 2 costs 10.5, two large ones 16, five small ones 12.5.
  const Packing packing = PackAll(Problem({{{1}, 10}}, {{{8}, 8.0}, {{2}, 2.5}}));
  EXPECT_DOUBLE_EQ(packing.cost, 10.5);
  ASSERT_EQ(packing.nodes.size(), 2U);
  EXPECT_EQ(packing.nodes[0], (PackedNodes{0, 1, {8}}));
  EXPECT_EQ(packing.nodes[1], (PackedNodes{1, 1, {2}}));
}

TEST(PackingTest, TwoResourcesComplementEachOther) {
  // CPU-heavy and memory-heavy pods share a balanced node: 4 nodes instead of 8.
  const Packing packing = PackAll(Problem({{{3, 1}, 4}, {{1, 3}, 4}}, {{{4, 4}, 1.0}}));
  EXPECT_DOUBLE_EQ(packing.cost, 4);
}

TEST(PackingTest, LimitsHold) {
  PackingProblem problem = Problem({{{1}, 10}}, {{{4}, 1.0}, {{4}, 3.0}});
  problem.types[0].limit = 1;
  Packing packing = PackAll(problem);
  EXPECT_DOUBLE_EQ(packing.cost, 1 + 3 + 3);
  problem.limit = 2;
  packing = PackAll(problem);
  EXPECT_THAT(packing.left, ElementsAre(2));
  EXPECT_DOUBLE_EQ(packing.cost, 4);
  EXPECT_LE(packing.lower_bound, 4);
  problem.types[0].limit = kForbidden;
  problem.types[1].limit = kForbidden;
  packing = PackAll(problem);
  EXPECT_THAT(packing.left, ElementsAre(10));
  EXPECT_DOUBLE_EQ(packing.cost, 0);
  EXPECT_DOUBLE_EQ(packing.lower_bound, 0);
}

TEST(PackingTest, WhatNoTypeTakesIsLeft) {
  PackingProblem problem = Problem({{{5}, 3}, {{1}, 2}}, {{{4}, 1.0}});
  EXPECT_THAT(PackAll(problem).left, ElementsAre(3, 0));
  problem.types[0].most[1] = 0;
  EXPECT_THAT(PackAll(problem).left, ElementsAre(3, 2));
}

TEST(PackingTest, OnePerNode) {
  PackingProblem problem = Problem({{{1}, 5}, {{1}, 5}}, {{{10}, 1.0}});
  problem.types[0].most[0] = 1;
  const Packing packing = PackAll(problem);
  EXPECT_DOUBLE_EQ(packing.cost, 5);
  EXPECT_NEAR(packing.lower_bound, 5, 0.01);
}

TEST(PackingTest, NodesThatCostNothing) {
  const Packing packing = PackAll(Problem({{{1}, 5}}, {{{2}, 0.0}}));
  EXPECT_DOUBLE_EQ(packing.cost, 0);
  EXPECT_THAT(packing.left, ElementsAre(0));
}

TEST(PackingTest, Nothing) {
  EXPECT_DOUBLE_EQ(PackAll(Problem({}, {{{2}, 1.0}})).cost, 0);
  EXPECT_DOUBLE_EQ(PackAll(Problem({{{2}, 0}}, {{{2}, 1.0}})).cost, 0);
  EXPECT_THAT(PackAll(Problem({{{2}, 3}}, {})).left, ElementsAre(3));
}

TEST(PackingTest, WithoutTimeAllIsPlacedAllTheSame) {
  WorkBudget budget(0);
  const Packing packing =
      Pack(Problem({{{3, 1}, 40}, {{1, 3}, 40}}, {{{8, 8}, 1.0}, {{4, 4}, 0.6}}), &budget);
  EXPECT_THAT(packing.left, ElementsAre(0, 0));
  EXPECT_FALSE(packing.proven);
}

// The cheapest way to hold `left`, by trying all nodes that take as much as they can of what is left: any
// packing can be turned into one of such nodes.
double Cheapest(const PackingProblem& problem, std::vector<int64_t> left);

void TryNodes(const PackingProblem& problem, size_t type, size_t item, std::vector<int64_t> free,
              std::vector<int64_t> left, double* best) {
  if (item == left.size()) {
    const double rest = Cheapest(problem, left);
    *best = std::min(*best, problem.types[type].cost + rest);
    return;
  }
  for (;;) {
    TryNodes(problem, type, item + 1, free, left, best);
    for (size_t r = 0; r < free.size(); ++r) free[r] -= problem.items[item].request[r];
    if (left[item]-- == 0 || *std::min_element(free.begin(), free.end()) < 0) return;
  }
}

double Cheapest(const PackingProblem& problem, std::vector<int64_t> left) {
  const auto first = std::find_if(left.begin(), left.end(), [](int64_t count) { return count > 0; });
  if (first == left.end()) return 0;
  const size_t item = static_cast<size_t>(first - left.begin());
  double best = std::numeric_limits<double>::infinity();
  for (size_t type = 0; type < problem.types.size(); ++type) {
    // Some node holds one of the first item that is left.
    std::vector<int64_t> free = problem.types[type].free;
    for (size_t r = 0; r < free.size(); ++r) free[r] -= problem.items[item].request[r];
    if (*std::min_element(free.begin(), free.end()) < 0) continue;
    std::vector<int64_t> rest = left;
    --rest[item];
    TryNodes(problem, type, item, free, rest, &best);
  }
  return best;
}

// Small problems against all possibilities: the bound is one, nothing is over-full, and the cost is close.
RC_GTEST_PROP(PackingProperty, AgainstAllPossibilities, ()) {
  std::vector<PackingItem> items;
  const int kinds = *rc::gen::inRange(1, 4);
  for (int i = 0; i < kinds; ++i) {
    items.push_back({{*rc::gen::inRange(1, 8), *rc::gen::inRange(0, 8)}, *rc::gen::inRange(0, 4)});
  }
  std::vector<std::pair<std::vector<int64_t>, double>> types;
  const int count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    types.push_back({{*rc::gen::inRange(8, 20), *rc::gen::inRange(8, 20)}, *rc::gen::inRange(1, 20) * 0.25});
  }
  const PackingProblem problem = Problem(items, types);
  const Packing packing = PackAll(problem);
  std::vector<int64_t> counts, placed(items.size(), 0);
  double cost = 0;
  for (const PackingItem& item : items) counts.push_back(item.count);
  for (const PackedNodes& run : packing.nodes) {
    cost += problem.types[static_cast<size_t>(run.type)].cost * static_cast<double>(run.nodes);
    for (size_t r = 0; r < 2; ++r) {
      int64_t used = 0;
      for (size_t i = 0; i < items.size(); ++i) used += items[i].request[r] * run.items[i];
      RC_ASSERT(used <= problem.types[static_cast<size_t>(run.type)].free[r]);
    }
    for (size_t i = 0; i < items.size(); ++i) placed[i] += run.items[i] * run.nodes;
  }
  RC_ASSERT(placed == counts);
  RC_ASSERT(std::abs(cost - packing.cost) < 1e-9);
  const double optimum = Cheapest(problem, counts);
  RC_ASSERT(packing.lower_bound <= optimum + 1e-6);
  RC_ASSERT(packing.cost >= optimum - 1e-9);
  // A heuristic, but not by more than a small node here.
  RC_ASSERT(packing.cost <= optimum * 1.34 + 1e-9);
}

}  // namespace
}  // namespace loadline
