#include "core/expand/options_under_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "test/testing/fit_cluster.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

class OptionsUnderLineTest : public ::testing::Test {
 protected:
  // A node of 4 cores and 10 units of memory.
  OptionsUnderLineTest() : node_(cluster_.Shape(FitNode{.allocatable = {{"cpu", 4'000}, {"memory", 10}}})) {}

  // Pods of an option; a limit of 0 is none.
  void Pods(int64_t count, int64_t memory_limit, bool exempt = false) {
    FitPod pod;
    pod.requests = {{"cpu", 100}, {"memory", 1}};
    if (memory_limit > 0) pod.limits = {{"memory", memory_limit}};
    option_.pods.push_back({pods_.size(), count});
    pods_.push_back({cluster_.Shape(pod), exempt});
  }
  // Returns the number of nodes of `option_` under the line, and fills in the pods of each run.
  int64_t Nodes(const LoadLine& line) {
    ExpansionOption option = option_;
    KeepToLine(line, node_, pods_, &option);
    counts_.clear();
    most_.clear();
    for (const PodRun& run : option.pods) {
      counts_.push_back(run.count);
      most_.push_back(run.most_on_node);
    }
    return option.node_count;
  }

  FitCluster cluster_;
  NodeShape node_;
  std::vector<LinePod> pods_;
  ExpansionOption option_ = {.node_count = 1};
  std::vector<int64_t> counts_, most_;
};

// 5 pods of 6 and 2 of 4 units count as 38; a node takes 15 under a line of 1.5.
TEST_F(OptionsUnderLineTest, CountsNodesByWhatLimitsNeed) {
  Pods(5, 6);
  Pods(2, 4);
  EXPECT_EQ(Nodes(StrictLine(0, 1'500)), 3);
  EXPECT_THAT(counts_, ElementsAre(5, 2));
  EXPECT_THAT(most_, ElementsAre(2, 3));
  EXPECT_EQ(Nodes(StrictLine(0, 3'800)), 1);
  option_.node_count = 7;
  EXPECT_EQ(Nodes(StrictLine(0, 1'500)), 7);
  option_.node_count = 0;
  EXPECT_EQ(Nodes(StrictLine(0, 1'500)), 0);
}

// Without a limit a pod counts as all memory of its node, and one of 25 units as well.
TEST_F(OptionsUnderLineTest, APodCountsAtMostAsItsNode) {
  Pods(4, 0);
  Pods(1, 25);
  EXPECT_EQ(Nodes(StrictLine(0, 1'500)), 4);  // 50 by 15
  EXPECT_THAT(most_, ElementsAre(1, 1));
}

TEST_F(OptionsUnderLineTest, PodsThatNoNodeTakesDoNotCount) {
  Pods(4, 0);
  Pods(3, 4);
  EXPECT_EQ(Nodes(StrictLine(0, 500)), 3);  // 12 by 5, without those that count as 10
  EXPECT_THAT(counts_, ElementsAre(0, 3));
  EXPECT_THAT(most_, ElementsAre(0, 1));
}

TEST_F(OptionsUnderLineTest, ExemptAndUnknownPodsAskForNoRoom) {
  Pods(9, 8, /*exempt=*/true);
  Pods(9, 8);
  pods_[1].shape.reset();
  EXPECT_EQ(Nodes(StrictLine(0, 500)), 1);
  EXPECT_THAT(counts_, ElementsAre(9, 9));
  EXPECT_THAT(most_, ElementsAre(std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()));
}

// Never more nodes than first fit needs, and never so few that limits alone would be above the line.
TEST_F(OptionsUnderLineTest, IsABoundOnNodes) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    pods_.clear();
    option_.pods.clear();
    for (int64_t kinds = draw(1, 5); kinds > 0; --kinds) Pods(draw(1, 9), draw(0, 3) == 0 ? 0 : draw(1, 14));
    const int64_t line = draw(900, 3'000);
    const int64_t nodes = Nodes(StrictLine(0, line));
    std::vector<int64_t> used;
    int64_t sum = 0;
    for (const PodRun& run : option_.pods) {
      const int64_t counted = NaiveCounted(*pods_[run.pod].shape, kMemory, 10);
      if (counted * 1000 > line * 10) continue;
      for (int64_t pod = 0; pod < run.count; ++pod) {
        sum += counted;
        const auto room = [&](int64_t amount) { return (amount + counted) * 1000 <= line * 10; };
        const auto found = std::find_if(used.begin(), used.end(), room);
        if (found == used.end()) {
          used.push_back(counted);
        } else {
          *found += counted;
        }
      }
    }
    EXPECT_LE(nodes, std::max<int64_t>(1, static_cast<int64_t>(used.size()))) << "round " << round;
    EXPECT_LE(sum * 1000, line * 10 * nodes) << "round " << round;
  }
}

}  // namespace
}  // namespace loadline
