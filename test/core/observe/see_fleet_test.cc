#include "core/observe/see_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kAskedS = 1'000'000;

FitNode NodeOfAge(const std::string& name, int64_t seconds, bool tainted, bool ready = true) {
  FitNode node{.name = name, .traits = {.created_s = kAskedS - seconds, .ready = ready}};
  if (tainted) node.taints = {{.key = "node.cilium.io/agent-not-ready", .value = "", .effect = "NoSchedule"}};
  return node;
}

// A node may take 15 minutes to start, by default.
TEST(SeeFleetTest, NodesThatStartAreInNoGroupForADrain) {
  FitCluster cluster;
  cluster.Add(NodeOfAge("started", 60, /*tainted=*/false));
  cluster.Add(NodeOfAge("tainted", 60, /*tainted=*/true));
  cluster.Add(NodeOfAge("stuck", 901, /*tainted=*/true));
  cluster.Add(NodeOfAge("not-ready", 899, /*tainted=*/false, /*ready=*/false));
  cluster.Add(NodeOfAge("of-no-group", 60, /*tainted=*/true));
  DrainProblem problem;
  problem.cluster = &cluster.state();
  problem.now_s = kAskedS;
  for (const int32_t slot : {0, 1, 2, 3}) problem.group_of.Set(Slot{slot}, GroupIndex{0});
  TakeOutNodesThatStart(StartupTaints(), &problem);
  EXPECT_THAT(problem.not_started, ElementsAre(Slot{1}, Slot{3}));
  EXPECT_EQ(problem.group_of[Slot{0}], GroupIndex{0});
  EXPECT_EQ(problem.group_of[Slot{1}], std::nullopt);
  EXPECT_EQ(problem.group_of[Slot{2}], GroupIndex{0});
  EXPECT_EQ(problem.group_of[Slot{3}], std::nullopt);
}

FitNode NodeWithGpu(const std::string& name, int64_t age_s) {
  FitNode node = NodeOfAge(name, age_s, /*tainted=*/false);
  node.allocatable.push_back({"nvidia.com/gpu", 1});
  return node;
}

// The model of the group has a GPU. The group is kept for the bill.
TEST(SeeFleetTest, ANodeThatLacksDevicesOfItsModelStarts) {
  FitCluster cluster;
  cluster.Add(NodeOfAge("lacks", 60, /*tainted=*/false));
  NodeGroups groups = {{.name = "gpu"}};
  groups.front().model = NodeModel{cluster.Shape(NodeWithGpu("", 0))};
  DrainProblem problem;
  problem.cluster = &cluster.state();
  problem.now_s = kAskedS;
  problem.group_of.Set(Slot{0}, GroupIndex{0});
  FindNodesThatStart(StartupTaints(), {}, cluster.names(), &problem);
  EXPECT_THAT(problem.not_started, ElementsAre());
  FindNodesThatStart(StartupTaints(), groups, cluster.names(), &problem);
  EXPECT_THAT(problem.not_started, ElementsAre(Slot{0}));
  EXPECT_EQ(problem.group_of[Slot{0}], GroupIndex{0});
}

// Without a model the other node shows what nodes of the group come to offer.
TEST(SeeFleetTest, ANodeThatLacksDevicesOfOthersIsInNoGroupForADrain) {
  FitCluster cluster;
  cluster.Add(NodeWithGpu("has", 901));
  cluster.Add(NodeOfAge("lacks", 60, /*tainted=*/false));
  DrainProblem problem;
  problem.cluster = &cluster.state();
  problem.now_s = kAskedS;
  for (const int32_t slot : {0, 1}) problem.group_of.Set(Slot{slot}, GroupIndex{0});
  TakeOutNodesThatStart(StartupTaints(), &problem);
  EXPECT_THAT(problem.not_started, ElementsAre(Slot{1}));
  EXPECT_EQ(problem.group_of[Slot{0}], GroupIndex{0});
  EXPECT_EQ(problem.group_of[Slot{1}], std::nullopt);
}

}  // namespace
}  // namespace loadline
