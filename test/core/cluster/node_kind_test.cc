#include "core/cluster/node_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct KindCase {
  std::string name;
  std::vector<Label> labels;
  std::vector<Taint> taints;
  std::string provider_id;
  NodeKind kind;
};

class NodeKindTest : public ::testing::TestWithParam<KindCase> {};

TEST_P(NodeKindTest, IsReadFromLabelsTaintsAndProvider) {
  const KindCase& c = GetParam();
  EXPECT_EQ(KindOfNode(Labels(c.labels), c.taints, c.provider_id), c.kind);
}

constexpr char kControlPlaneRole[] = "node-role.kubernetes.io/control-plane";
constexpr NodeKind kMachine = NodeKind::kMachine;
constexpr NodeKind kControl = NodeKind::kControlPlane;
constexpr NodeKind kVirtual = NodeKind::kVirtual;

INSTANTIATE_TEST_SUITE_P(
    Cases, NodeKindTest,
    ::testing::ValuesIn(std::vector<KindCase>{
        {"Plain", {}, {}, "", kMachine},
        {"Worker", {{"node-role.kubernetes.io/worker", ""}}, {}, "aws:///us-east-1a/i-0abc", kMachine},
        {"Kubeadm", {{kControlPlaneRole, ""}}, {{kControlPlaneRole, "", "NoSchedule"}}, "", kControl},
        {"KubeadmBefore120",
         {{"node-role.kubernetes.io/master", ""}},
         {{"node-role.kubernetes.io/master", "", "NoSchedule"}},
         "",
         kControl},
        {"K3sServer",
         {{kControlPlaneRole, "true"}, {"node-role.kubernetes.io/master", "true"}},
         {},
         "k3s://server-1",
         kControl},
        {"K3sAgent", {{"node.kubernetes.io/instance-type", "k3s"}}, {}, "k3s://agent-1", kMachine},
        {"Rke2Etcd", {{"node-role.kubernetes.io/etcd", "true"}}, {}, "rke2://etcd-1", kControl},
        {"Rke1", {{"node-role.kubernetes.io/controlplane", "true"}}, {}, "", kControl},
        {"OpenShiftCompact",
         {{"node-role.kubernetes.io/master", ""}, {"node-role.kubernetes.io/worker", ""}},
         {},
         "",
         kControl},
        {"MicroK8s",
         {{"node.kubernetes.io/microk8s-controlplane", "microk8s-controlplane"}},
         {},
         "",
         kControl},
        {"Kops", {{"kubernetes.io/role", "master"}}, {}, "", kControl},
        {"Arbiter", {{"node-role.kubernetes.io/arbiter", ""}}, {}, "", kControl},
        {"K0s", {{"node.k0sproject.io/role", "control-plane"}}, {}, "", kControl},
        {"KopsNode", {{"kubernetes.io/role", "node"}}, {}, "", kMachine},
        {"TaintAlone", {}, {{kControlPlaneRole, "", "NoSchedule"}}, "", kControl},
        {"SaysThatItIsNot", {{kControlPlaneRole, "False"}}, {}, "", kMachine},
        {"OtherRole", {{"node-role.kubernetes.io/control-plane-tools", ""}}, {}, "", kMachine},
        {"VirtualKubelet",
         {{"type", "virtual-kubelet"}, {"kubernetes.io/role", "agent"}},
         {{"virtual-kubelet.io/provider", "azure", "NoSchedule"}},
         "",
         kVirtual},
        {"VirtualKubeletByTaint",
         {},
         {{"virtual-kubelet.io/provider", "alibabacloud", "NoSchedule"}},
         "",
         kVirtual},
        {"TypeOfSomethingElse", {{"type", "worker"}}, {}, "", kMachine},
        {"Fargate", {{"eks.amazonaws.com/compute-type", "fargate"}}, {}, "", kVirtual},
        {"FargateByProvider", {}, {}, "aws:///us-east-1a/5f1c/fargate-ip-10-0-1-2.ec2.internal", kVirtual},
        {"EksAuto", {{"eks.amazonaws.com/compute-type", "auto"}}, {}, "", kMachine},
        {"EksHybrid", {{"eks.amazonaws.com/compute-type", "hybrid"}}, {}, "", kMachine},
        {"Liqo",
         {{"liqo.io/type", "virtual-node"}},
         {{"virtual-node.liqo.io/not-allowed", "true", "NoExecute"}},
         "",
         kVirtual},
        {"LiqoByTaint", {}, {{"virtual-node.liqo.io/not-allowed", "true", "NoExecute"}}, "", kVirtual},
        {"Oke", {}, {}, "ocid1.virtualnode.oc1.iad.aaaa", kVirtual},
        {"OkeMachine", {}, {}, "ocid1.instance.oc1.iad.aaaa", kMachine},
        {"TkeSuperNode", {{"node.kubernetes.io/instance-type", "eklet"}}, {}, "", kVirtual},
        {"VirtualServer", {{kControlPlaneRole, "true"}, {"type", "virtual-kubelet"}}, {}, "", kVirtual},
    }),
    [](const auto& row) { return row.param.name; });

// "w" is a machine, "cp" is of the control plane, "vk" is virtual.
class NodeKindForPlanTest : public ::testing::Test {
 protected:
  NodeKindForPlanTest() {
    cluster_.Add({.name = "w"});
    FitNode node{.name = "vk"};
    node.traits.kind = NodeKind::kVirtual;
    cluster_.Add(node);
    node.name = "cp";
    node.traits.kind = NodeKind::kControlPlane;
    cluster_.Add(node);
  }
  std::vector<std::string> Others(const GroupsOfNodes& group_of) {
    std::vector<std::string> names;
    for (const OtherNodes::Node& node : FindOtherNodes(cluster_.state(), group_of).first) {
      names.push_back(node.name);
    }
    return names;
  }
  FitCluster cluster_;
};

TEST_F(NodeKindForPlanTest, WhatIsNamedIsAMachine) {
  EXPECT_THAT(Others({}), ElementsAre("cp", "vk"));
  EXPECT_THAT(Others(GroupsBySlot({GroupIndex{0}})), ElementsAre("cp", "vk"));
  EXPECT_THAT(Others(GroupsBySlot({std::nullopt, std::nullopt, GroupIndex{0}})), ElementsAre("vk"));
  EXPECT_THAT(NamedAsMachines(cluster_.state(), GroupsBySlot({GroupIndex{0}, std::nullopt, GroupIndex{3}})),
              ElementsAre(Slot{2}));
  EXPECT_THAT(NamedAsMachines(cluster_.state(), GroupsBySlot({GroupIndex{0}})), IsEmpty());
}

TEST_F(NodeKindForPlanTest, AllAreCountedAndTheFirstAreNamed) {
  FitNode node;
  node.traits.kind = NodeKind::kVirtual;
  for (int i = 0; i < 300; ++i) {
    node.name = "fargate-" + std::to_string(100 + i);
    cluster_.Add(node);
  }
  const OtherNodes others = FindOtherNodes(cluster_.state(), {});
  EXPECT_EQ(others.control_plane, 1);
  EXPECT_EQ(others.virtual_nodes, 301);
  ASSERT_EQ(others.first.size(), kMostOtherNodes);
  EXPECT_EQ(others.first[0].name, "cp");
  EXPECT_EQ(others.first[1].name, "fargate-100");
}

}  // namespace
}  // namespace loadline
