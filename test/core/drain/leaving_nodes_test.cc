// Nodes that leave, as spread constraints see them.
#include <gtest/gtest.h>

#include <string>

#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

// Four nodes of which 20 % is used, by two pods each that spread over nodes.
DrainCluster SpreadOverFourNodes(bool honor_taints, const std::vector<Toleration>& tolerations = {}) {
  DrainCluster cluster;
  for (const std::string name : {"a", "b", "c", "d"}) {
    DrainNode node;
    node.node = {.name = name, .allocatable = {{"cpu", 4000}, {"memory", 16}, {"pods", 110}}};
    node.node.traits.ready = true;
    for (const std::string pod : {"1", "2"}) {
      node.pods.push_back(ReplicaPod(name + pod, 400));
      PodRules& rules = node.pods.back().rules;
      rules.has_spread = true;
      rules.tolerations = tolerations;
      rules.spread = {{.max_skew = 1,
                       .topology_key = kHostnameLabel,
                       .selector = Select("app", "app"),
                       .honor_taints = honor_taints}};
    }
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

size_t NodesThatGo(const DrainCluster& cluster) {
  DrainModel model(cluster);
  DrainPlanner planner;
  WorkBudget budget;
  return planner.Plan(model.problem(), {}, &budget).remove.size();
}

// A node that leaves is tainted, so that it is no domain any more: the pods of two nodes go to the two
// others, two each, which then have to stay.
TEST(LeavingNodesTest, AreNoDomainWhereConstraintsHonorTaints) {
  EXPECT_EQ(NodesThatGo(SpreadOverFourNodes(true)), 2U);
}

// If taints are ignored, the empty node is the domain with the fewest pods until it is gone, and the
// scheduler puts no third pod anywhere. The same for pods that tolerate the taint.
TEST(LeavingNodesTest, StayADomainWhereConstraintsIgnoreTaints) {
  EXPECT_EQ(NodesThatGo(SpreadOverFourNodes(false)), 0U);
  EXPECT_EQ(NodesThatGo(SpreadOverFourNodes(true, {{"", "Exists", "", ""}})), 0U);
  EXPECT_EQ(NodesThatGo(SpreadOverFourNodes(true, {{"another", "Exists", "", ""}})), 2U);
}

}  // namespace
}  // namespace loadline
