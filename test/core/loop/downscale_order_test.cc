#include "core/loop/downscale_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster/node_annotations.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nodes of 1000 m each, that one loop after the other orders.
class DownscaleOrderTest : public LoopTest {
 protected:
  DownscaleOrderTest() {
    problem_.decisions = {
        .scale_up = true, .slack = false, .scale_down = true, .replace = false, .downscale_order = true};
    // No node is removed meanwhile.
    problem_.scale_down.eligibility.utilization_threshold = 0;
    AddGroup("g", 1000, 1, /*target=*/0);
  }

  void AddNode(const std::string& name, int64_t milli_cpu) {
    nodes_.push_back({NodeOf(name, 1000), {Replica("p-" + name, milli_cpu)}});
    ++problem_.groups[GroupIndex{0}].target;
  }

  // The nodes in their order, with what the last loop remembers.
  std::vector<std::string> Order() {
    const LoopPlan plan = Plan();
    FitCluster cluster;
    AddTo(&cluster);
    NoteDownscaleOrder(plan, cluster.state(), &memory_);
    problem_.downscale_order = memory_.downscale_order;
    std::vector<std::string> names;
    costs_.clear();
    for (const NodeDeletionCost& node : plan.deletion_costs) {
      names.push_back(nodes_[IndexOf(node.slot)].node.name);
      costs_.push_back(node.cost);
    }
    return names;
  }

  uint64_t KeyOf(int32_t node) {
    FitCluster cluster;
    AddTo(&cluster);
    return KeyOfNode(cluster.state(), Slot{node});
  }

  LoopMemory memory_;
  std::vector<int32_t> costs_;

 private:
  void AddTo(FitCluster* cluster) {
    for (const TestNode& node : nodes_) cluster->Add(node.node, node.pods);
  }
};

TEST_F(DownscaleOrderTest, TheEmptiestComesFirst) {
  AddNode("a", 700);
  AddNode("b", 100);
  AddNode("c", 400);
  EXPECT_THAT(Order(), ElementsAre("b", "c", "a"));
  EXPECT_THAT(costs_, ElementsAre(-999'999'999, -999'999'998, -999'999'997));
}

TEST_F(DownscaleOrderTest, OnlyIfItIsDecided) {
  AddNode("a", 700);
  problem_.decisions.downscale_order = false;
  EXPECT_THAT(Order(), IsEmpty());
}

TEST_F(DownscaleOrderTest, NodesThatMayNotGoAndThoseWithoutReplicasAreLeftOut) {
  for (const char* const name : {"a", "b", "c", "d"}) AddNode(name, 100);
  nodes_[0].node.traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
  nodes_[1].pods[0].traits.owner->kind = "StatefulSet";
  nodes_[2].group.reset();
  --problem_.groups[GroupIndex{0}].target;
  EXPECT_THAT(Order(), ElementsAre("d"));
  nodes_[1].pods[0].traits.owner->kind = "ReplicationController";
  EXPECT_THAT(Order(), ElementsAre("d", "b"));
}

TEST_F(DownscaleOrderTest, OfAGroupNoMoreThanItHasAboveItsMinimum) {
  AddNode("a", 300);
  AddNode("b", 200);
  AddNode("c", 100);
  problem_.groups[GroupIndex{0}].min_nodes = 1;
  EXPECT_THAT(Order(), ElementsAre("c", "b"));
  problem_.groups[GroupIndex{0}].atomic = true;
  EXPECT_THAT(Order(), IsEmpty());
}

// Eight nodes, so that two are the first quarter.
TEST_F(DownscaleOrderTest, NumbersStayWhileTheyAreAboutRight) {
  for (int i = 0; i < 8; ++i) AddNode(std::string(1, static_cast<char>('a' + i)), 100 * (i + 1));
  ASSERT_EQ(Order().front(), "a");
  nodes_[0].pods[0].requests = {{"cpu", 290}};  // the emptiest two have 200 and 290
  EXPECT_EQ(Order().front(), "a");
  nodes_[0].pods[0].requests = {{"cpu", 800}};
  EXPECT_EQ(Order().front(), "a") << "b is still right: half of the quarter";
  nodes_[1].pods[0].requests = {{"cpu", 800}};
  EXPECT_EQ(Order().front(), "c");
  EXPECT_EQ(costs_.front(), -999'999'999) << "all have new numbers";
}

TEST_F(DownscaleOrderTest, NewNodesComeBehindAndNotBeforeAllHaveCome) {
  AddNode("a", 500);
  ASSERT_THAT(Order(), ElementsAre("a"));
  AddNode("b", 450);
  ++problem_.groups[GroupIndex{0}].target;
  EXPECT_THAT(Order(), ElementsAre("a")) << "one is on its way";
  --problem_.groups[GroupIndex{0}].target;
  EXPECT_THAT(Order(), ElementsAre("a", "b"));
}

TEST_F(DownscaleOrderTest, NodesThatMovesBringOrFillAreNotEmptied) {
  AddNode("a", 100);
  AddNode("b", 200);
  problem_.replacement.rest_ms = 1'000;
  problem_.replacement.resting_since_ms[KeyOf(0)] = problem_.replacement.now_ms;
  EXPECT_THAT(Order(), ElementsAre("b"));
}

TEST_F(DownscaleOrderTest, NumbersBeginAnewWhereTheyAreUsedUp) {
  AddNode("a", 100);
  AddNode("b", 200);
  ASSERT_THAT(Order(), ElementsAre("a", "b"));
  problem_.downscale_order[KeyOf(1)] = kMostDownscaleNumber + 1;
  EXPECT_THAT(Order(), ElementsAre("a", "b"));
  EXPECT_THAT(costs_, ElementsAre(-999'999'999, -999'999'998));
}

}  // namespace
}  // namespace loadline
