#include "core/cluster/startup_taints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

struct KindCase {
  std::string key;
  TaintKind kind;
  std::string value = {};
};

class KindOfTaintTest : public ::testing::TestWithParam<KindCase> {};

TEST_P(KindOfTaintTest, IsWellKnown) {
  EXPECT_EQ(KindOfTaint({GetParam().key, GetParam().value, ""}, {}), GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(Keys, KindOfTaintTest,
                         ::testing::ValuesIn(std::vector<KindCase>{
                             {"startup-taint.cluster-autoscaler.kubernetes.io/gpu", TaintKind::kStartup},
                             {"ignore-taint.cluster-autoscaler.kubernetes.io/x", TaintKind::kStartup},
                             {"node.cloudprovider.kubernetes.io/uninitialized", TaintKind::kStartup},
                             {"node.cluster.x-k8s.io/uninitialized", TaintKind::kStartup},
                             {"readiness.k8s.io/cni", TaintKind::kStartup},
                             {"cni.istio.io/not-ready", TaintKind::kStartup},
                             {"node.cilium.io/agent-not-ready", TaintKind::kStartup},
                             {"ebs.csi.aws.com/agent-not-ready", TaintKind::kStartup},
                             {"efs.csi.aws.com/agent-not-ready", TaintKind::kStartup},
                             {"karpenter.sh/unregistered", TaintKind::kStartup},
                             {"node.kubernetes.io/not-ready", TaintKind::kStartup},
                             {"node.kubernetes.io/network-unavailable", TaintKind::kStartup},
                             {"node.kubernetes.io/unreachable", TaintKind::kCondition},
                             {"node.kubernetes.io/disk-pressure", TaintKind::kCondition},
                             {"node.kubernetes.io/unschedulable", TaintKind::kCondition},
                             {"node.cloudprovider.kubernetes.io/shutdown", TaintKind::kCondition},
                             {"status-taint.cluster-autoscaler.kubernetes.io/x", TaintKind::kCondition},
                             {"UpdateInProgress", TaintKind::kCondition},
                             {"medik8s.io/drain", TaintKind::kCondition},
                             {"medik8s.io/remediation", TaintKind::kCondition, "self-node-remediation"},
                             {"kubevirt.io/drain", TaintKind::kCondition},
                             {"remediator.kubernetes.azure.com/unschedulable", TaintKind::kCondition},
                             {"remediator.aks.microsoft.com/unschedulable", TaintKind::kCondition},
                             {"ToBeDeletedByClusterAutoscaler", TaintKind::kLeaving},
                             {"DeletionCandidateOfClusterAutoscaler", TaintKind::kLeaving},
                             {"atlassian.com/escalator", TaintKind::kLeaving},
                             {"karpenter.sh/disrupted", TaintKind::kLeaving},
                             {"aws-node-termination-handler/spot-itn", TaintKind::kLeaving},
                             {"cloud.google.com/impending-node-termination", TaintKind::kLeaving},
                             {"dedicated", TaintKind::kLasting},
                             {"node-role.kubernetes.io/control-plane", TaintKind::kLasting},
                             // GKE taints its pools of Windows nodes with it.
                             {"node.kubernetes.io/os", TaintKind::kLasting},
                             {"node.kubernetes.io/pool", TaintKind::kLasting, "gpu"},
                             {"node.kubernetes.io/capacity-type", TaintKind::kLasting, "spot"},
                             {"node.kubernetes.io/some-pressure", TaintKind::kCondition},
                             {"node.kubernetes.io/out-of-service", TaintKind::kCondition, "nodeshutdown"},
                             {"nvidia.com/gpu", TaintKind::kLasting},
                             {"karpenter.sh/unregistered-by-hand", TaintKind::kLasting},
                             {"readiness.k8s.io", TaintKind::kLasting},
                             {"", TaintKind::kLasting}}));

TEST(StartupTaintsTest, NamesOfAClusterCountBeforeWellKnownOnes) {
  const StartupTaints names{{"dedicated", "node.kubernetes.io/os"}, {"boot.example.com/"}, {"maintenance"}};
  EXPECT_EQ(KindOfTaint({"dedicated", "", ""}, names), TaintKind::kStartup);
  EXPECT_EQ(KindOfTaint({"dedicated-too", "", ""}, names), TaintKind::kLasting);
  EXPECT_EQ(KindOfTaint({"node.kubernetes.io/os", "", ""}, names), TaintKind::kStartup);
  EXPECT_EQ(KindOfTaint({"boot.example.com/network", "", ""}, names), TaintKind::kStartup);
  EXPECT_EQ(KindOfTaint({"boot.example.com", "", ""}, names), TaintKind::kLasting);
  EXPECT_EQ(KindOfTaint({"maintenance", "", ""}, names), TaintKind::kCondition);
  EXPECT_EQ(KindOfTaint({"readiness.k8s.io/cni", "", ""}, names), TaintKind::kStartup);
}

TEST(StartupTaintsTest, WithoutPassingTaintsANodeKeepsAllElse) {
  FitCluster cluster;
  NodeShape node = cluster.Shape(FitNode{.name = "n",
                                         .labels = {{kZone, "a"}},
                                         .taints = {{"node.cilium.io/agent-not-ready", "", "NoExecute"},
                                                    {"dedicated", "x", "NoSchedule"},
                                                    {"boot", "", "PreferNoSchedule"}},
                                         .unschedulable = true});
  node.declared_features = {"A"};
  node.unknown_field = "spec.x";
  node.csi_node = "m";
  node = CompleteNodeShape(std::move(node), cluster.names());
  const NodeShape lasting = WithoutPassingTaints(node, {{"boot"}, {}, {}});
  NodeShape wanted = node;
  wanted.taints = {{"dedicated", "x", "NoSchedule"}};
  wanted.unschedulable = false;
  EXPECT_EQ(lasting, CompleteNodeShape(std::move(wanted), cluster.names()));
  EXPECT_TRUE(HasTaintOf(TaintKind::kStartup, node, {}));
  EXPECT_FALSE(HasTaintOf(TaintKind::kStartup, lasting, {}));
}

TEST(StartupTaintsTest, ThreeConditionsSayNotReady) {
  for (const char* const key : {"not-ready", "network-unavailable", "disk-pressure"}) {
    EXPECT_TRUE(SaysNotReady({std::string("node.kubernetes.io/") + key, "", "NoSchedule"})) << key;
  }
  for (const char* const key :
       {"memory-pressure", "pid-pressure", "unreachable", "unschedulable", "not-ready/x"}) {
    EXPECT_FALSE(SaysNotReady({std::string("node.kubernetes.io/") + key, "", "NoSchedule"})) << key;
  }
}

TEST(StartupTaintsTest, CopiesInAnyOrderAreTheSameShape) {
  FitCluster cluster;
  const NodeShape node = cluster.Shape(FitNode{.name = "n", .taints = {{"a", "", "NoSchedule"}}});
  const NodeShape one = WithCsiNodeOf(Retainted(node, {}, true), "m");
  EXPECT_EQ(one, Retainted(WithCsiNodeOf(WithCsiNodeOf(node, "other"), "m"), {}, true));
  EXPECT_EQ(Retainted(one, node.taints, false), WithCsiNodeOf(node, "m"));
  EXPECT_NE(one.fingerprint, node.fingerprint);
}

}  // namespace
}  // namespace loadline
