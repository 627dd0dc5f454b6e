// Pods that are being resized in place, by the rules of both releases of Kubernetes.
#include "core/cluster/container_amounts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/amount.h"
#include "core/cluster/partial_limits.h"
#include "test/testing/stated_pod.h"

namespace loadline {
namespace {

using stated::List;
using stated::Names;
using stated::Pod;
using stated::Show;
using stated::Stated;

TEST(ResizeRuleTest, FollowsTheRelease) {
  EXPECT_EQ(ResizeRuleOf(0), ResizeRule::kPerContainer);
  EXPECT_EQ(ResizeRuleOf(36), ResizeRule::kPerContainer);
  EXPECT_EQ(ResizeRuleOf(37), ResizeRule::kPerPod);
  EXPECT_EQ(ResizeRuleOf(99), ResizeRule::kPerPod);
}

// The requests and the limits of a pod, by each rule.
struct ResizeCase {
  std::string name;
  Pod pod;
  Stated requests_per_container;
  Stated requests_per_pod;
  Stated limits_per_container;
  Stated limits_per_pod;
};

class ResizeTest : public ::testing::TestWithParam<ResizeCase> {};

TEST_P(ResizeTest, CountsByTheRule) {
  ResizeCase c = GetParam();
  c.pod.By(ResizeRule::kPerContainer);
  EXPECT_EQ(Show(EffectiveRequests(c.pod, Names(), /*use_status=*/true)),
            Show(List(c.requests_per_container)));
  EXPECT_EQ(Show(EffectiveLimits(c.pod, Names(), /*use_status=*/true)), Show(List(c.limits_per_container)));
  const std::string incoming = Show(EffectiveRequests(c.pod, Names(), /*use_status=*/false));
  c.pod.By(ResizeRule::kPerPod);
  EXPECT_EQ(Show(EffectiveRequests(c.pod, Names(), /*use_status=*/true)), Show(List(c.requests_per_pod)));
  EXPECT_EQ(Show(EffectiveLimits(c.pod, Names(), /*use_status=*/true)), Show(List(c.limits_per_pod)));
  EXPECT_EQ(Show(EffectiveRequests(c.pod, Names(), /*use_status=*/false)), incoming);
}

Stated Cpu(const std::string& amount) { return {{"cpu", amount}}; }

INSTANTIATE_TEST_SUITE_P(
    Containers, ResizeTest,
    ::testing::ValuesIn(std::vector<ResizeCase>{
        // Requests by spec 1 + 4, allocated 2 + 2, actuated 3 + 1; limits by spec 1 + 5, actuated 4 + 1.
        {"LargestSum",
         Pod()
             .Container({.limits = Cpu("1"), .requests = Cpu("1")})
             .Container({.limits = Cpu("5"), .requests = Cpu("4")})
             .ContainerStatus("c0", {.limits = Cpu("4"), .requests = Cpu("3"), .allocated = Cpu("2")})
             .ContainerStatus("c1", {.limits = Cpu("1"), .requests = Cpu("1"), .allocated = Cpu("2")}),
         Cpu("7"), Cpu("5"), Cpu("9"), Cpu("6")},
        {"WithoutAStatusTheSpecCountsInEachSum",
         Pod()
             .Container({.limits = Cpu("1"), .requests = Cpu("1")})
             .Container({.limits = Cpu("2"), .requests = Cpu("2")})
             .ContainerStatus("c0", {.limits = Cpu("3"), .requests = Cpu("3")}),
         Cpu("5"), Cpu("5"), Cpu("5"), Cpu("5")},
        {"AllocatedStandsForActuated",
         Pod().Container({.requests = Cpu("1")}).ContainerStatusWithoutResources("c0", Cpu("3")),
         Cpu("1"),
         Cpu("3"),
         {},
         {}},
        // Per pod: by spec 1 + 1, allocated 3 + 1, actuated 3 + 4.
        {"AllocatedStandsForActuatedInTheSum",
         Pod()
             .Container({.requests = Cpu("1")})
             .Container({.requests = Cpu("1")})
             .ContainerStatusWithoutResources("c0", Cpu("3"))
             .ContainerStatus("c1", {.requests = Cpu("4"), .allocated = Cpu("1")}),
         Cpu("5"),
         Cpu("7"),
         {},
         {}},
        {"NoStatusAtAll",
         Pod().Container({.limits = Cpu("2"), .requests = Cpu("1")}).Container({.requests = Cpu("1")}),
         Cpu("2"), Cpu("2"), Cpu("2"), Cpu("2")},
        {"FirstStatusOfAName",
         Pod()
             .Container({.limits = Cpu("1"), .requests = Cpu("1")})
             .ContainerStatus("c0", {.limits = Cpu("3"), .requests = Cpu("4")})
             .ContainerStatus("c0", {.limits = Cpu("2"), .requests = Cpu("2")}),
         Cpu("2"), Cpu("4"), Cpu("2"), Cpu("3")},
        {"StatusOfAnInitContainer",
         Pod()
             .Init({.limits = Cpu("1"), .requests = Cpu("1")})
             .ContainerStatus("i0", {.limits = Cpu("2"), .requests = Cpu("3")}),
         Cpu("1"), Cpu("3"), Cpu("1"), Cpu("2")},
        // By spec: sum 1 + 1, step 1 + 5. Actuated: sum 1 + 3, step 3 + 2. Per container: step 3 + 5.
        {"StepsOfOneSum",
         Pod()
             .Container({.limits = Cpu("1")})
             .Sidecar({.limits = Cpu("1")})
             .Init({.limits = Cpu("5")})
             .ContainerStatus("i0", {.limits = Cpu("3")})
             .ContainerStatus("i1", {.limits = Cpu("2")}),
         {},
         {},
         Cpu("8"),
         Cpu("6")},
        {"LimitsFallBackToTheSpecWithoutLimitsInTheStatus",
         Pod().Container({.limits = Cpu("2")}).ContainerStatus("c0", {.requests = Cpu("1")}), Cpu("1"),
         Cpu("1"), Cpu("2"), Cpu("2")},
    }),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Infeasible, ResizeTest,
    ::testing::ValuesIn(std::vector<ResizeCase>{
        {"LeavesTheSpecOut",
         Pod()
             .Container({.limits = Cpu("8"), .requests = Cpu("8")})
             .ContainerStatus("c0", {.limits = Cpu("3"), .requests = Cpu("2"), .allocated = Cpu("1")})
             .ResizeInfeasible(),
         Cpu("2"), Cpu("2"), Cpu("3"), Cpu("3")},
        {"OfContainersWithoutAStatusAsWell",
         Pod()
             .Container({.limits = Cpu("8"), .requests = Cpu("8")})
             .Container({.limits = Cpu("4"), .requests = Cpu("4")})
             .ContainerStatus("c0", {.limits = Cpu("3"), .requests = Cpu("2"), .allocated = Cpu("1")})
             .ResizeInfeasible(),
         Cpu("6"), Cpu("2"), Cpu("7"), Cpu("3")},
        {"WithoutAnyStatusNothingCounts",
         Pod().Container({.limits = Cpu("5"), .requests = Cpu("5")}).ResizeInfeasible(),
         Cpu("5"),
         {},
         Cpu("5"),
         {}},
        {"SumsOfAllocatedAndActuated",
         Pod()
             .Container({.requests = Cpu("9")})
             .Container({.requests = Cpu("9")})
             .ContainerStatus("c0", {.requests = Cpu("1"), .allocated = Cpu("3")})
             .ContainerStatus("c1", {.requests = Cpu("4"), .allocated = Cpu("1")})
             .ResizeInfeasible(),
         Cpu("7"),
         Cpu("5"),
         {},
         {}},
    }),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    PodLevel, ResizeTest,
    ::testing::ValuesIn(std::vector<ResizeCase>{
        {"StatusOfThePodStandsForTheSums",
         Pod()
             .Container({.limits = Cpu("1"), .requests = Cpu("1")})
             .ContainerStatus("c0", {.limits = Cpu("6"), .requests = Cpu("5")})
             .PodLevelStatus({.limits = Cpu("4"), .requests = Cpu("2"), .allocated = Cpu("3")}),
         Cpu("5"), Cpu("3"), Cpu("6"), Cpu("4")},
        {"ForRequestsOnlyWithAllocated",
         Pod()
             .Container({.requests = Cpu("1")})
             .ContainerStatus("c0", {.requests = Cpu("5")})
             .PodLevelStatus({.requests = Cpu("2")}),
         Cpu("5"),
         Cpu("5"),
         {},
         {}},
        {"OverheadOnTop",
         Pod()
             .Container({.limits = Cpu("1"), .requests = Cpu("1")})
             .PodLevelStatus({.limits = Cpu("2"), .requests = Cpu("2"), .allocated = Cpu("2")})
             .Overhead(Cpu("250m")),
         Cpu("1250m"), Cpu("2250m"), Cpu("1250m"), Cpu("2250m")},
        {"StatusSetsWhatTheSpecLacks",
         Pod()
             .Container({.requests = {{"memory", "3Gi"}, {"example.com/fpga", "1"}}})
             .PodLevel({.requests = Cpu("1")})
             .PodLevelStatus({.requests = {{"cpu", "2"}, {"memory", "1Gi"}, {"example.com/fpga", "4"}}}),
         {{"cpu", "2"}, {"memory", "3Gi"}, {"example.com/fpga", "1"}},
         {{"cpu", "2"}, {"memory", "1Gi"}, {"example.com/fpga", "1"}},
         {},
         {}},
        {"StatusAloneSetsNothing",
         Pod()
             .Container({.requests = {{"memory", "3Gi"}}})
             .PodLevel({.requests = {{"example.com/fpga", "1"}}})
             .PodLevelStatus({.requests = {{"memory", "1Gi"}}}),
         {{"memory", "3Gi"}},
         {{"memory", "3Gi"}},
         {},
         {}},
        {"RequestsSetLimitsOfTheStatus",
         Pod()
             .Container({.limits = Cpu("4")})
             .PodLevel({.requests = Cpu("1")})
             .PodLevelStatus({.limits = Cpu("3")}),
         Cpu("1"), Cpu("1"), Cpu("4"), Cpu("3")},
        {"InfeasibleSetsWhatTheStatusHas",
         Pod()
             .Container({.requests = {{"memory", "1Gi"}}})
             .ContainerStatus("c0", {.requests = {{"memory", "2Gi"}}})
             .PodLevel({.limits = Cpu("9"), .requests = {{"cpu", "8"}, {"memory", "3Gi"}}})
             .PodLevelStatus({.requests = Cpu("2")})
             .ResizeInfeasible(),
         {{"cpu", "2"}, {"memory", "0"}},
         {{"cpu", "2"}, {"memory", "2Gi"}},
         Cpu("9"),
         {}},
        {"WithoutAStatusTheSpecStays",
         Pod()
             .Container({.requests = Cpu("1")})
             .PodLevel({.limits = Cpu("9"), .requests = Cpu("8")})
             .ResizeInfeasible(),
         Cpu("8"), Cpu("8"), Cpu("9"), Cpu("9")},
    }),
    [](const auto& test) { return test.param.name; });

// Above a few statuses they are found in another way: the answer is the same.
TEST(ResizeRuleTest, ManyStatusesAreMatchedByName) {
  Pod pod;
  for (int i = 0; i < 20; ++i) pod.Container({.limits = Cpu("1")});
  for (int i = 0; i < 20; ++i) pod.ContainerStatus(absl::StrCat("c", i), {.limits = Cpu("3")});
  for (int i = 0; i < 20; ++i) pod.ContainerStatus(absl::StrCat("c", i), {.limits = Cpu("2")});
  EXPECT_EQ(Show(EffectiveLimits(pod, Names(), /*use_status=*/true)), Show(List(Cpu("40"))));
  EXPECT_EQ(Show(EffectiveLimits(pod.By(ResizeRule::kPerPod), Names(), /*use_status=*/true)),
            Show(List(Cpu("60"))));
}

PartialLimit CpuOf(const PodResources& pod) {
  for (const PartialLimit& limit : PartialLimits(pod, Names(), /*use_status=*/true)) {
    if (limit.resource == kCpu) return limit;
  }
  return LimitOfOneContainer(kCpu, ToAmount(kCpu, EffectiveRequests(pod, Names(), true).Get(kCpu)),
                             ToAmount(kCpu, EffectiveLimits(pod, Names(), true).Get(kCpu)));
}

PartialLimit Bounded(int64_t amount) {
  return {.resource = kCpu, .bounded = true, .stated = true, .by_request = amount, .whole = amount};
}

TEST(ResizeRuleTest, AllHaveALimit) {
  Pod pod;
  pod.Container({.limits = Cpu("1")}).Container({.limits = Cpu("3")});
  pod.ContainerStatus("c0", {.limits = Cpu("3")}).ContainerStatus("c1", {.limits = Cpu("1")});
  EXPECT_EQ(CpuOf(pod), Bounded(6'000));
  EXPECT_EQ(CpuOf(pod.By(ResizeRule::kPerPod)), Bounded(4'000));
  pod.PodLevelStatus({.limits = Cpu("5")});
  EXPECT_EQ(CpuOf(pod), Bounded(5'000));
  EXPECT_EQ(CpuOf(pod.Overhead(Cpu("1"))), Bounded(6'000));
}

TEST(ResizeRuleTest, LimitThatTheNodeDoesNotKnowYet) {
  Pod pod;
  pod.Container({.limits = Cpu("1")}).Container({.limits = Cpu("3"), .requests = Cpu("1")});
  pod.ContainerStatus("c0", {.limits = Cpu("3")});
  pod.ContainerStatus("c1", {.limits = {{"memory", "1Gi"}}, .requests = Cpu("1")});
  EXPECT_EQ(CpuOf(pod), Bounded(6'000));
  EXPECT_EQ(CpuOf(pod.By(ResizeRule::kPerPod)), Bounded(4'000));
}

// Limits by spec 1 + 3, actuated 3 + 1, and beside them a request of 2 without a limit.
TEST(ResizeRuleTest, OneHasNoLimit) {
  Pod pod;
  pod.Container({.limits = Cpu("1")}).Container({.limits = Cpu("3")}).Container({.requests = Cpu("2")});
  pod.ContainerStatus("c0", {.limits = Cpu("3")}).ContainerStatus("c1", {.limits = Cpu("1")});
  const PartialLimit per_container = {
      .resource = kCpu, .stated = true, .by_request = 8'000, .with_gap = 6'000};
  EXPECT_EQ(CpuOf(pod), per_container);
  pod.By(ResizeRule::kPerPod).PodLevelStatus({.limits = Cpu("5")});  // no limit of a pod with a gap
  const PartialLimit per_pod = {.resource = kCpu, .stated = true, .by_request = 6'000, .with_gap = 4'000};
  EXPECT_EQ(CpuOf(pod), per_pod);
}

TEST(ResizeRuleTest, PerPodIsNeverMoreThanPerContainerWithFullStatuses) {
  std::mt19937 random(37);
  const auto cpu = [&] { return Cpu(std::to_string(1 + random() % 9)); };
  for (int i = 0; i < 2'000; ++i) {
    Pod pod;
    for (unsigned c = 0; c <= random() % 4; ++c) {
      pod.Container({.limits = cpu(), .requests = cpu()});
      pod.ContainerStatus(absl::StrCat("c", c), {.limits = cpu(), .requests = cpu(), .allocated = cpu()});
    }
    const auto sums = [&] {
      return std::pair(ToAmounts(EffectiveRequests(pod, Names(), true)).Get(kCpu),
                       ToAmounts(EffectiveLimits(pod, Names(), true)).Get(kCpu));
    };
    const auto [requests, limits] = sums();
    pod.By(ResizeRule::kPerPod);
    const auto [requests_per_pod, limits_per_pod] = sums();
    EXPECT_LE(requests_per_pod, requests);
    EXPECT_LE(limits_per_pod, limits);
    EXPECT_EQ(CpuOf(pod), Bounded(limits_per_pod));
  }
}

}  // namespace
}  // namespace loadline
