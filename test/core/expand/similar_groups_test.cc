#include "core/expand/similar_groups.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/resource_names.h"

namespace loadline {
namespace {

// Nodes of 4 cores and 16,000 bytes, of which 3,900m and 15,000 bytes are allocatable.
class SimilarGroupsTest : public ::testing::Test {
 protected:
  struct Node {
    std::vector<Label> labels = {{"disk", "ssd"}, {"topology.kubernetes.io/zone", "a"}};
    int64_t cpu = 3'900;
    int64_t memory = 15'000;
    PricedNode priced = {.milli_cpu = 4'000, .memory_bytes = 16'000};
  };

  bool Similar() const { return SimilarEitherWay(first_, second_); }
  bool SimilarEitherWay(const Node& a, const Node& b) const {
    const NodeShape left = ShapeOf(a);
    const NodeShape right = ShapeOf(b);
    const bool similar = AreSimilar({left, a.priced}, {right, b.priced}, rules_);
    EXPECT_EQ(AreSimilar({right, b.priced}, {left, a.priced}, rules_), similar) << "not symmetric";
    return similar;
  }
  static NodeShape ShapeOf(const Node& node) {
    ResourceAmounts allocatable;
    allocatable[kCpu] = node.cpu;
    allocatable[kMemory] = node.memory;
    return MakeNodeShape(allocatable, ResourceNames(), Labels(node.labels));
  }

  Node first_;
  Node second_;
  SimilarityRules rules_;
};

TEST_F(SimilarGroupsTest, PlacesMayDiffer) {
  EXPECT_TRUE(Similar());
  for (const char* key :
       {"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "kubernetes.io/hostname", "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
        "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone",
        "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "agentpool",
        "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool"}) {
    second_.labels = {{"disk", "ssd"}, {key, "b"}};
    EXPECT_TRUE(Similar()) << key;
  }
}

TEST_F(SimilarGroupsTest, OtherLabelsMayNot) {
  second_.labels = {{"disk", "hdd"}};
  EXPECT_FALSE(Similar());
  second_.labels = {};
  EXPECT_FALSE(Similar()) << "one lacks it";
  rules_.ignored_labels = {"disk"};
  EXPECT_TRUE(Similar());
  second_.labels = {{"disk", "ssd"}, {"further", "1"}};
  EXPECT_FALSE(Similar()) << "one has another one";
}

TEST_F(SimilarGroupsTest, AllocatableAmountsMayDifferByATwentieth) {
  second_.cpu = 3'705;  // 3,900 * 0.95
  second_.memory = 14'250;
  EXPECT_TRUE(Similar()) << "an exact fit";
  second_.cpu = 3'704;
  EXPECT_FALSE(Similar());
  rules_.most_allocatable_difference = 0.06;
  EXPECT_TRUE(Similar());
  rules_.most_allocatable_difference = 0;
  EXPECT_FALSE(Similar());
}

TEST_F(SimilarGroupsTest, CapacityHasToAgreeButForMemory) {
  second_.priced.memory_bytes = 15'760;  // 16,000 * 0.985
  EXPECT_TRUE(Similar());
  second_.priced.memory_bytes = 15'759;
  EXPECT_FALSE(Similar());
  rules_.most_memory_difference = 0.1;
  EXPECT_TRUE(Similar());
  second_.priced.milli_cpu = 3'999;
  EXPECT_FALSE(Similar());
  second_.priced = first_.priced;
  second_.priced.gpus = 1;
  EXPECT_FALSE(Similar());
}

TEST_F(SimilarGroupsTest, NamedLabelsDecideAlone) {
  rules_.labels = {"disk", "pool"};
  EXPECT_FALSE(Similar()) << "neither has the label pool";
  first_.labels.push_back({"pool", "x"});
  EXPECT_FALSE(Similar()) << "one has";
  second_ = {.labels = {{"disk", "ssd"}, {"pool", "x"}, {"further", "1"}}, .cpu = 100, .priced = {}};
  EXPECT_TRUE(Similar()) << "whatever else differs";
  second_.labels[1].value = "y";
  EXPECT_FALSE(Similar());
}

}  // namespace
}  // namespace loadline
