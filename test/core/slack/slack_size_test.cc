#include "core/slack/slack_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace loadline {
namespace {

// Room is shared among as few pieces as the unit allows, none larger than it, and at most one unit of each
// resource too much per piece but one.
TEST(SlackSizeTest, SharesRoomAmongAsFewPiecesAsFit) {
  std::mt19937_64 random(20260217);
  const auto pick = [&](int64_t high) { return std::uniform_int_distribution<int64_t>(0, high)(random); };
  int shared = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const CpuMemory room{pick(1) * pick(100'000), pick(3) * pick(1'000'000)};
    const CpuMemory unit{pick(4) == 0 ? 0 : 1 + pick(4'000), pick(4) == 0 ? 0 : 1 + pick(40'000)};
    const std::optional<Pieces> pieces = Share(room, unit);
    const bool none = (room.cpu > 0 && unit.cpu == 0) || (room.memory > 0 && unit.memory == 0);
    ASSERT_EQ(!pieces.has_value(), none);
    refused += none ? 1 : 0;
    if (none) continue;
    const CpuMemory sum = Times(pieces->size, pieces->count);
    const int64_t spare = std::max<int64_t>(0, pieces->count - 1);
    EXPECT_TRUE(Within(room, sum));
    EXPECT_TRUE(Within(sum, Plus(room, {spare, spare})));
    if (pieces->count == 0) continue;
    ++shared;
    EXPECT_TRUE(Within(pieces->size, unit));
    EXPECT_FALSE(Within(room, Times(unit, pieces->count - 1)));
  }
  EXPECT_GT(shared, 5'000);
  EXPECT_GT(refused, 1'000);
}

TEST(SlackSizeTest, RatesAreWholeNumbers) {
  EXPECT_EQ(ExtraRoom({6000, 24000}, kWholeRate / 10), (CpuMemory{600, 2400}));
  EXPECT_EQ(ExtraRoom({6001, 1}, kWholeRate / 10), (CpuMemory{601, 1}));
  EXPECT_EQ(ExtraRoom({kMaxAmount, kMaxAmount}, kWholeRate), (CpuMemory{kMaxAmount, kMaxAmount}));
}

// Two pods, (7000, 10) and (10, 60000), and what is smaller than one of them.
TEST(SlackSizeTest, ReservesForTheBiggestPodsThatFitANode) {
  const CpuMemory cpu{7000, 10}, memory{10, 60000}, hull{7000, 60000};
  const std::vector<CpuMemory> pods = {{5, 5}, cpu, {10, 10}, memory};
  const CpuMemory node{8000, 64000};
  EXPECT_TRUE(ReserveFor(ReserveMode::kNone, pods, node).empty());
  EXPECT_EQ(ReserveFor(ReserveMode::kBiggest, pods, node), (std::vector<CpuMemory>{cpu, memory}));
  EXPECT_EQ(ReserveFor(ReserveMode::kHull, pods, node), std::vector<CpuMemory>{hull});
  EXPECT_EQ(ReserveFor(ReserveMode::kHull, pods, hull), std::vector<CpuMemory>{hull});
  EXPECT_EQ(ReserveFor(ReserveMode::kHull, pods, {6999, 60000}), (std::vector<CpuMemory>{memory}));
  EXPECT_EQ(ReserveFor(ReserveMode::kPareto, pods, node), (std::vector<CpuMemory>{cpu, memory}));
  EXPECT_TRUE(ReserveFor(ReserveMode::kPareto, {}, node).empty());
}

TEST(SlackSizeTest, ComesToRestBelowAWholeRateOfCapacity) {
  EXPECT_EQ(NodesAtRest(9000, 1000, kWholeRate / 10, SlackBasis::kCapacity), 10);
  EXPECT_EQ(NodesAtRest(9000, 1000, kWholeRate / 4, SlackBasis::kCapacity), 12);
  EXPECT_EQ(NodesAtRest(9000, 1000, kWholeRate, SlackBasis::kCapacity), std::nullopt);
  EXPECT_EQ(NodesAtRest(9000, 1000, kWholeRate, SlackBasis::kRequested), 18);
}

}  // namespace
}  // namespace loadline
