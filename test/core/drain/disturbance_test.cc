#include "core/drain/disturbance.h"

#include <gtest/gtest.h>

#include <optional>

namespace loadline {
namespace {

constexpr int64_t kCreatedS = 1'000'000;

// A pod costs 0.1 USD; it has to be saved within two hours and within a quarter of the time that the node has
// been there.
DisturbanceTerms Terms() { return {{.usd_per_pod = 0.1, .by_priority = {}}, 2, 0.25}; }

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

TEST(DisturbanceTest, ANodePaysOnceItIsOldEnough) {
  // Three pods, 0.3 USD, at 0.4 USD per hour: 45 minutes, a quarter of three hours.
  EXPECT_EQ(PaysFrom(Terms(), 0.4, 0.3, kCreatedS), kCreatedS + 3 * 3'600);
  // Nobody knows its age: 45 minutes are less than two hours.
  EXPECT_EQ(PaysFrom(Terms(), 0.4, 0.3, std::nullopt), 0);
}

TEST(DisturbanceTest, ANodeThatSavesTooLittleWithinTheHoursNeverPays) {
  // Nine pods, 0.9 USD, at 0.4 USD per hour: two hours and a quarter.
  EXPECT_EQ(PaysFrom(Terms(), 0.4, 0.9, kCreatedS), std::nullopt);
  EXPECT_EQ(PaysFrom(Terms(), 0.4, 0.9, std::nullopt), std::nullopt);
  EXPECT_EQ(PaysFrom(Terms(), 0, 0.1, kCreatedS), std::nullopt);
}

TEST(DisturbanceTest, WhatDisturbsNobodyPaysAtOnce) {
  EXPECT_EQ(PaysFrom(Terms(), 0.4, 0, kCreatedS), 0);
  EXPECT_EQ(PaysFrom(Terms(), 0, 0, kCreatedS), 0);
}

}  // namespace
}  // namespace loadline
