#include "core/expand/node_limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace loadline {
namespace {

TEST(NodeLimitsTest, ClusterMaximum) {
  EXPECT_EQ(ClusterNodeLimit(10, 9), 1);
  EXPECT_EQ(ClusterNodeLimit(10, 10), kForbidden);
  EXPECT_EQ(ClusterNodeLimit(10, 11), kForbidden);
  EXPECT_EQ(ClusterNodeLimit(0, 11), kNoLimit);
}

TEST(NodeLimitsTest, AnOverfullGroupTakesNothingFromTheOthers) {
  const std::vector<GroupSize> similar = {{.max = 3, .current = 9}, {.max = 3, .current = 2}};
  EXPECT_EQ(GroupNodeLimit({.max = 5, .current = 4}, similar), 2);
  EXPECT_EQ(GroupNodeLimit({.max = 5, .current = 5}, {}), kForbidden);
}

TEST(NodeLimiterTest, GivesOutTheSmallestLimitOnce) {
  const std::vector<NodeThreshold> thresholds = {{.max_nodes = 0}, {.max_nodes = 5}, {.max_nodes = 7}};
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
