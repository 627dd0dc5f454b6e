#include "core/drain/filter_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "test/testing/naive_line.h"

namespace loadline {
namespace {

using ::testing::Eq;
using ::testing::IsNull;

PodShape Web() {
  PodShape shape;
  shape.namespace_name = "shop";
  shape.labels = Labels(std::vector<Label>{{"app", "web"}});
  shape.requests[kCpu] = 500;
  shape.limits[kCpu] = 2'000;
  shape.limits[kMemory] = 1'024;
  shape.partial_limits = std::make_shared<const std::vector<PartialLimit>>(std::vector<PartialLimit>{
      {.resource = kCpu, .by_request = 700}, {.resource = kMemory, .by_request = 300}});
  return shape;
}

std::shared_ptr<const PodRules> Shared(PodRules rules) {
  return std::make_shared<const PodRules>(std::move(rules));
}

TEST(FilterShapeTest, LeavesOutWhatNoFilterReads) {
  PodShape other = Web();
  other.best_effort = true;
  other.limits[kCpu] = 9'000;
  other.partial_limits = nullptr;
  PodTraits traits;
  traits.priority = 7;
  other.traits = std::make_shared<const PodTraits>(traits);
  const PodShape shape = ShapeForFilters(Web(), LoadLine());
  EXPECT_EQ(shape, ShapeForFilters(other, LoadLine()));
  EXPECT_EQ(shape.fingerprint, ShapeForFilters(other, LoadLine()).fingerprint);
  EXPECT_THAT(shape.namespace_name, Eq("shop"));
  EXPECT_EQ(shape.labels, Web().labels);
  EXPECT_THAT(shape.requests.Get(kCpu), Eq(500));
  EXPECT_THAT(shape.limits.Find(kCpu), IsNull());
  EXPECT_THAT(shape.partial_limits, IsNull());
}

TEST(FilterShapeTest, KeepsLimitsOfTheResourcesOfTheLoadLineOnly) {
  const PodShape shape = ShapeForFilters(Web(), StrictLine(/*cpu=*/1'500, /*memory=*/0));
  EXPECT_THAT(shape.limits.Get(kCpu), Eq(2'000));
  EXPECT_THAT(shape.limits.Find(kMemory), IsNull());
  ASSERT_NE(shape.partial_limits, nullptr);
  ASSERT_EQ(shape.partial_limits->size(), 1U);
  EXPECT_EQ(shape.partial_limits->front().by_request, 700);
}

TEST(FilterShapeTest, ShapesThatDifferForAFilterHaveOtherFingerprints) {
  const LoadLine line = StrictLine(1'500, 0);
  const PodShape shape = ShapeForFilters(Web(), line);
  PodShape requests = Web(), space = Web(), limits = Web(), partial = Web(), best_effort = Web(),
           rules = Web();
  requests.requests[kCpu] = 501;
  space.namespace_name = "shop-2";
  limits.limits[kCpu] = 2'001;
  partial.partial_limits = nullptr;
  best_effort.best_effort = true;
  rules.rules = Shared({.host_ports = {{.port = 80, .protocol = "TCP", .ip = "0.0.0.0"}}});
  for (const PodShape* other : {&requests, &space, &limits, &partial, &best_effort, &rules}) {
    EXPECT_NE(ShapeForFilters(*other, line).base_fingerprint, shape.base_fingerprint);
    EXPECT_NE(ShapeForFilters(*other, line).fingerprint, shape.fingerprint);
  }
}

TEST(FilterShapeTest, AReplacementIsBoundToNoNodeAndNotTerminating) {
  PodShape leaving = Web();
  leaving.rules = Shared({.node_name = "node-a", .terminating = true});
  EXPECT_EQ(ShapeForFilters(leaving, LoadLine()), ShapeForFilters(Web(), LoadLine()));

  leaving.rules = Shared({.node_name = "node-a",
                          .node_selector = Labels(std::vector<Label>{{"zone", "b"}}),
                          .terminating = true});
  const PodShape shape = ShapeForFilters(leaving, LoadLine());
  ASSERT_NE(shape.rules, nullptr);
  EXPECT_EQ(*shape.rules, PodRules({.node_selector = Labels(std::vector<Label>{{"zone", "b"}})}));
}

TEST(FilterShapeTest, DependsOnOthersByRulesAboutPodsAndByVolumes) {
  PodShape shape = Web();
  EXPECT_FALSE(DependsOnOthers(shape));
  shape.rules = Shared({.host_ports = {{.port = 80, .protocol = "TCP", .ip = "0.0.0.0"}}});
  EXPECT_FALSE(DependsOnOthers(shape));
  for (const PodRules& rules :
       {PodRules{.spread = {SpreadConstraint()}}, PodRules{.affinity = {AffinityTerm()}},
        PodRules{.anti_affinity = {AffinityTerm()}}, PodRules{.volumes = {PodVolume()}}}) {
    shape.rules = Shared(rules);
    EXPECT_TRUE(DependsOnOthers(shape));
  }
}

}  // namespace
}  // namespace loadline
