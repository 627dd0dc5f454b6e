#include "core/cluster/node_offer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/cluster/gpu_resources.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

const std::vector<std::string> kGpuLabels = {"cloud.google.com/gke-accelerator", "accelerator"};

TEST(NodeOfferTest, TheFirstLabelTellsTheTypeOfGPUs) {
  FitCluster cluster;
  FitNode node{.name = "n", .allocatable = {{"cpu", 4000}, {"memory", 16}, {"nvidia.com/gpu", 2}}};
  const auto offer = [&] { return cluster.Shape(node); };
  NodeShape shape = offer();
  EXPECT_EQ(OfferOf(shape, cluster.names(), kGpuLabels), (NodeOffer{4000, 16})) << "no label, no type";
  node.labels = {{"accelerator", "t4"}};
  shape = offer();
  EXPECT_EQ(OfferOf(shape, cluster.names(), kGpuLabels), (NodeOffer{4000, 16, "t4", 2}));
  EXPECT_EQ(OfferOf(shape, cluster.names(), {}), (NodeOffer{4000, 16}));
  node.labels.push_back({"cloud.google.com/gke-accelerator", "v100"});
  node.allocatable.pop_back();
  shape = offer();
  EXPECT_EQ(OfferOf(shape, cluster.names(), kGpuLabels), (NodeOffer{4000, 16, "v100", 0}))
      << "no devices yet";
}

TEST(NodeOfferTest, GPUsAreThoseOfEveryMaker) {
  for (const absl::string_view name : GpuResources()) {
    FitCluster cluster;
    const NodeShape shape = cluster.Shape(FitNode{.name = "n",
                                                  .allocatable = {{"cpu", 4000}, {std::string(name), 3}},
                                                  .labels = {{"accelerator", "x"}}});
    EXPECT_EQ(OfferOf(shape, cluster.names(), kGpuLabels), (NodeOffer{4000, 0, "x", 3})) << name;
    EXPECT_EQ(GpuResourceOf(shape.allocatable, cluster.names()), name);
  }
}

}  // namespace
}  // namespace loadline
