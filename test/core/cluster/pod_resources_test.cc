#include "core/cluster/pod_resources.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/amount.h"
#include "test/testing/stated_pod.h"

namespace loadline {
namespace {

using stated::List;
using stated::Names;
using stated::Pod;
using stated::Show;
using stated::Spec;
using stated::Stated;

std::string Show(const ResourceAmounts& amounts) {
  return absl::StrJoin(amounts, " ", [](std::string* out, const ResourceAmounts::Entry& entry) {
    absl::StrAppend(out, Names().name(entry.id), "=", entry.value);
  });
}

ResourceAmounts Amounts(const std::vector<std::pair<std::string, int64_t>>& stated) {
  ResourceAmounts amounts;
  for (const auto& [name, value] : stated) amounts[Names().Intern(name)] = value;
  return amounts;
}

struct EffectiveCase {
  std::string name;
  PodResources pod;
  Stated spec_only;
  Stated with_status;
};

class EffectiveLimitsTest : public ::testing::TestWithParam<EffectiveCase> {};

TEST_P(EffectiveLimitsTest, GivesExactAmounts) {
  const EffectiveCase& c = GetParam();
  EXPECT_EQ(Show(EffectiveLimits(c.pod, Names(), /*use_status=*/false)), Show(List(c.spec_only)));
  EXPECT_EQ(Show(EffectiveLimits(c.pod, Names(), /*use_status=*/true)), Show(List(c.with_status)));
}

std::vector<EffectiveCase> SpecLimitCases() {
  std::vector<EffectiveCase> cases = {
      {"NoContainer", Pod(), {}, {}},
      {"NoLimit", Pod().Container({}), {}, {}},
      {"ExplicitZeroStays", Pod().Container({.limits = {{"cpu", "0"}}}), {{"cpu", "0"}}, {}},
      {"SumOfLimitedContainers",
       Pod().Container({.limits = {{"cpu", "2"}, {"memory", "2Gi"}}}).Container({}),
       {{"cpu", "2"}, {"memory", "2Gi"}},
       {}},
      {"RequestsPlayNoPart",
       Pod().Container({.limits = {{"cpu", "1"}}, .requests = {{"memory", "1Gi"}}}),
       {{"cpu", "1"}},
       {}},
      {"SumsAreNotRoundedEach",
       Pod()
           .Container({.limits = {{"cpu", "0.4m"}}})
           .Container({.limits = {{"cpu", "0.4m"}}})
           .Container({.limits = {{"cpu", "0.4m"}}}),
       {{"cpu", "1.2m"}},
       {}},
      {"InitBelowSum",
       Pod()
           .Container({.limits = {{"cpu", "2"}}})
           .Container({.limits = {{"cpu", "3"}}})
           .Init({.limits = {{"cpu", "2"}}}),
       {{"cpu", "5"}},
       {}},
      {"InitAboveSumPerResource",
       Pod()
           .Container({.limits = {{"cpu", "1"}, {"memory", "2Gi"}}})
           .Init({.limits = {{"cpu", "1001m"}, {"memory", "1Gi"}, {"example.com/fpga", "1"}}}),
       {{"cpu", "1001m"}, {"memory", "2Gi"}, {"example.com/fpga", "1"}},
       {}},
      {"SidecarRunsOn",
       Pod().Container({.limits = {{"cpu", "1"}}}).Sidecar({.limits = {{"cpu", "1"}}}),
       {{"cpu", "2"}},
       {}},
      {"InitRunsBesideEarlierSidecars",
       Pod()
           .Container({.limits = {{"cpu", "1"}}})
           .Sidecar({.limits = {{"cpu", "500m"}}})
           .Init({.limits = {{"cpu", "1200m"}}}),
       {{"cpu", "1700m"}},
       {}},
      {"LaterSidecarIsNotYetThere",
       Pod()
           .Container({.limits = {{"cpu", "100m"}}})
           .Init({.limits = {{"cpu", "1200m"}}})
           .Sidecar({.limits = {{"cpu", "500m"}}}),
       {{"cpu", "1200m"}},
       {}},
      {"StepsOfDifferentResources",
       Pod()
           .Container({.limits = {{"cpu", "100m"}, {"memory", "1Gi"}}})
           .Sidecar({.limits = {{"cpu", "1"}}})
           .Init({.limits = {{"memory", "4Gi"}}})
           .Sidecar({.limits = {{"memory", "1Gi"}}})
           .Init({.limits = {{"memory", "3500Mi"}}}),
       {{"cpu", "1100m"}, {"memory", "4524Mi"}},
       {}},
      // Steps: 5, 1, 3, 5 + 3 = 8, 6. Sum: 1 + 6 = 7.
      {"MixedInitsAndSidecars",
       Pod()
           .Container({.limits = {{"cpu", "1"}}})
           .Init({.limits = {{"cpu", "5"}}})
           .Sidecar({.limits = {{"cpu", "1"}}})
           .Sidecar({.limits = {{"cpu", "2"}}})
           .Init({.limits = {{"cpu", "5"}}})
           .Sidecar({.limits = {{"cpu", "3"}}}),
       {{"cpu", "8"}},
       {}},
      {"OverheadOnTop",
       Pod()
           .Container({.limits = {{"cpu", "2"}}})
           .Container({.limits = {{"cpu", "3"}}})
           .Init({.limits = {{"cpu", "2"}}})
           .Overhead({{"cpu", "1"}, {"memory", "1Gi"}}),
       {{"cpu", "6"}},  // no memory limit: none appears
       {}},
      {"OverheadNotOnZero",
       Pod()
           .Container({.limits = {{"cpu", "0"}, {"memory", "1n"}}})
           .Overhead({{"cpu", "1"}, {"memory", "1"}}),
       {{"cpu", "0"}, {"memory", "1.000000001"}},
       {}},
      {"SaturatesAndStays",
       Pod().Container({.limits = {{"memory", "8Ei"}}}).Container({.limits = {{"memory", "8Ei"}}}),
       {{"memory", "4Ei"}},
       {}},
  };
  for (EffectiveCase& c : cases) c.with_status = c.spec_only;  // none of them has a status
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Spec, EffectiveLimitsTest, ::testing::ValuesIn(SpecLimitCases()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    PodLevel, EffectiveLimitsTest,
    ::testing::ValuesIn(std::vector<EffectiveCase>{
        {"ReplacesAlsoWhenSmaller",
         Pod().Container({.limits = {{"cpu", "3"}, {"memory", "1Gi"}}}).PodLevel({.limits = {{"cpu", "2"}}}),
         {{"cpu", "2"}, {"memory", "1Gi"}},
         {{"cpu", "2"}, {"memory", "1Gi"}}},
        {"AddsWhatContainersLack",
         Pod().Container({}).PodLevel({.limits = {{"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}}}),
         {{"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}},
         {{"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}}},
        {"OtherResourcesAreNotPodLevel",
         Pod()
             .Container({.limits = {{"ephemeral-storage", "1Gi"}}})
             .PodLevel(
                 {.limits = {{"ephemeral-storage", "5Gi"}, {"example.com/fpga", "1"}, {"hugepages", "1"}}}),
         {{"ephemeral-storage", "1Gi"}},
         {{"ephemeral-storage", "1Gi"}}},
        {"RequestsAloneChangeNoLimit",
         Pod().Container({.limits = {{"cpu", "3"}}}).PodLevel({.requests = {{"cpu", "1"}}}),
         {{"cpu", "3"}},
         {{"cpu", "3"}}},
        {"OverheadOnTop",
         Pod()
             .Container({})
             .PodLevel({.limits = {{"cpu", "2"}}})
             .Overhead({{"cpu", "250m"}, {"memory", "1Gi"}}),
         {{"cpu", "2250m"}},
         {{"cpu", "2250m"}}},
        {"StatusRaises",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .PodLevel({.limits = {{"cpu", "2"}, {"memory", "2Gi"}}})
             .PodLevelStatus({.limits = {{"cpu", "3"}, {"memory", "1Gi"}, {"hugepages-2Mi", "2Mi"}}}),
         {{"cpu", "2"}, {"memory", "2Gi"}},
         {{"cpu", "3"}, {"memory", "2Gi"}}},
        {"InfeasibleCountsStatusOnly",
         Pod()
             .PodLevel({.limits = {{"cpu", "2"}, {"memory", "2Gi"}}})
             .PodLevelStatus({.limits = {{"cpu", "1"}}})
             .ResizeInfeasible(),
         {{"cpu", "2"}, {"memory", "2Gi"}},
         {{"cpu", "1"}, {"memory", "0"}}},
        {"InfeasibleWithoutStatusLimitsKeepsSpec",
         Pod()
             .PodLevel({.limits = {{"cpu", "2"}}})
             .PodLevelStatus({.requests = {{"cpu", "1"}}})
             .ResizeInfeasible(),
         {{"cpu", "2"}},
         {{"cpu", "2"}}},
        {"StatusWithoutSpecIsNothing",
         Pod().Container({.limits = {{"cpu", "1"}}}).PodLevelStatus({.limits = {{"cpu", "3"}}}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
    }),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Resize, EffectiveLimitsTest,
    ::testing::ValuesIn(std::vector<EffectiveCase>{
        {"DownPendingCountsOld",
         Pod().Container({.limits = {{"cpu", "1"}}}).ContainerStatus("c0", {.limits = {{"cpu", "2"}}}),
         {{"cpu", "1"}},
         {{"cpu", "2"}}},
        {"UpPendingCountsNew",
         Pod().Container({.limits = {{"cpu", "2"}}}).ContainerStatus("c0", {.limits = {{"cpu", "1"}}}),
         {{"cpu", "2"}},
         {{"cpu", "2"}}},
        {"SumOfLarger",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .Container({.limits = {{"cpu", "3"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "3"}}})
             .ContainerStatus("c1", {.limits = {{"cpu", "1"}}}),
         {{"cpu", "4"}},
         {{"cpu", "6"}}},
        {"InfeasibleCountsStatusOnly",
         Pod()
             .Container({.limits = {{"cpu", "4"}, {"memory", "1Gi"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "2"}}})
             .ResizeInfeasible(),
         {{"cpu", "4"}, {"memory", "1Gi"}},
         {{"cpu", "2"}}},
        {"AllocatedIsNoLimit",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .ContainerStatus(
                 "c0", {.limits = {{"cpu", "1"}}, .requests = {{"cpu", "5"}}, .allocated = {{"cpu", "9"}}}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
        {"StatusWithoutResourcesCountsSpec",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .ContainerStatusWithoutResources("c0", {{"cpu", "9"}})
             .ResizeInfeasible(),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
        {"StatusOfAnotherName",
         Pod().Container({.limits = {{"cpu", "1"}}}).ContainerStatus("c1", {.limits = {{"cpu", "2"}}}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
        {"LastStatusOfANameHolds",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "3"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "2"}}}),
         {{"cpu", "1"}},
         {{"cpu", "2"}}},
        {"LastStatusHoldsAlsoWithoutResources",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "3"}}})
             .ContainerStatusWithoutResources("c0", {}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
        {"SidecarLikeContainer",
         Pod()
             .Sidecar({.limits = {{"memory", "1Gi"}}})
             .ContainerStatus("i0", {.limits = {{"memory", "2Gi"}}}),
         {{"memory", "1Gi"}},
         {{"memory", "2Gi"}}},
        {"SidecarAlsoBesideInits",
         Pod()
             .Sidecar({.limits = {{"cpu", "1"}}})
             .Init({.limits = {{"cpu", "5"}}})
             .ContainerStatus("i0", {.limits = {{"cpu", "2"}}}),
         {{"cpu", "6"}},
         {{"cpu", "7"}}},
        {"InitCountsSpec",
         Pod().Init({.limits = {{"cpu", "1"}}}).ContainerStatus("i0", {.limits = {{"cpu", "2"}}}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
    }),
    [](const auto& test) { return test.param.name; });

class EffectiveRequestsTest : public ::testing::TestWithParam<EffectiveCase> {};

TEST_P(EffectiveRequestsTest, GivesExactAmounts) {
  const EffectiveCase& c = GetParam();
  EXPECT_EQ(Show(EffectiveRequests(c.pod, Names(), /*use_status=*/false)), Show(List(c.spec_only)));
  EXPECT_EQ(Show(EffectiveRequests(c.pod, Names(), /*use_status=*/true)), Show(List(c.with_status)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EffectiveRequestsTest,
    ::testing::ValuesIn(std::vector<EffectiveCase>{
        {"NoRequest", Pod().Container({.limits = {{"cpu", "1"}}}), {}, {}},
        {"SidecarsAndInits",
         Pod()
             .Container({.requests = {{"cpu", "1"}}})
             .Sidecar({.requests = {{"cpu", "500m"}}})
             .Init({.requests = {{"cpu", "1200m"}, {"memory", "1Gi"}}}),
         {{"cpu", "1700m"}, {"memory", "1Gi"}},
         {{"cpu", "1700m"}, {"memory", "1Gi"}}},
        {"OverheadAlsoWithoutRequest",
         Pod().Container({.requests = {{"cpu", "0"}}}).Overhead({{"cpu", "250m"}, {"memory", "100Mi"}}),
         {{"cpu", "250m"}, {"memory", "100Mi"}},
         {{"cpu", "250m"}, {"memory", "100Mi"}}},
        {"PodLevelReplaces",
         Pod()
             .Container({.requests = {{"cpu", "3"}, {"memory", "1Gi"}, {"example.com/fpga", "1"}}})
             .PodLevel({.limits = {{"memory", "9Gi"}}, .requests = {{"cpu", "2"}, {"example.com/fpga", "7"}}})
             .Overhead({{"cpu", "250m"}}),
         {{"cpu", "2250m"}, {"memory", "1Gi"}, {"example.com/fpga", "1"}},
         {{"cpu", "2250m"}, {"memory", "1Gi"}, {"example.com/fpga", "1"}}},
        {"MostOfSpecActuatedAllocated",
         Pod()
             .Container({.requests = {{"cpu", "1"}, {"memory", "3Gi"}}})
             .ContainerStatus("c0", {.requests = {{"cpu", "2"}, {"memory", "1Gi"}},
                                     .allocated = {{"cpu", "3"}, {"memory", "2Gi"}}}),
         {{"cpu", "1"}, {"memory", "3Gi"}},
         {{"cpu", "3"}, {"memory", "3Gi"}}},
        {"InfeasibleLeavesSpecOut",
         Pod()
             .Container({.requests = {{"cpu", "8"}, {"memory", "3Gi"}}})
             .ContainerStatus("c0", {.requests = {{"cpu", "2"}}, .allocated = {{"cpu", "1"}}})
             .ResizeInfeasible(),
         {{"cpu", "8"}, {"memory", "3Gi"}},
         {{"cpu", "2"}}},
        {"StatusWithoutResourcesLeavesAllocatedOut",
         Pod().Container({.requests = {{"cpu", "1"}}}).ContainerStatusWithoutResources("c0", {{"cpu", "3"}}),
         {{"cpu", "1"}},
         {{"cpu", "1"}}},
        {"PodLevelMostOfSpecActuatedAllocated",
         Pod()
             .PodLevel({.requests = {{"cpu", "1"}, {"memory", "3Gi"}}})
             .PodLevelStatus({.requests = {{"cpu", "2"}}, .allocated = {{"cpu", "3"}, {"memory", "2Gi"}}}),
         {{"cpu", "1"}, {"memory", "3Gi"}},
         {{"cpu", "3"}, {"memory", "3Gi"}}},
        {"PodLevelInfeasibleMissingIsZero",
         Pod()
             .Container({.requests = {{"memory", "1Gi"}}})
             .PodLevel({.requests = {{"cpu", "8"}, {"memory", "3Gi"}}})
             .PodLevelStatus({.requests = {{"cpu", "2"}}})
             .ResizeInfeasible(),
         {{"cpu", "8"}, {"memory", "3Gi"}},
         {{"cpu", "2"}, {"memory", "0"}}},
        {"PodLevelInfeasibleWithoutAny",
         Pod().PodLevel({.requests = {{"cpu", "8"}}}).PodLevelStatus({}).ResizeInfeasible(),
         {{"cpu", "8"}},
         {{"cpu", "0"}}},
    }),
    [](const auto& test) { return test.param.name; });

// Above a few statuses they are found in another way: the answer is the same.
TEST(EffectiveLimitsTest, ManyStatusesAreMatchedByName) {
  Pod pod;
  for (int i = 0; i < 300; ++i) pod.Container({.limits = {{"cpu", "1"}}});
  for (int i = 0; i < 200; ++i) pod.ContainerStatus(absl::StrCat("c", 299 - i), {.limits = {{"cpu", "5"}}});
  for (int i = 0; i < 150; ++i) pod.ContainerStatus(absl::StrCat("c", 299 - i), {.limits = {{"cpu", "2"}}});
  pod.ContainerStatusWithoutResources("c299", {});
  // 100 and c299 without a status count 1, of the other 199 149 count 2 and 50 count 5.
  EXPECT_EQ(Show(EffectiveLimits(pod, Names(), /*use_status=*/true)), Show(List({{"cpu", "649"}})));
  EXPECT_EQ(Show(EffectiveLimits(pod, Names(), /*use_status=*/false)), Show(List({{"cpu", "300"}})));
}

struct ProposalCase {
  std::string name;
  PodResources pod;
  std::vector<std::pair<std::string, int64_t>> incoming;
  std::vector<std::pair<std::string, int64_t>> existing;
};
class ProposalLimitsTest : public ::testing::TestWithParam<ProposalCase> {};

TEST_P(ProposalLimitsTest, FollowsBothFunctions) {
  const ProposalCase& c = GetParam();
  EXPECT_EQ(Show(ProposalIncomingLimits(c.pod)), Show(Amounts(c.incoming)));
  EXPECT_EQ(Show(ProposalExistingLimits(c.pod)), Show(Amounts(c.existing)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ProposalLimitsTest,
    ::testing::ValuesIn(std::vector<ProposalCase>{
        {"NoLimit", Pod().Container({.requests = {{"cpu", "1"}}}), {}, {}},
        {"OverheadCpuInWholeCores",
         Pod().Container({.limits = {{"cpu", "500m"}}}).Overhead({{"cpu", "250m"}}),
         {{"cpu", 501}},
         {{"cpu", 500}}},
        {"OverheadAlsoWithoutLimit",
         Pod().Container({}).Overhead({{"cpu", "2"}, {"memory", "1Ki"}}),
         {{"cpu", 2}, {"memory", 1'024}},
         {}},
        {"SidecarTakenForAnInit",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .Sidecar({.limits = {{"cpu", "500m"}}})
             .Init({.limits = {{"cpu", "1200m"}}}),
         {{"cpu", 1'200}},
         {{"cpu", 1'000}}},
        {"InitOfExistingPodIgnored",
         Pod().Container({.limits = {{"cpu", "1"}}}).Init({.limits = {{"cpu", "4"}, {"memory", "1Ki"}}}),
         {{"cpu", 4'000}, {"memory", 1'024}},
         {{"cpu", 1'000}}},
        {"EachContainerRoundedByItself",
         Pod()
             .Container({.limits = {{"cpu", "0.4m"}, {"memory", "0.5"}}})
             .Container({.limits = {{"cpu", "0.4m"}, {"memory", "0.5"}}})
             .Init({.limits = {{"cpu", "1.4m"}}}),
         {{"cpu", 2}, {"memory", 2}},
         {{"cpu", 2}, {"memory", 2}}},
        {"PodLevelAndStatusUnknown",
         Pod()
             .Container({.limits = {{"cpu", "1"}}})
             .PodLevel({.limits = {{"cpu", "9"}}})
             .ContainerStatus("c0", {.limits = {{"cpu", "8"}}}),
         {{"cpu", 1'000}},
         {{"cpu", 1'000}}},
        {"OtherResourcesInTheirUnit",
         Pod().Container(
             {.limits = {{"ephemeral-storage", "1Ki"}, {"hugepages-2Mi", "2Mi"}, {"example.com/fpga", "3"}}}),
         {{"ephemeral-storage", 1'024}, {"hugepages-2Mi", 2'097'152}, {"example.com/fpga", 3}},
         {{"ephemeral-storage", 1'024}, {"hugepages-2Mi", 2'097'152}, {"example.com/fpga", 3}}},
        {"Saturates",
         Pod()
             .Container({.limits = {{"memory", "8Ei"}}})
             .Container({.limits = {{"memory", "8Ei"}}})
             .Overhead({{"memory", "8Ei"}}),
         {{"memory", kMaxAmount}},
         {{"memory", kMaxAmount}}},
    }),
    [](const auto& test) { return test.param.name; });

struct QosCase {
  std::string name;
  PodResources pod;
  bool best_effort;
};
class IsBestEffortTest : public ::testing::TestWithParam<QosCase> {};

TEST_P(IsBestEffortTest, FollowsKubernetes) {
  EXPECT_EQ(IsBestEffort(GetParam().pod), GetParam().best_effort);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, IsBestEffortTest,
    ::testing::ValuesIn(std::vector<QosCase>{
        {"NoContainer", Pod(), true},
        {"NothingStated", Pod().Container({}).Init({}).Sidecar({}), true},
        {"CpuRequest", Pod().Container({}).Container({.requests = {{"cpu", "1n"}}}), false},
        {"MemoryLimit", Pod().Container({.limits = {{"memory", "1"}}}), false},
        {"InitRequest", Pod().Container({}).Init({.requests = {{"memory", "1"}}}), false},
        {"SidecarLimit", Pod().Container({}).Sidecar({.limits = {{"cpu", "1"}}}), false},
        {"ZerosAreNothing", Pod().Container({.limits = {{"cpu", "0"}}, .requests = {{"memory", "0"}}}), true},
        {"OtherResourcesDoNotCount",
         Pod().Container(
             {.limits = {{"ephemeral-storage", "1"}, {"example.com/fpga", "1"}, {"hugepages-2Mi", "2Mi"}}}),
         true},
        {"OverheadDoesNotCount", Pod().Container({}).Overhead({{"cpu", "1"}}), true},
        {"PodLevelRequest", Pod().Container({}).PodLevel({.requests = {{"cpu", "1"}}}), false},
        {"PodLevelLimit", Pod().Container({}).PodLevel({.limits = {{"memory", "1"}}}), false},
        {"EmptyPodLevelDecidesAlone", Pod().Container({.limits = {{"cpu", "1"}}}).PodLevel({}), true},
        {"PodLevelHugepagesDoNotCount",
         Pod().Container({.limits = {{"cpu", "1"}}}).PodLevel({.limits = {{"hugepages-2Mi", "2Mi"}}}), true},
    }),
    [](const auto& test) { return test.param.name; });

// Random pods of a few containers with small limits on cpu, so that nothing saturates.
PodResources RandomPod(std::mt19937& random, bool with_status) {
  const auto number = [&random](unsigned below) { return std::to_string(random() % below); };
  Pod pod;
  for (unsigned i = 0; i <= random() % 3; ++i) pod.Container({.limits = {{"cpu", number(9)}}});
  for (unsigned i = 0; i < random() % 4; ++i) {
    const Spec spec = {.limits = {{"cpu", number(9)}}};
    random() % 2 == 0 ? pod.Init(spec) : pod.Sidecar(spec);
  }
  if (with_status) {
    for (unsigned i = 0; i < random() % 4; ++i) {
      pod.ContainerStatus(absl::StrCat(random() % 2 == 0 ? "c" : "i", number(3)),
                          {.limits = {{"cpu", number(9)}}});
    }
  }
  return pod;
}

int64_t CpuLimit(const PodResources& pod, bool use_status) {
  return ToAmounts(EffectiveLimits(pod, Names(), use_status)).Get(kCpu);
}

TEST(EffectiveLimitsTest, NeverBelowWhatRunsAtTheEnd) {
  std::mt19937 random(6);
  for (int i = 0; i < 5'000; ++i) {
    const PodResources pod = RandomPod(random, /*with_status=*/false);
    int64_t at_the_end = 0;
    for (const ContainerResources& container : pod.containers)
      at_the_end += Milli(container.limits.Get(kCpu));
    for (const ContainerResources& container : pod.init_containers) {
      if (container.sidecar) at_the_end += Milli(container.limits.Get(kCpu));
      EXPECT_GE(CpuLimit(pod, false), Milli(container.limits.Get(kCpu)));
    }
    EXPECT_GE(CpuLimit(pod, false), at_the_end);
  }
}

TEST(EffectiveLimitsTest, StatusOnlyRaisesUnlessInfeasible) {
  std::mt19937 random(7);
  for (int i = 0; i < 5'000; ++i) {
    const PodResources pod = RandomPod(random, /*with_status=*/true);
    EXPECT_GE(CpuLimit(pod, true), CpuLimit(pod, false));
  }
}

TEST(EffectiveLimitsTest, MoreOfOneContainerIsNeverLessOfThePod) {
  std::mt19937 random(8);
  for (int i = 0; i < 5'000; ++i) {
    PodResources pod = RandomPod(random, /*with_status=*/true);
    const int64_t before = CpuLimit(pod, true);
    const size_t which = random() % (pod.containers.size() + pod.init_containers.size());
    ContainerResources& container = which < pod.containers.size()
                                        ? pod.containers[which]
                                        : pod.init_containers[which - pod.containers.size()];
    container.limits[kCpu].Add(Quantity::FromMilli(700));
    const int64_t after = CpuLimit(pod, true);
    EXPECT_GE(after, before);
    EXPECT_LE(after, before + 700);
  }
}

}  // namespace
}  // namespace loadline
