#include "core/score/safe_line.h"

#include <vector>

#include "core/base/amount.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace loadline {
namespace {

std::vector<int64_t> LinesOf(const SafeLine& safe) {
  std::vector<int64_t> lines;
  for (const LineRisk& risk : safe.around) lines.push_back(risk.line);
  return lines;
}

std::vector<size_t> NodesOver(const SafeLine& safe) {
  std::vector<size_t> nodes;
  for (const LineRisk& risk : safe.around) nodes.push_back(risk.nodes_over);
  return nodes;
}

std::vector<int64_t> NodesUnder(const SafeLine& safe) {
  std::vector<int64_t> nodes;
  for (const LineRisk& risk : safe.around) nodes.push_back(risk.nodes);
  return nodes;
}

// The first allows 3000 / 1500 = 2, the second 3300 / 1200 = 2.75, the third 2.8.
TEST(SafeLineTest, IsThatOfTheNodeThatAllowsLeast) {
  const std::optional<SafeLine> safe = FindSafeLine(
      std::vector<UseOnNode>{{2000, 3000, 0, 1500}, {2000, 3300, 0, 1200}, {4000, 2800, 0, 1000}});
  ASSERT_TRUE(safe.has_value());
  EXPECT_EQ(safe->node, 0u);
  EXPECT_EQ(safe->line(), 2000);
  EXPECT_THAT(LinesOf(*safe), ::testing::ElementsAre(1500, 2000, 2500, 3000));
  EXPECT_THAT(NodesOver(*safe), ::testing::ElementsAre(0, 0, 1, 3));
}

TEST(SafeLineTest, IsRoundedDown) {
  // 1000 / 519 = 1.926; 0.75 times 1.9 is 1.425.
  const std::optional<SafeLine> safe = FindSafeLine(std::vector<UseOnNode>{{1000, 1000, 0, 519}});
  ASSERT_TRUE(safe.has_value());
  EXPECT_THAT(LinesOf(*safe), ::testing::ElementsAre(1400, 1900, 2350, 2850));
  EXPECT_THAT(NodesOver(*safe), ::testing::ElementsAre(0, 0, 1, 1));
}

TEST(SafeLineTest, NodesThatAreNearlyEmptyCountOnlyAmongTheirLike) {
  // The second is loaded to exactly half, and allows 5.
  const std::optional<SafeLine> safe =
      FindSafeLine(std::vector<UseOnNode>{{1000, 499, 0, 499}, {1000, 500, 0, 100}});
  ASSERT_TRUE(safe.has_value());
  EXPECT_EQ(safe->node, 1u);
  EXPECT_EQ(safe->line(), 5000);
  const std::optional<SafeLine> alone = FindSafeLine(std::vector<UseOnNode>{{1000, 499, 0, 499}});
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->line(), 1000);
}

TEST(SafeLineTest, StaysWithinWhatALineMayBe) {
  const std::optional<SafeLine> huge = FindSafeLine(std::vector<UseOnNode>{{1, kMaxAmount, 0, 1}});
  ASSERT_TRUE(huge.has_value());
  EXPECT_THAT(LinesOf(*huge), ::testing::ElementsAre(750'000, 1'000'000, 1'000'000, 1'000'000));
  // A node that could not be filled at all: no line is lower than 0.1.
  const std::optional<SafeLine> small = FindSafeLine(std::vector<UseOnNode>{{100, 60, 0, kMaxAmount}});
  ASSERT_TRUE(small.has_value());
  EXPECT_THAT(LinesOf(*small), ::testing::ElementsAre(100, 100, 100, 150));
}

// Limits of 9000 in all on nodes of 2000: 9000 / (2000 * 1.5) = 3, 9000 / (2000 * 2) = 2.25, then 1.8
// and 1.5. Requests of 5000 take 2.5.
TEST(SafeLineTest, SaysHowManyNodesALineTakes) {
  const std::optional<SafeLine> safe = FindSafeLine(
      std::vector<UseOnNode>{{1000, 4500, 100, 2250}, {3000, 4500, 100, 100}, {0, 900, 900, 900}});
  ASSERT_TRUE(safe.has_value());
  EXPECT_EQ(safe->line(), 2000);
  EXPECT_THAT(NodesUnder(*safe), ::testing::ElementsAre(3, 3, 2, 2));
  const std::optional<SafeLine> requested =
      FindSafeLine(std::vector<UseOnNode>{{1000, 4500, 2500, 2250}, {3000, 4500, 2500, 100}});
  ASSERT_TRUE(requested.has_value());
  EXPECT_THAT(NodesUnder(*requested), ::testing::ElementsAre(3, 3, 3, 3));
}

TEST(SafeLineTest, IsUnknownWhereNothingIsUsed) {
  EXPECT_FALSE(FindSafeLine({}).has_value());
  EXPECT_FALSE(FindSafeLine(std::vector<UseOnNode>{{1000, 500, 0, 0}, {0, 10, 0, 10}}).has_value());
}

}  // namespace
}  // namespace loadline
