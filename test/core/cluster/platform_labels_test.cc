#include "core/cluster/platform_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;

std::string Pool(std::vector<Label> labels) {
  const Labels sorted(std::move(labels));
  return std::string(PoolOf(sorted));
}

TEST(PlatformLabelsTest, EachPlatformNamesItsPools) {
  for (const char* key : {"karpenter.sh/nodepool",
                          "karpenter.sh/provisioner-name",
                          "eks.amazonaws.com/nodegroup",
                          "alpha.eksctl.io/nodegroup-name",
                          "cloud.google.com/gke-nodepool",
                          "kubernetes.azure.com/agentpool",
                          "agentpool",
                          "hypershift.openshift.io/nodePool",
                          "oke.oraclecloud.com/pool.name",
                          "doks.digitalocean.com/node-pool",
                          "worker.gardener.cloud/pool",
                          "worker.garden.sapcloud.io/group",
                          "hcloud/node-group",
                          "k8s.scaleway.com/pool-name",
                          "topology.cluster.x-k8s.io/deployment-name",
                          "kops.k8s.io/instancegroup",
                          "lke.linode.com/pool-id",
                          "example.com/node-pool",
                          "Node_Group",
                          "acme.io/team-node-pool",
                          "acme.io/Team_NodePool.Name"}) {
    EXPECT_EQ(Pool({{"app", "x"}, {key, "blue"}}), "blue") << key;
    EXPECT_TRUE(IsPlaceLabel(key)) << key;
  }
  EXPECT_EQ(Pool({{"app", "x"}, {"example.com/whirlpool", "blue"}}), "");
  EXPECT_EQ(Pool({{"app", "x"}, {"example.com/ip-pool", "blue"}}), "") << "one word alone may be of anything";
  EXPECT_EQ(Pool({{"kubernetes.azure.com/agentpool", ""}}), "");
}

TEST(PlatformLabelsTest, TheNameOfADistributionIsNoTypeOfAMachine) {
  for (const char* const key : {"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}) {
    EXPECT_EQ(MachineTypeOf(Labels(std::vector<Label>{{key, "k3s"}})), "");
    EXPECT_EQ(MachineTypeOf(Labels(std::vector<Label>{{key, "rke2"}})), "");
    EXPECT_EQ(MachineTypeOf(Labels(std::vector<Label>{{key, "cx21"}})), "cx21");
    EXPECT_EQ(InstanceTypeOf(Labels(std::vector<Label>{{key, "k3s"}})), "k3s");
  }
}

TEST(PlatformLabelsTest, APlatformCountsBeforeACustom) {
  EXPECT_EQ(Pool({{"a.example/pool", "mine"}, {"cloud.google.com/gke-nodepool", "gke"}}), "gke");
  EXPECT_EQ(Pool({{"b.example/pool", "second"}, {"a.example/pool", "first"}}), "first");
}

TEST(PlatformLabelsTest, PlacesAreThoseOfTopologies) {
  for (const char* key :
       {"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone",
        "topology.k8s.aws/zone-id", "kubernetes.io/hostname", "alpha.eksctl.io/instance-id"}) {
    EXPECT_TRUE(IsPlaceLabel(key)) << key;
  }
  for (const char* key : {"disk", "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"}) {
    EXPECT_FALSE(IsPlaceLabel(key)) << key;
  }
}

TEST(PlatformLabelsTest, ZonesAreNamedByTheLastPartOfAKey) {
  for (const char* key :
       {"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id",
        "topology.csi.vmware.com/k8s-zone", "ibm-cloud.kubernetes.io/region", "disk.csi.example.com/zone"}) {
    EXPECT_TRUE(IsZoneLabel(key)) << key;
    EXPECT_TRUE(IsPlaceLabel(key)) << key;
  }
  // The last one is the name of a node.
  for (const char* key : {"zone", "example.com/ozone", "example.com/zones", "topology.hostpath.csi/node"}) {
    EXPECT_FALSE(IsZoneLabel(key)) << key;
  }
}

TEST(PlatformLabelsTest, RolesThatSayNothingAreLeftAway) {
  const Labels labels({{"node-role.kubernetes.io/worker", ""},
                       {"node-role.kubernetes.io/infra", ""},
                       {"node-role.kubernetes.io/gpu", "true"},
                       {"node-role.kubernetes.io/db", "false"},
                       {"node-role.kubernetes.io/", "x"}});
  EXPECT_THAT(RolesOf(labels), ElementsAre("gpu", "infra"));
}

TEST(PlatformLabelsTest, OldKeysCountWhereTheNewOneIsMissing) {
  const Labels labels({{"beta.kubernetes.io/instance-type", "old"},
                       {"failure-domain.beta.kubernetes.io/zone", "a"},
                       {"failure-domain.beta.kubernetes.io/region", "r"},
                       {"kubernetes.io/os", "windows"},
                       {"beta.kubernetes.io/os", "linux"}});
  EXPECT_EQ(InstanceTypeOf(labels), "old");
  EXPECT_TRUE(IsInstanceTypeLabel("beta.kubernetes.io/instance-type"));
  EXPECT_FALSE(IsInstanceTypeLabel("kubernetes.io/os"));
  EXPECT_EQ(ZoneOf(labels), "a");
  EXPECT_EQ(RegionOf(labels), "r");
  EXPECT_EQ(OperatingSystemOf(labels), "windows");
  EXPECT_EQ(ArchitectureOf(labels), "");
}

TEST(PlatformLabelsTest, ACloudShowsInLabelsAndProviderIds) {
  const auto cloud_of = [](const char* key) {
    Labels labels;
    labels.Set("app", "x");
    labels.Set(key, "p");
    return CloudOf(labels);
  };
  EXPECT_EQ(cloud_of("cloud.google.com/gke-nodepool"), "gce");
  EXPECT_EQ(cloud_of("eks.amazonaws.com/nodegroup"), "aws");
  EXPECT_EQ(cloud_of("kubernetes.azure.com/agentpool"), "azure");
  EXPECT_EQ(cloud_of("agentpool"), "");
  EXPECT_EQ(CloudOfProviderId("aws:///us-east-1a/i-1"), "aws");
  EXPECT_EQ(CloudOfProviderId("i-1"), "");
  EXPECT_EQ(CloudOfProviderId(""), "");
}

}  // namespace
}  // namespace loadline
