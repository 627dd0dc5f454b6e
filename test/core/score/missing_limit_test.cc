// The amounts of a pod some of whose containers have no limit. All numbers are counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/score/limit_columns.h"
#include "core/score/limit_score.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kFixedAmount = 100;

// A container by its cpu, in millicores; nullopt: not stated.
ContainerResources Cpu(const std::string& name, std::optional<int64_t> limit, std::optional<int64_t> request,
                       bool sidecar = false) {
  ContainerResources container{.name = name, .sidecar = sidecar};
  if (limit.has_value()) container.limits[kCpu] = Quantity::FromMilli(*limit);
  if (request.has_value()) container.requests[kCpu] = Quantity::FromMilli(*request);
  return container;
}

PodResources PodOf(std::vector<ContainerResources> apps, std::vector<ContainerResources> init = {},
                   int64_t overhead = 0) {
  PodResources pod;
  for (ContainerResources& app : apps) pod.containers.push_back(std::move(app));
  pod.init_containers = std::move(init);
  if (overhead > 0) pod.overhead[kCpu] = Quantity::FromMilli(overhead);
  return pod;
}

PodResources WithPodLevel(PodResources pod, std::optional<int64_t> limit, std::optional<int64_t> request) {
  PodLevelResources& level = pod.pod_level.emplace();
  if (limit.has_value()) level.limits[kCpu] = Quantity::FromMilli(*limit);
  if (request.has_value()) level.requests[kCpu] = Quantity::FromMilli(*request);
  return pod;
}

PodResources WithLimitInStatus(PodResources pod, const std::string& container, int64_t limit) {
  ContainerStatusResources& status = pod.container_statuses.emplace_back();
  status.name = container;
  status.has_resources = true;
  status.limits.emplace()[kCpu] = Quantity::FromMilli(limit);
  return pod;
}

PodLimit CpuLimitOf(const LimitPolicy& policy, const PodResources& pod, PodRole role) {
  const PodShape shape = MakePodShape("default", /*finished=*/false, pod, ResourceNames(), role);
  return PodLimitOf(policy, policy.resources[0], kCpu, shape, role);
}

struct ContainersCase {
  std::string name;
  PodResources pod;
  std::vector<std::string> without_limit;
  // Millicores, by rule: Zero, Request, Fixed 100. Allocatable: the node's where `without_limit` has a name.
  int64_t zero, request, fixed;
};
class MissingLimitOfContainersTest : public ::testing::TestWithParam<ContainersCase> {};

TEST_P(MissingLimitOfContainersTest, CountsByTheRule) {
  const ContainersCase& c = GetParam();
  for (const PodRole role : {PodRole::kIncoming, PodRole::kExisting}) {
    EXPECT_THAT(ContainersWithoutLimit(c.pod, kCpu, ResourceNames(), role == PodRole::kExisting),
                ::testing::ElementsAreArray(c.without_limit));
    LimitPolicy policy = StrictPolicy({{"cpu", 1}});
    const auto counted = [&](MissingLimitRule rule) {
      policy.resources[0].others = policy.resources[0].best_effort = rule;
      const PodLimit limit = CpuLimitOf(policy, c.pod, role);
      EXPECT_EQ(limit.missing, !c.without_limit.empty());
      EXPECT_EQ(limit.allocatable, limit.missing && rule.rule == MissingLimit::kAllocatable);
      return limit.amount;
    };
    EXPECT_EQ(counted({MissingLimit::kZero}), c.zero);
    EXPECT_EQ(counted({MissingLimit::kRequest}), c.request);
    EXPECT_EQ(counted({MissingLimit::kFixed, kFixedAmount}), c.fixed);
    counted({MissingLimit::kAllocatable});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MissingLimitOfContainersTest,
    ::testing::ValuesIn(std::vector<ContainersCase>{
        {"AllHaveOne", PodOf({Cpu("app", 2000, 400)}, {Cpu("mesh", 500, 5, true)}), {}, 2500, 2500, 2500},
        {"App", PodOf({Cpu("app", {}, 400)}, {Cpu("mesh", 100, 5, true)}), {"app"}, 100, 500, 200},
        {"FixedCountsOncePerPod",
         PodOf({Cpu("a", {}, 400), Cpu("b", {}, 300)}, {Cpu("mesh", 100, 5, true)}),
         {"a", "b"},
         100,
         800,
         200},
        {"LimitOfZeroIsNone", PodOf({Cpu("a", 0, 400), Cpu("b", 100, 50)}), {"a"}, 100, 500, 200},
        {"Sidecar", PodOf({Cpu("app", 100, 50)}, {Cpu("mesh", {}, 30, true)}), {"mesh"}, 100, 130, 200},
        {"PodLevelStandsForAll",
         WithPodLevel(PodOf({Cpu("app", {}, 400), Cpu("b", 700, {})}, {}, 50), 900, {}),
         {},
         950,
         950,
         950},
        {"PodLevelLimitOfZeroIsNone", WithPodLevel(PodOf({Cpu("a", {}, 40)}), 0, {}), {"a"}, 0, 40, 100},
        {"RequestOfThePodLevel", WithPodLevel(PodOf({Cpu("app", {}, 400)}), {}, 900), {"app"}, 0, 900, 100},
        {"InitContainerCountsItsRequest",
         PodOf({Cpu("app", 100, 50)}, {Cpu("init", {}, 700)}),
         {},
         700,
         700,
         700},
        {"OverheadIsAlwaysAdded", PodOf({Cpu("app", {}, 400)}, {}, 50), {"app"}, 50, 450, 150},
        {"InitContainerRunsAlone",
         PodOf({Cpu("app", {}, 10)}, {Cpu("init", 2000, {})}),
         {"app"},
         2000,
         2000,
         2000},
        {"InitContainerRunsBesideTheSidecarBeforeIt",
         PodOf({Cpu("app", 100, 50)}, {Cpu("mesh", {}, 300, true), Cpu("init", 2000, {})}),
         {"mesh"},
         2000,
         2300,
         2100},
        {"InitContainerEndsBeforeTheSidecarBehindIt",
         PodOf({Cpu("app", 100, 50)}, {Cpu("init", 2000, {}), Cpu("mesh", {}, 300, true)}),
         {"mesh"},
         2000,
         2000,
         2000},
    }),
    [](const auto& row) { return row.param.name; });

TEST(MissingLimitOfContainers, LimitInTheStatusCountsForExistingPods) {
  const PodResources pod = WithLimitInStatus(PodOf({Cpu("app", {}, 200), Cpu("b", 100, 100)}), "app", 300);
  const LimitPolicy policy = StrictPolicy({{"cpu", 1}});
  EXPECT_EQ(CpuLimitOf(policy, pod, PodRole::kExisting).amount, 400);
  EXPECT_FALSE(CpuLimitOf(policy, pod, PodRole::kExisting).missing);
  EXPECT_EQ(CpuLimitOf(policy, pod, PodRole::kIncoming).amount, 300);
  EXPECT_TRUE(CpuLimitOf(policy, pod, PodRole::kIncoming).missing);
}

TEST(MissingLimitOfContainers, ShapesThatDifferInNothingElseAreApart) {
  // Both request 400m and have limits of 100m in all.
  const PodResources none = PodOf({Cpu("app", {}, 300), Cpu("b", 100, 100)});
  const PodResources both = PodOf({Cpu("app", 50, 300), Cpu("b", 50, 100)});
  const auto shape = [](const PodResources& pod) {
    return MakePodShape("default", /*finished=*/false, pod, ResourceNames(), PodRole::kExisting);
  };
  EXPECT_EQ(shape(none).limits, shape(both).limits);
  EXPECT_NE(shape(none).fingerprint, shape(both).fingerprint);
  EXPECT_FALSE(shape(none) == shape(both));
  EXPECT_TRUE(shape(none) == shape(none));
}

// The usual pod beside an injected sidecar: the app may use all of the node's 16Gi, whatever the sidecar may.
TEST(MissingLimitOfContainers, SidecarWithALimitDoesNotBoundTheApp) {
  PodResources pod;
  pod.containers.push_back({.name = "app"});
  pod.containers[0].requests[kMemory] = Quantity::FromUnits(4 * kGi);
  pod.init_containers.push_back({.name = "mesh", .sidecar = true});
  pod.init_containers[0].limits[kMemory] = Quantity::FromUnits(kGi);
  PodResources five;
  five.containers.push_back({.name = "app"});
  five.containers[0].limits[kMemory] = Quantity::FromUnits(5 * kGi);

  ClusterState cluster;
  const ResourceNames names;
  ResourceAmounts allocatable;
  allocatable[kMemory] = 16 * kGi;
  const auto add = [&](int32_t slot, const char* name, const PodResources& there) {
    const int32_t shape =
        cluster.pod_shapes().Acquire(MakePodShape("", false, there, names, PodRole::kExisting));
    const std::vector<PodContent> pods = {{.shape = shape, .tag = 0, .name = "", .uid = ""}};
    cluster.SetNode(Slot{slot}, name, MakeNodeShape(allocatable, names), pods);
  };
  add(0, "a", pod);
  add(1, "b", five);
  PodResources incoming;
  incoming.containers.push_back({.name = "app"});
  incoming.containers[0].limits[kMemory] = Quantity::FromUnits(kGi);
  LimitColumns columns(StrictPolicy({{"memory", 1}}));
  columns.CatchUp(cluster);
  const std::vector<Slot> slots = {Slot{0}, Slot{1}};
  const std::vector<size_t> all = {0, 1};
  const std::vector<NodeExplanation> nodes = ExplainNodes(
      columns, cluster, MakePodShape("", false, incoming, names, PodRole::kIncoming), slots, all);
  EXPECT_EQ(nodes[0].resources[0].node_limits, 16 * kGi);
  EXPECT_EQ(nodes[0].resources[0].node_missing_limits, 1);
  EXPECT_EQ(nodes[1].resources[0].node_limits, 5 * kGi);
  EXPECT_EQ(nodes[1].resources[0].node_missing_limits, 0);
  std::vector<int32_t> scores;
  ScoreNodes(columns, cluster, MakePodShape("", false, incoming, names, PodRole::kIncoming), slots, &scores);
  EXPECT_THAT(scores, ElementsAre(0, 100));
}

// By the letter of the proposal the pod as a whole has a limit, or has none; its overhead is no limit.
TEST(MissingLimitOfContainers, ProposalDecidesForThePodAsAWhole) {
  const LimitPolicy policy = Kep217Policy({{"cpu", 1}});
  const PodLimit one =
      CpuLimitOf(policy, PodOf({Cpu("app", {}, 400), Cpu("b", 100, {})}), PodRole::kIncoming);
  EXPECT_EQ(one.amount, 100);
  EXPECT_FALSE(one.missing);
  // BestEffort: counts as the allocatable. The proposal reads 1500m of overhead as 2.
  const PodLimit best_effort = CpuLimitOf(policy, PodOf({Cpu("app", {}, {})}, {}, 1500), PodRole::kIncoming);
  EXPECT_TRUE(best_effort.allocatable);
  EXPECT_TRUE(best_effort.missing);
  EXPECT_FALSE(best_effort.limited);
  // Other pods count what the proposal's function returns.
  const PodLimit burstable = CpuLimitOf(policy, PodOf({Cpu("app", {}, 400)}, {}, 1500), PodRole::kIncoming);
  EXPECT_FALSE(burstable.allocatable);
  EXPECT_EQ(burstable.amount, 2);
  const PodLimit limited = CpuLimitOf(policy, PodOf({Cpu("app", 400, {})}, {}, 1500), PodRole::kIncoming);
  EXPECT_EQ(limited.amount, 402);
  EXPECT_FALSE(limited.missing);
}

PodLimit CpuLimitOfPlaceholder(const LimitPolicy& policy, const PodResources& pod, PodRole role) {
  PodTraits traits;
  traits.placeholder = true;
  const PodShape shape =
      MakePodShape("default", /*finished=*/false, pod, ResourceNames(), role, PodRules(), std::move(traits));
  return PodLimitOf(policy, policy.resources[0], kCpu, shape, role);
}

// A placeholder counts as no more than its requests, whatever replaces missing limits: without a limit,
// with a larger one, and as a pod without anything. A smaller limit than its requests cannot be.
TEST(LimitOfPlaceholderTest, IsAtMostItsRequests) {
  for (const LimitPolicy& policy : {StrictPolicy({{"cpu", 1}}), Kep217Policy({{"cpu", 1}})}) {
    for (const PodRole role : {PodRole::kIncoming, PodRole::kExisting}) {
      for (const auto& [limit, request, most] :
           std::vector<std::tuple<std::optional<int64_t>, std::optional<int64_t>, int64_t>>{
               {std::nullopt, 250, 250}, {250, 250, 250}, {900, 250, 250}, {std::nullopt, std::nullopt, 0}}) {
        const PodLimit counted = CpuLimitOfPlaceholder(policy, PodOf({Cpu("pause", limit, request)}), role);
        EXPECT_FALSE(counted.allocatable);
        EXPECT_LE(counted.amount, most);
      }
    }
  }
  const LimitPolicy strict = StrictPolicy({{"cpu", 1}});
  const PodLimit counted =
      CpuLimitOfPlaceholder(strict, PodOf({Cpu("pause", std::nullopt, 250)}), PodRole::kExisting);
  EXPECT_EQ(counted.amount, 250);
  EXPECT_FALSE(counted.missing);
}

}  // namespace
}  // namespace loadline
