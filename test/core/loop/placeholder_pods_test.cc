#include "core/loop/placeholder_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::SizeIs;

Placeholder PlaceholderOn(int64_t id, PlaceholderKind kind, const std::string& owner,
                          const std::string& node) {
  Placeholder placeholder;
  placeholder.id = id;
  placeholder.kind = kind;
  placeholder.owner = owner;
  placeholder.size = {500, 64};
  placeholder.node = node;
  return placeholder;
}

TEST(PlaceholderPodsTest, ThoseOnNodesArePodsOfTheirSizeWithTheRulesOfTheirClass) {
  SlackPlan plan;
  plan.classes.emplace_back().key.name = "class";
  plan.classes[0].rules.node_selector = MakeLabels({{kZone, "a"}});
  SlackState state;
  state.placeholders = {PlaceholderOn(3, PlaceholderKind::kStandard, "class", "n1"),
                        PlaceholderOn(4, PlaceholderKind::kStandard, "class", ""),
                        PlaceholderOn(5, PlaceholderKind::kReserved, "gone", "n2")};
  const std::vector<DrainPlaceholder> pods = PlaceholderPods(state, plan, ResourceNames());
  ASSERT_THAT(pods, SizeIs(2)) << "one has no node";
  EXPECT_EQ(pods[0].name, "slack/3");
  EXPECT_EQ(pods[0].node, "n1");
  const PodShape& shape = pods[0].pod->shape;
  EXPECT_EQ(shape.requests.Get(kCpu), 500);
  EXPECT_EQ(shape.requests.Get(kMemory), 64);
  EXPECT_TRUE(TraitsOf(shape).placeholder);
  ASSERT_NE(shape.rules, nullptr);
  EXPECT_EQ(*shape.rules->node_selector.Find(kZone), "a");
  EXPECT_EQ(pods[1].name, "slack/5");
  EXPECT_EQ(pods[1].pod->shape.rules, nullptr) << "its class is gone";
}

TEST(PlaceholderPodsTest, ACopyIsLikeItsPod) {
  FitCluster cluster;
  FitPod pod{.namespace_name = "shop", .requests = {{"cpu", 500}, {"memory", 64}, {"example.com/card", 2}}};
  pod.rules.host_ports = {{443, "TCP", "0.0.0.0"}};
  SlackPlan plan;
  MirroredSlack& mirrored = plan.mirrored.emplace_back();
  mirrored.pod.key = "pod-1";
  mirrored.pod.size = {500, 64};
  mirrored.pod.shape = cluster.Shape(pod);
  SlackState state;
  state.placeholders = {PlaceholderOn(1, PlaceholderKind::kMirrored, "pod-1", "n1")};
  const std::vector<DrainPlaceholder> pods = PlaceholderPods(state, plan, cluster.names());
  ASSERT_THAT(pods, SizeIs(1));
  EXPECT_EQ(pods[0].pod->shape.fingerprint, mirrored.pod.shape.fingerprint);
  const std::optional<ResourceId> card = pods[0].pod->names.Find("example.com/card");
  ASSERT_TRUE(card.has_value());
  EXPECT_EQ(pods[0].pod->shape.requests.Get(*card), 2);
}

TEST(PlaceholderPodsTest, NamesTellTheIdAndNothingElseDoes) {
  EXPECT_EQ(SlackPlaceholder("slack/17"), 17);
  for (const char* const name :
       {"", "17", "slack/", "slack/x", "slack-17", "slack/1/2", "default/slack/17"}) {
    EXPECT_EQ(SlackPlaceholder(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace loadline
