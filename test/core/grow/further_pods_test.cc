// Growth that has further pods in mind: see look_ahead.h.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

// Full nodes, groups of 2 and 8 CPUs at one price per CPU, and 300 millicores of a DaemonSet on each node.
class FurtherPodsTest : public LoopTest {
 protected:
  FurtherPodsTest() {
    AddGroup("small", 2'000, 0.095, 0, 100);
    AddGroup("large", 8'000, 0.38, 0, 100);
    Pending(Replica("waits", 900), 1);
  }
  std::vector<std::pair<GroupIndex, int64_t>> Grown(int full_nodes) {
    nodes_.clear();
    for (int i = 0; i < full_nodes; ++i) {
      const std::string name = "full-" + std::to_string(i);
      nodes_.push_back({NodeOf(name, 8'000), {Replica(name, 8'000)}, std::nullopt});
    }
    FitCluster cluster;
    cluster.Shape(NodeOf("any", 1));  // interns the names of its resources
    problem_.daemons = {cluster.Incoming({.requests = {{"cpu", 300}}})};
    std::vector<std::pair<GroupIndex, int64_t>> grown;
    for (const LoopGrowth& growth : Plan().growth) grown.emplace_back(growth.group, growth.for_pods);
    return grown;
  }
  const std::vector<std::pair<GroupIndex, int64_t>> small_ = {{GroupIndex{0}, 1}};
  const std::vector<std::pair<GroupIndex, int64_t>> large_ = {{GroupIndex{1}, 1}};
};

TEST_F(FurtherPodsTest, TheSizeOfTheClusterSaysHowManyAreExpected) {
  EXPECT_EQ(Grown(2), small_);  // 2 CPUs: 2 further pods, 0.127 each
  EXPECT_EQ(Grown(7), large_);  // 8 CPUs: 8 further pods, 0.0475 each
  EXPECT_EQ(Grown(30), large_);
}

TEST_F(FurtherPodsTest, AQuestionMayLookAtThePodsThatWaitAlone) {
  problem_.looks_ahead = false;
  EXPECT_EQ(Grown(30), small_);
}

TEST_F(FurtherPodsTest, ANodeOnItsWayForFurtherPodsIsKept) {
  problem_.groups[GroupIndex{1}].target = 1;  // it takes the pod, which therefore gets no smaller one
  EXPECT_TRUE(Grown(30).empty());
}

// The full nodes have 240 CPUs. Beside them a large node leaves 30 of 278, a tenth being 27.8, and 27 of 275.
TEST_F(FurtherPodsTest, TheLastTenthOfAMaximumIsForPodsThatWait) {
  problem_.maxima = {{.milli_cpu = 278'000}};
  EXPECT_EQ(Grown(30), large_);
  problem_.maxima = {{.milli_cpu = 275'000}};
  EXPECT_EQ(Grown(30), small_);
  problem_.maxima = {{.selector = {true, {}}, .nodes = 31}};
  EXPECT_EQ(Grown(30), large_) << "one large node is no more than one small node";
}

// One more node leaves 2 of 20, and 1 of 20.
TEST_F(FurtherPodsTest, TheLastTenthOfAGroupIsForPodsThatWait) {
  NodeGroup& large = problem_.groups[GroupIndex{1}];
  large.max_nodes = 20;
  for (const int there : {17, 18}) {
    Grown(30);
    for (int i = 0; i < there; ++i) nodes_[static_cast<size_t>(i)].group = GroupIndex{1};
    large.target = there;
    const LoopPlan plan = Plan();
    ASSERT_EQ(plan.growth.size(), 1U);
    EXPECT_EQ(plan.growth[0].group, GroupIndex{there == 17 ? 1 : 0});
  }
}

}  // namespace
}  // namespace loadline
