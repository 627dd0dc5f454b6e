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

}  // namespace
}  // namespace loadline
