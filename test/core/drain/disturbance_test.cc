#include "core/drain/disturbance.h"

#include <gtest/gtest.h>

namespace loadline {
namespace {

TEST(DisturbanceTest, ThePriceOfTheLargestPriorityThatIsNotAboveThePodHolds) {
  const DisturbancePrices prices{.usd_per_pod = 0.1, .by_priority = {{0, 0.2}, {1'000, 0.5}}};
  PodTraits pod;
  pod.priority = -1;
  EXPECT_EQ(PriceOf(prices, pod), 0.1);
  pod.priority = 0;
  EXPECT_EQ(PriceOf(prices, pod), 0.2);
  pod.priority = 1'000;
  EXPECT_EQ(PriceOf(prices, pod), 0.5);
  pod.placeholder = true;
  EXPECT_EQ(PriceOf(prices, pod), 0);
}

}  // namespace
}  // namespace loadline
