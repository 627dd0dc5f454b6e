#include "core/slack/slack_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/cluster/node_model.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kType[] = "node.kubernetes.io/instance-type";

class SlackClassTest : public ::testing::Test {
 protected:
  SlackClassKey Class(const FitNode& node, const LabelKeys& selected = {}) {
    const NodeShape shape = cluster_.Shape(node);
    return ClassOf(shape, {DefaultClassLabels(), selected, {}}, cluster_.names());
  }
  static FitNode Sized(int64_t milli_cpu, int64_t memory) {
    return {.name = "n", .allocatable = {{"cpu", milli_cpu}, {"memory", memory}, {"pods", 110}}};
  }
  static FitNode Tainted(const std::string& key, const std::string& effect = "NoSchedule") {
    FitNode node = Sized(4'000, 64);
    node.taints = {{.key = key, .value = "x", .effect = effect}};
    return node;
  }

  FitCluster cluster_;
};

// 63 is the largest number of six binary digits; of larger ones the first six count.
TEST_F(SlackClassTest, CpuIsExactAndMemoryWithinA32nd) {
  EXPECT_EQ(Class(Sized(4'000, 64)).name, Class(Sized(4'000, 65)).name);
  EXPECT_NE(Class(Sized(4'000, 65)).name, Class(Sized(4'000, 66)).name);
  EXPECT_NE(Class(Sized(4'000, 62)).name, Class(Sized(4'000, 63)).name);
  EXPECT_NE(Class(Sized(4'000, 63)).name, Class(Sized(4'000, 64)).name);
  EXPECT_NE(Class(Sized(4'000, 64)).name, Class(Sized(4'001, 64)).name);
  const int64_t sixteen_gib = int64_t{16} << 30;
  EXPECT_EQ(Class(Sized(4'000, sixteen_gib)).name,
            Class(Sized(4'000, sixteen_gib + sixteen_gib / 32 - 1)).name);
  EXPECT_NE(Class(Sized(4'000, sixteen_gib)).name, Class(Sized(4'000, sixteen_gib + sixteen_gib / 32)).name);
}

TEST_F(SlackClassTest, GpusTellMachinesWithoutATypeApart) {
  const auto with_gpus = [&](int64_t gpus) {
    FitNode node = Sized(4'000, 64);
    if (gpus > 0) node.allocatable.emplace_back("nvidia.com/gpu", gpus);
    return node;
  };
  EXPECT_EQ(Class(with_gpus(1)).name, "gpus 1-nvidia.com/gpu,cpu 4000m,memory 64");
  EXPECT_EQ(Class(with_gpus(8)).name, "gpus 8-nvidia.com/gpu,cpu 4000m,memory 64");
  EXPECT_EQ(Class(with_gpus(0)).name, "cpu 4000m,memory 64");
  FitNode typed = with_gpus(8);
  typed.labels = {{kType, "p5"}};
  EXPECT_EQ(Class(typed).name, "node.kubernetes.io/instance-type=p5,cpu 4000m,memory 64");
}

// A placeholder that asked for the value which means several would never find a node.
TEST_F(SlackClassTest, AValueThatNobodyKnowsIsNotAskedFor) {
  FitNode node = Sized(4'000, 64);
  const std::string plain = Class(node).name;
  node.labels = {{kZone, kOneOfSeveral}};
  EXPECT_EQ(Class(node, {kZone}).name, plain);
  EXPECT_THAT(Class(node, {kZone}).needs, SizeIs(0));
}

TEST_F(SlackClassTest, OnlyLabelsThatCountTellClassesApart) {
  FitNode node = Sized(4'000, 64);
  const std::string plain = Class(node).name;
  node.labels = {{"team", "red"}};
  EXPECT_EQ(Class(node).name, plain);
  node.labels = {{kZone, "a"}};
  const SlackClassKey zone = Class(node);
  EXPECT_NE(zone.name, plain);
  EXPECT_THAT(zone.needs, SizeIs(1));
  node.labels = {{kType, "m5.large"}};
  EXPECT_NE(Class(node).name, plain);
  EXPECT_THAT(Class(node).needs, SizeIs(0)) << "no pod selects nodes by it";
  EXPECT_THAT(Class(node, {kType}).needs, SizeIs(1));
}

TEST_F(SlackClassTest, TaintsThatStayAndRepelTellClassesApart) {
  const std::string plain = Class(Sized(4'000, 64)).name;
  EXPECT_NE(Class(Tainted("dedicated")).name, plain);
  EXPECT_NE(Class(Tainted("dedicated", "NoExecute")).name, plain);
  EXPECT_EQ(Class(Tainted("dedicated", "PreferNoSchedule")).name, plain);
  for (const std::string passing :
       {"node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized",
        "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
        "startup-taint.cluster-autoscaler.kubernetes.io/x", "status-taint.cluster-autoscaler.kubernetes.io/x",
        "ignore-taint.cluster-autoscaler.kubernetes.io/x", "karpenter.sh/disrupted",
        "karpenter.sh/unregistered", "atlassian.com/escalator"}) {
    EXPECT_EQ(Class(Tainted(passing)).name, plain) << passing;
    EXPECT_FALSE(TakesPlaceholders(cluster_.Shape(Tainted(passing)), {})) << passing;
    EXPECT_TRUE(TakesPlaceholders(cluster_.Shape(Tainted(passing, "PreferNoSchedule")), {})) << passing;
  }
  EXPECT_TRUE(TakesPlaceholders(cluster_.Shape(Tainted("dedicated")), {}));
  FitNode cordoned = Sized(4'000, 64);
  cordoned.unschedulable = true;
  EXPECT_FALSE(TakesPlaceholders(cluster_.Shape(cordoned), {}));
}

TEST_F(SlackClassTest, APlaceholderMayBeWhereItsLabelsAreAndItsTaintsAreTolerated) {
  const SlackClassKey plain = Class(Sized(4'000, 64)), larger = Class(Sized(8'000, 64));
  const SlackClassKey tainted = Class(Tainted("dedicated")), other = Class(Tainted("other"));
  EXPECT_TRUE(MayBeOn(plain, larger));
  EXPECT_TRUE(MayBeOn(tainted, plain)) << "a node without the taint";
  EXPECT_FALSE(MayBeOn(plain, tainted));
  EXPECT_FALSE(MayBeOn(other, tainted));
  FitNode node = Sized(4'000, 64);
  node.labels = {{kZone, "a"}};
  const SlackClassKey in_a = Class(node);
  node.labels = {{kZone, "b"}};
  EXPECT_TRUE(MayBeOn(in_a, in_a));
  EXPECT_FALSE(MayBeOn(in_a, Class(node)));
  EXPECT_FALSE(MayBeOn(in_a, plain));
  EXPECT_FALSE(MayBeOn(plain, in_a)) << "pods of its class would see the label";
}

TEST_F(SlackClassTest, ItsRulesSayTheSameToAScheduler) {
  FitNode node = Tainted("dedicated");
  node.labels = {{kZone, "a"}};
  const PodRules rules = PlaceholderRules(Class(node), {"gpu"});
  EXPECT_EQ(*rules.node_selector.Find(kZone), "a");
  ASSERT_THAT(rules.tolerations, SizeIs(1));
  EXPECT_EQ(rules.tolerations[0].key, "dedicated");
  EXPECT_EQ(rules.tolerations[0].op, "Equal");
  EXPECT_EQ(rules.tolerations[0].value, "x");
  EXPECT_EQ(rules.tolerations[0].effect, "NoSchedule");
  ASSERT_TRUE(rules.node_affinity.has_value());
  ASSERT_THAT(rules.node_affinity->terms, SizeIs(1));
  ASSERT_THAT(rules.node_affinity->terms[0].labels, SizeIs(1));
  EXPECT_EQ(rules.node_affinity->terms[0].labels[0].key, "gpu");
  EXPECT_EQ(rules.node_affinity->terms[0].labels[0].op, SelectorOperator::kDoesNotExist);
  EXPECT_FALSE(PlaceholderRules(Class(node), {}).node_affinity.has_value());
}

// Whoever may write a pod chooses labels that count.
TEST_F(SlackClassTest, NamesAreBoundedAndStillDiffer) {
  FitNode node = Sized(4'000, 64);
  node.labels = {{kZone, std::string(10'000, 'z') + "1"}};
  const std::string first = Class(node).name;
  node.labels = {{kZone, std::string(10'000, 'z') + "2"}};
  EXPECT_EQ(first.size(), 512 + 4 + 16);
  EXPECT_NE(Class(node).name, first);
}

}  // namespace
}  // namespace loadline
