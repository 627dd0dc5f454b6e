#include "core/price/capacity_type.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loadline {
namespace {

struct CapacityCase {
  std::string name;
  std::vector<Label> labels;
  CapacityType type;
};
class CapacityTypeTest : public ::testing::TestWithParam<CapacityCase> {};

TEST_P(CapacityTypeTest, IsWhatTheLabelsSay) {
  const CapacityCase& c = GetParam();
  EXPECT_EQ(CapacityTypeOf(Labels(c.labels)), c.type) << Name(CapacityTypeOf(Labels(c.labels)));
}

constexpr CapacityType kUnknown = CapacityType::kUnknown;
constexpr CapacityType kOnDemand = CapacityType::kOnDemand;
constexpr CapacityType kSpot = CapacityType::kSpot;
constexpr CapacityType kReserved = CapacityType::kReserved;

INSTANTIATE_TEST_SUITE_P(
    Cases, CapacityTypeTest,
    ::testing::ValuesIn(std::vector<CapacityCase>{
        {"None", {}, kUnknown},
        {"Karpenter", {{"karpenter.sh/capacity-type", "spot"}}, kSpot},
        {"KarpenterOnDemand", {{"karpenter.sh/capacity-type", "on-demand"}}, kOnDemand},
        {"KarpenterReserved", {{"karpenter.sh/capacity-type", "reserved"}}, kReserved},
        {"Eks", {{"eks.amazonaws.com/capacityType", "SPOT"}}, kSpot},
        {"EksOnDemand", {{"eks.amazonaws.com/capacityType", "ON_DEMAND"}}, kOnDemand},
        {"EksCapacityBlock", {{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"}}, kReserved},
        {"Gke", {{"cloud.google.com/gke-spot", "true"}}, kSpot},
        {"GkeNot", {{"cloud.google.com/gke-spot", "false"}}, kUnknown},
        {"GkePreemptible", {{"cloud.google.com/gke-preemptible", "true"}}, kSpot},
        {"GkeProvisioning", {{"cloud.google.com/gke-provisioning", "spot"}}, kSpot},
        {"GkeStandard", {{"cloud.google.com/gke-provisioning", "standard"}}, kOnDemand},
        {"GkeReservation", {{"cloud.google.com/reservation-name", "training"}}, kReserved},
        {"Aks", {{"kubernetes.azure.com/scalesetpriority", "spot"}}, kSpot},
        {"AksInCapitals", {{"kubernetes.azure.com/scalesetpriority", "Spot"}}, kSpot},
        {"AksRegular", {{"kubernetes.azure.com/scalesetpriority", "regular"}}, kOnDemand},
        {"KOps", {{"node-role.kubernetes.io/spot-worker", "true"}}, kSpot},
        {"KOpsWithoutAValue", {{"node-role.kubernetes.io/spot-worker", ""}}, kSpot},
        {"KOpsOfOld", {{"kubernetes.io/role", "spot-worker"}}, kSpot},
        {"RoleOfAnotherKind", {{"kubernetes.io/role", "node"}}, kUnknown},
        {"TerraformOfAws", {{"aws.amazon.com/spot", "true"}}, kSpot},
        {"Alibaba", {{"node.alibabacloud.com/spot-strategy", "SpotAsPriceGo"}}, kSpot},
        {"AlibabaWithALimit", {{"node.alibabacloud.com/spot-strategy", "SpotWithPriceLimit"}}, kSpot},
        {"AlibabaNot", {{"node.alibabacloud.com/spot-strategy", "NoSpot"}}, kOnDemand},
        {"Yandex", {{"yandex.cloud/preemptible", "true"}}, kSpot},
        {"YandexNot", {{"yandex.cloud/preemptible", "false"}}, kUnknown},
        {"OpenShift", {{"machine.openshift.io/interruptible-instance", ""}}, kSpot},
        {"Lifecycle", {{"node.kubernetes.io/lifecycle", "spot"}}, kSpot},
        {"LifecycleNormal", {{"node.kubernetes.io/lifecycle", "normal"}}, kOnDemand},
        {"Ec2Spot", {{"lifecycle", "Ec2Spot"}}, kSpot},
        {"OnDemand", {{"lifecycle", "OnDemand"}}, kOnDemand},
        {"LowPriority", {{"node.kubernetes.io/lifecycle", "low-priority"}}, kSpot},
        {"AnotherWord", {{"lifecycle", "canary"}}, kUnknown},
        {"ThePlatformHolds",
         {{"karpenter.sh/capacity-type", "on-demand"}, {"lifecycle", "Ec2Spot"}},
         kOnDemand},
        {"AConventionWhereThePlatformSaysNothing",
         {{"cloud.google.com/gke-spot", "false"}, {"lifecycle", "spot"}},
         kSpot},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace loadline
