#include "core/size/utilization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test/core/size/naive_usage.h"

namespace loadline {
namespace {

// 10 pods of 500m and 100 MB on 2 nodes of 1000m and 4000 MB: the example of Escalator's documentation.
TEST(UtilizationTest, WorkedExample) {
  const CpuMemory requests{5000, 1'000'000'000}, capacity{2000, 8'000'000'000};
  const Usage usage = ShippedUsage(requests, capacity, 2);
  EXPECT_EQ(usage.cpu, 250);
  EXPECT_EQ(usage.memory, 12.5);
  EXPECT_EQ(ShippedDelta(usage, 2, requests, 70, std::nullopt), 6);
  EXPECT_EQ(ExactDelta(requests, capacity, 2, 70, std::nullopt), 6);
  const Usage after = ShippedUsage(requests, Times(capacity, 4), 8);
  EXPECT_EQ(after.cpu, 62.5);
  EXPECT_EQ(after.memory, 3.125);
}

TEST(UtilizationTest, FromZero) {
  const CpuMemory requests{1800, 0};
  const Usage usage = ShippedUsage(requests, {}, 0);
  EXPECT_EQ(usage.kind, UsageKind::kFromZero);
  EXPECT_EQ(ShippedDelta(usage, 0, requests, 70, CpuMemory{1000, 4000}), 3);
  EXPECT_EQ(ShippedDelta(usage, 0, requests, 70, std::nullopt), 1);
  EXPECT_EQ(ShippedDelta(usage, 0, requests, 70, CpuMemory{1000, 0}), 1);  // either dimension missing
  EXPECT_EQ(ExactDelta(requests, {}, 0, 70, CpuMemory{1000, 4000}), 3);
  EXPECT_EQ(ExactDelta(requests, {}, 0, 70, std::nullopt), 1);
  EXPECT_EQ(ExactDelta(requests, {}, 0, 70, CpuMemory{1000, 0}), 3);  // no memory is requested
  EXPECT_EQ(ExactDelta({0, 5}, {}, 0, 70, CpuMemory{1000, 0}), std::nullopt);
}

// 550m of 1000m at 55 %: doubles say 55.00000000000001.
TEST(UtilizationTest, ExactlyAtTheThresholdIsNeitherAboveNorBelow) {
  EXPECT_FALSE(IsAbove({550, 0}, {1000, 1000}, 55));
  EXPECT_FALSE(IsBelow({550, 0}, {1000, 1000}, 55));
  EXPECT_TRUE(IsAbove({551, 0}, {1000, 1000}, 55));
  EXPECT_TRUE(IsBelow({549, 0}, {1000, 1000}, 55));
  EXPECT_TRUE(IsAbove({0, 551}, {1000, 1000}, 55));
  EXPECT_FALSE(IsBelow({0, 551}, {1000, 1000}, 55));
}

TEST(UtilizationTest, HugeAmountsSaturate) {
  const CpuMemory all{kMaxAmount, kMaxAmount};
  EXPECT_EQ(Plus(all, all), all);
  EXPECT_EQ(Times(all, 1000), all);
  EXPECT_EQ(ExactDelta(all, {1, 1}, 1, 70, std::nullopt), kMostNodes);
  EXPECT_EQ(ShippedDelta(ShippedUsage(all, {1, 1}, 1), 1, all, 70, std::nullopt), kMostNodes);
  EXPECT_TRUE(IsAbove(all, all, 99));
  EXPECT_FALSE(IsAbove(all, all, 100));
}

// delta nodes are enough, one fewer is not; doubles never say fewer, and at most one more.
TEST(UtilizationTest, ExactDeltaIsTheSmallestThatIsEnough) {
  std::mt19937_64 random(20260217);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int grew = 0, differed = 0;
  for (int i = 0; i < 20'000; ++i) {
    const CpuMemory node{pick(1, 64) * 250, pick(1, 64) << 28};
    const int64_t nodes = pick(0, 100);
    const CpuMemory capacity{node.cpu * nodes, node.memory * nodes};
    const int32_t threshold = static_cast<int32_t>(pick(1, 120));
    const CpuMemory requests{pick(0, 200) * pick(1, 4000), pick(0, 200) * pick(1, int64_t{1} << 32)};
    const std::optional<int64_t> delta = ExactDelta(requests, capacity, nodes, threshold, node);
    ASSERT_TRUE(delta.has_value());
    EXPECT_EQ(IsAbove(requests, capacity, threshold), ExceedsPercent(requests, node, nodes, threshold));
    EXPECT_FALSE(ExceedsPercent(requests, node, nodes + *delta, threshold));
    if (*delta > 0) {
      EXPECT_TRUE(ExceedsPercent(requests, node, nodes + *delta - 1, threshold));
    }
    if (nodes > 0) {
      EXPECT_EQ(ExactDelta(requests, capacity, nodes, threshold, std::nullopt), delta);
    }
    grew += *delta > 0 ? 1 : 0;
    const Usage usage = ShippedUsage(requests, capacity, nodes);
    if (usage.kind == UsageKind::kPercent && std::max(usage.cpu, usage.memory) <= threshold) continue;
    const int64_t shipped = ShippedDelta(usage, nodes, requests, threshold, node);
    EXPECT_GE(shipped, *delta);
    EXPECT_LE(shipped, *delta + 1);
    differed += shipped != *delta ? 1 : 0;
  }
  EXPECT_GT(grew, 5000);
  EXPECT_LT(differed, 2000);
}

}  // namespace
}  // namespace loadline
