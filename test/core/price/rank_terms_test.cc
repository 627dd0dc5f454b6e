#include "core/price/rank_terms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/price/rank_tanh.h"

namespace loadline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Printed by Go 1.26 on amd64: math.Float64bits(math.Tanh(float64(n-1) / 15.0)).
TEST(GoTanh, GivesTheBitsOfGo) {
  const std::pair<int, uint64_t> printed[] = {
      {0, 0xbfb10a9aff88eb86},   {1, 0x0000000000000000},   {2, 0x3fb10a9aff88eb86},
      {3, 0x3fc0f75bd3a1b215},   {4, 0x3fc9439830b3a590},   {5, 0x3fd0ac5df2b36174},
      {9, 0x3fdf3a29b4d862f0},   {10, 0x3fe12f8292d2ccfc},  {11, 0x3fe2a6286b5df250},
      {12, 0x3fe400d2955c3e9c},  {16, 0x3fe85efab514f394},  {20, 0x3feb4ae36be52b17},
      {50, 0x3fefe835b4e0a3c0},  {100, 0x3feffff83cef8ebf}, {250, 0x3fefffffffffffbb},
      {300, 0x3ff0000000000000}, {1000, 0x3ff0000000000000}};
  for (const auto& [n, bits] : printed) {
    EXPECT_EQ(std::bit_cast<uint64_t>(GoTanh((n - 1) / 15.0)), bits) << n;
  }
}

TEST(GoTanh, SpecialValues) {
  EXPECT_EQ(GoTanh(kInfinity), 1);
  EXPECT_EQ(GoTanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(GoTanh(kNotANumber)));
  EXPECT_TRUE(std::signbit(GoTanh(-0.0)));
}

double AddOneByOne(double sum, double addend, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum += addend;
  return sum;
}

TEST(AddRepeatedly, GivesTheBitsOfALoop) {
  // Printed by Go: 10,000 times 0.1 is not 1000.
  EXPECT_EQ(std::bit_cast<uint64_t>(AddRepeatedly(0, 0.1, 10'000)), 0x408f400000000575);
  EXPECT_EQ(AddRepeatedly(0, 0.1, 0), 0);
  EXPECT_EQ(AddRepeatedly(0, 0, 1 << 30), 0);
  EXPECT_EQ(AddRepeatedly(1, 1e-17, 1 << 30), 1);  // lost in each addition
  // Half a unit: one sum is rounded up to even, the rest stay.
  const double odd = std::nextafter(1.0, 2.0);
  const double half_unit = std::ldexp(1.0, -53);
  EXPECT_EQ(AddRepeatedly(odd, half_unit, 1000), AddOneByOne(odd, half_unit, 1000));
}

TEST(AddRepeatedly, AgreesWithALoopOnRandomAmounts) {
  std::mt19937_64 random(20260217);
  for (int i = 0; i < 20'000; ++i) {
    const double sum = random() % 2 == 0 ? 0
                                         : std::ldexp(static_cast<double>(random() % 1'000'000),
                                                      static_cast<int>(random() % 40) - 20);
    // Few bits make ties likely.
    const double addend =
        random() % 2 == 0 ? std::ldexp(static_cast<double>(random() % 64), -static_cast<int>(random() % 60))
                          : static_cast<double>(random() % 1'000'000) * 1e-6;
    const auto count = static_cast<int64_t>(random() % 500);
    ASSERT_EQ(AddRepeatedly(sum, addend, count), AddOneByOne(sum, addend, count))
        << sum << " " << addend << " " << count;
  }
}

// The worked example of the proposal, to the six places that it prints.
TEST(Suppress, FallsWithTheNumberOfNodes) {
  const std::pair<int, double> printed[] = {{1, 4.0},      {2, 3.800296},  {3, 3.602354},  {4, 3.407874},
                                            {5, 3.218439}, {10, 2.388851}, {20, 1.441325}, {50, 1.008712}};
  for (const auto& [nodes, suppressed] : printed)
    EXPECT_NEAR(Suppress(4, nodes, 15), suppressed, 5e-7) << nodes;
}

// Rows of the proposal's tables, by the formula: u * (C + 0.016) / (T + 0.016).
TEST(Score, TablesOfTheProposal) {
  const struct {
    double unfitness, cost, theoretical, ratio, score;
  } rows[] = {{4, 0.095, 0.003, 5.842105, 23.368421},     {1, 0.380, 0.003, 20.842105, 20.842105},
              {4, 0.795, 0.003, 42.684211, 170.736842},   {4, 0.095, 0.003 * 15, 1.819672, 7.278689},
              {1, 0.380, 0.003 * 15, 6.491803, 6.491803}, {4, 0.795, 0.003 * 15, 13.295082, 53.180328}};
  for (const auto& row : rows) {
    const ScoreTerms terms = {.suppressed_unfitness = Suppress(row.unfitness, 1, 15),
                              .cost = row.cost,
                              .theoretical_cost = row.theoretical,
                              .damper = 0.016};
    EXPECT_NEAR(CostRatio(terms), row.ratio, 5e-7);
    EXPECT_NEAR(Score(terms), row.score, 5e-7);
  }
}

// 50 pods of 1.5 CPU that exclude each other: 50 nodes of either type, and the small machine wins.
TEST(Score, FiftyPodsThatExcludeEachOtherTakeTheSmallMachine) {
  const double theoretical = 50 * 0.003 * 15;
  const ScoreTerms small = {Suppress(4, 50, 15), 50 * 0.095, theoretical, 0.016};
  const ScoreTerms preferred = {Suppress(1, 50, 15), 50 * 0.380, theoretical, 0.016};
  EXPECT_LT(Score(small), Score(preferred));
  EXPECT_NEAR(Score(small), 1.008712 * (4.75 + 0.016) / (2.25 + 0.016), 1e-5);
}

// I1: half a small pod changes no score by more than 20 %.
RC_GTEST_PROP(Score, HalfASmallPodChangesLittle, ()) {
  const double cpu = *rc::gen::inRange(1, 100) * 1e-3;
  ScoreTerms terms = {.suppressed_unfitness = *rc::gen::inRange(100, 3200) * 0.01,
                      .cost = *rc::gen::inRange(1, 100'000) * 1e-4,
                      .theoretical_cost = cpu * 0.033174,
                      .damper = 0.5 * 0.033174};
  const double before = Score(terms);
  terms.theoretical_cost = cpu / 2 * 0.033174;
  RC_ASSERT(std::fabs(Score(terms) - before) <= 0.2 * before);
}

TEST(CompareScores, IsATotalOrder) {
  const std::vector<double> ascending = {0, 0.5, 1, 1e300, kNotANumber, kInfinity};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      const int order = CompareScores(ascending[i], ascending[j]);
      EXPECT_EQ((order > 0) - (order < 0), (i > j) - (i < j)) << i << " " << j;
    }
  }
}

TEST(Waste, IsTheShareLeftOver) {
  const LeastWasteInput input = {.nodes = 2,
                                 .node_milli_cpu = 4000,
                                 .node_memory_bytes = 1 << 30,
                                 .requested_milli_cpu = 2000,
                                 .requested_memory_bytes = 1 << 30};
  EXPECT_EQ(Waste(input), 0.75 + 0.5);
  EXPECT_TRUE(std::isnan(Waste(LeastWasteInput{})));
}

}  // namespace
}  // namespace loadline
