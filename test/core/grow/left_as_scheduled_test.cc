// Nodes have 1000 milli-CPU, plenty of memory, and ten slots for pods.
#include "core/grow/left_as_scheduled.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

class LeftAsScheduledTest : public ::testing::Test {
 protected:
  static FitNode Machine(const std::string& name) {
    return {.name = name, .allocatable = {{"cpu", 1000}, {"memory", 100'000}, {"pods", 10}}};
  }
  void Wait(int64_t milli_cpu, int64_t count) {
    pods_.push_back({cluster_.Incoming({.requests = {{"cpu", milli_cpu}, {"memory", 1}}}), count});
  }
  int64_t Left(int64_t new_nodes, WorkBudget budget = WorkBudget()) {
    NodeGroup group;
    group.name = "new";
    group.model = NodeModel{cluster_.Shape(Machine("new"))};
    const std::vector<ComingNodes> coming = {{&group, new_nodes}};
    for (PendingPods& entry : pods_) entry.pod.names = cluster_.names();
    Snapshot snapshot(cluster_.state());
    const int32_t before = snapshot.node_end();
    const int64_t left = LeftAsScheduled(pods_, {}, coming, fit_, &snapshot, &budget);
    EXPECT_EQ(snapshot.depth(), 0U);
    EXPECT_EQ(snapshot.node_end(), before);
    EXPECT_FALSE(budget.ended()) << "what comes after it has its part";
    return left;
  }

  FitCluster cluster_;
  FitOptions fit_;
  std::vector<PendingPods> pods_;
};

TEST_F(LeftAsScheduledTest, SmallPodsThatSpreadLeaveNoRoomForALargeOne) {
  Wait(250, 4);  // two come to each node, where they come first
  Wait(1000, 1);
  EXPECT_EQ(Left(2), 1);
  EXPECT_EQ(Left(5), 0);  // one on each of four
}

TEST_F(LeftAsScheduledTest, ALargePodNeedsANodeOfItsOwnWhereItComesLast) {
  Wait(600, 1);
  Wait(200, 7);  // four and three on two nodes, three and two and two on three
  EXPECT_EQ(Left(2), 1);
  EXPECT_EQ(Left(3), 0);
}

TEST_F(LeftAsScheduledTest, NodesThatAreThereTakePodsToo) {
  cluster_.Add(Machine("there"), {});
  Wait(1000, 3);
  EXPECT_EQ(Left(2), 0);
  EXPECT_EQ(Left(1), 1);
}

TEST_F(LeftAsScheduledTest, PodsThatNoNodeTakesAreLeftWhateverTheOrder) {
  Wait(2000, 3);
  EXPECT_EQ(Left(4), 3);
}

TEST_F(LeftAsScheduledTest, WithoutPodsOrNodesNothingIsLeft) {
  EXPECT_EQ(Left(2), 0);
  Wait(250, 4);
  EXPECT_EQ(Left(0), 0);
}

TEST_F(LeftAsScheduledTest, WhatCostsTooMuchToFindOutIsNotAsked) {
  Wait(1000, 10'000);
  EXPECT_EQ(Left(9'000), 0);  // a thousand have no place
}

TEST_F(LeftAsScheduledTest, ABudgetThatEndsLeavesNothing) {
  Wait(1000, 5);
  EXPECT_EQ(Left(2), 3);
  EXPECT_EQ(Left(2, WorkBudget(10)), 0);
}

}  // namespace
}  // namespace loadline
