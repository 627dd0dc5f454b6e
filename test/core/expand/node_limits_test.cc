#include "core/expand/node_limits.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace loadline {
namespace {

TEST(NodeLimitsTest, ClusterMaximum) {
  EXPECT_EQ(ClusterNodeLimit(10, 9), 1);
  EXPECT_EQ(ClusterNodeLimit(10, 10), 0);
  EXPECT_EQ(ClusterNodeLimit(10, 11), 0);
  EXPECT_EQ(ClusterNodeLimit(0, 11), std::nullopt);
}

TEST(NodeLimitsTest, ReadsWhatClusterAutoscalerWrites) {
  EXPECT_EQ(ReadNodeLimit(0), std::nullopt);
  EXPECT_EQ(ReadNodeLimit(-1), 0);
  EXPECT_EQ(ReadNodeLimit(7), 7);
}

TEST(NodeLimitsTest, NoLimitYieldsToAnyAndIsNeverUsedUp) {
  EXPECT_EQ(SmallerLimit(std::nullopt, 0), 0);
  EXPECT_EQ(SmallerLimit(3, std::nullopt), 3);
  EXPECT_EQ(LimitLeft(std::nullopt, 5), std::nullopt);
  EXPECT_EQ(LimitLeft(3, 5), 0);
}

TEST(NodeLimitsTest, AnOverfullGroupTakesNothingFromTheOthers) {
  const std::vector<NodeGroup> similar = {{.max_nodes = 3, .target = 9}, {.max_nodes = 3, .target = 2}};
  EXPECT_EQ(GroupNodeLimit({.max_nodes = 5, .target = 4}, similar), 2);
  EXPECT_EQ(GroupNodeLimit({.max_nodes = 5, .target = 5}, {}), 0);
}

TEST(NodeLimiterTest, GivesOutTheSmallestLimitOnce) {
  const std::vector<NodeThreshold> thresholds = {{.max_seconds = 10}, {.max_nodes = 5}, {.max_nodes = 7}};
  NodeLimiter limiter(thresholds);
  EXPECT_EQ(limiter.Grant(3), 3);
  EXPECT_EQ(limiter.Grantable(3), 2);
  EXPECT_EQ(limiter.Grant(3), 2);
  EXPECT_EQ(limiter.Grant(3), 0);
  EXPECT_EQ(NodeLimiter().Grant(1'000'000), 1'000'000);
}

TEST(NodeLimiterTest, TimeEndsPermissions) {
  const std::vector<NodeThreshold> thresholds = {{.max_seconds = 10}};
  NodeLimiter limiter(thresholds);
  EXPECT_EQ(limiter.Grant(1, 10), 1);
  EXPECT_EQ(limiter.Grant(1, 10.001), 0);
}

}  // namespace
}  // namespace loadline
