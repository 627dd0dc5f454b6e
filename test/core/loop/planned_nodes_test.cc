#include "core/loop/planned_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

Taint TaintOf(const std::string& key) { return {key, "5", "NoSchedule"}; }

TEST(PlannedNodesTest, StartupTaints) {
  EXPECT_TRUE(IsStartupTaint("startup-taint.cluster-autoscaler.kubernetes.io/gpu"));
  EXPECT_TRUE(IsStartupTaint("ignore-taint.cluster-autoscaler.kubernetes.io/x"));
  EXPECT_TRUE(IsStartupTaint("node.cloudprovider.kubernetes.io/uninitialized"));
  EXPECT_FALSE(IsStartupTaint("node.cloudprovider.kubernetes.io/shutdown"));
  EXPECT_FALSE(IsStartupTaint("dedicated"));
}

TEST(PlannedNodesTest, WithoutPlaceItTakesNoPods) {
  FitCluster cluster;
  const NodeShape node = cluster.Shape(FitNode{.name = "n", .taints = {TaintOf("dedicated")}});
  const NodeShape closed = WithoutPlace(node, cluster.names());
  EXPECT_EQ(closed,
            cluster.Shape(FitNode{.name = "n", .taints = {TaintOf("dedicated")}, .unschedulable = true}));
}

TEST(PlannedNodesTest, WithoutMarkItIsAsBefore) {
  FitCluster cluster;
  const NodeShape marked =
      cluster.Shape(FitNode{.name = "n",
                            .taints = {TaintOf("ToBeDeletedByClusterAutoscaler"), TaintOf("dedicated"),
                                       TaintOf("DeletionCandidateOfClusterAutoscaler"),
                                       TaintOf("node.kubernetes.io/unschedulable")},
                            .unschedulable = true});
  const Taint soft{"DeletionCandidateOfClusterAutoscaler", "77", "PreferNoSchedule"};
  const NodeMark ours{.since_s = 77, .cordoned = true};
  EXPECT_EQ(WithoutMark(marked, ours, cluster.names()),
            cluster.Shape(FitNode{.name = "n", .taints = {TaintOf("dedicated"), soft}}));
  const NodeMark of_others{.since_s = 77, .cordoned = false};
  EXPECT_EQ(WithoutMark(marked, of_others, cluster.names()),
            cluster.Shape(
                FitNode{.name = "n",
                        .taints = {TaintOf("dedicated"), TaintOf("node.kubernetes.io/unschedulable"), soft},
                        .unschedulable = true}));
}

TEST(PlannedNodesTest, LikeNewItHasWhatItJoinedWith) {
  FitCluster cluster;
  const NodeShape node = cluster.Shape(
      FitNode{.name = "n",
              .labels = {{kZone, "a"}},
              .taints = {TaintOf("node.kubernetes.io/not-ready"), TaintOf("dedicated"),
                         TaintOf("ToBeDeletedByClusterAutoscaler"), TaintOf("atlassian.com/escalator"),
                         TaintOf("startup-taint.cluster-autoscaler.kubernetes.io/gpu"),
                         TaintOf("DeletionCandidateOfClusterAutoscaler")},
              .unschedulable = true});
  EXPECT_EQ(LikeNew(node, cluster.names()),
            cluster.Shape(FitNode{.name = "n", .labels = {{kZone, "a"}}, .taints = {TaintOf("dedicated")}}));
}

TEST(PlannedNodesTest, TheBestExample) {
  FitCluster cluster;
  FitNode unready{.name = "a"};
  unready.traits.ready = false;
  cluster.Add(unready);
  cluster.Add(FitNode{.name = "b", .unschedulable = true});
  cluster.Add(FitNode{.name = "d"});
  cluster.Add(FitNode{.name = "c"});
  const auto best = [&](std::vector<Slot> nodes, std::vector<Slot> lacking) {
    return BestExample(cluster.state(), nodes, lacking);
  };
  const Slot a{0}, b{1}, d{2}, c{3};
  EXPECT_FALSE(best({}, {}).has_value());
  EXPECT_EQ(best({a, b, d, c}, {})->slot, c);
  EXPECT_TRUE(best({a, b, d, c}, {})->good);
  EXPECT_EQ(best({a, b, d, c}, {c})->slot, d);
  // One with all devices comes before one that pods go to.
  EXPECT_EQ(best({a, d, c}, {d, c})->slot, a);
  EXPECT_FALSE(best({a, d, c}, {d, c})->good);
  EXPECT_EQ(best({b, a}, {})->slot, a);
}

}  // namespace
}  // namespace loadline
