#include "core/observe/planned_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

Taint TaintOf(const std::string& key) { return {key, "5", "NoSchedule"}; }

TEST(PlannedNodesTest, WithoutPlaceItTakesNoPods) {
  FitCluster cluster;
  const NodeShape node = cluster.Shape(FitNode{.name = "n", .taints = {TaintOf("dedicated")}});
  const NodeShape closed = WithoutPlace(node);
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
  EXPECT_EQ(WithoutMark(marked, ours),
            cluster.Shape(FitNode{.name = "n", .taints = {TaintOf("dedicated"), soft}}));
  const NodeMark of_others{.since_s = 77, .cordoned = false};
  EXPECT_EQ(WithoutMark(marked, of_others),
            cluster.Shape(
                FitNode{.name = "n",
                        .taints = {TaintOf("dedicated"), TaintOf("node.kubernetes.io/unschedulable"), soft},
                        .unschedulable = true}));
}

}  // namespace
}  // namespace loadline
