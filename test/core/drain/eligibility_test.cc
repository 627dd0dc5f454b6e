#include "core/drain/eligibility.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/cluster/node_annotations.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/brakes.h"
#include "core/drain/node_reason.h"
#include "core/drain/timers.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kEligibilityTime = 10'000;

// A node of 4 cores and 16 bytes with a pod of 2 cores, in a group of three of which one stays.
class EligibilityTest : public ::testing::Test {
 protected:
  EligibilityTest() {
    node_.name = "n";
    pods_ = {{.requests = {{"cpu", 2000}}}};
    group_ = {.name = "g", .min_nodes = 1, .target = 3};
  }

  NodeReason Reason() {
    FitCluster cluster;
    cluster.Add(node_, pods_);
    question_.group = in_group_ ? &group_ : nullptr;
    return CheckEligibility(cluster.state(), question_, options_, kEligibilityTime).reason;
  }

  void Taint(const std::string& key, const std::string& value) {
    node_.taints = {{.key = key, .value = value, .effect = "NoSchedule"}};
  }

  FitNode node_;
  std::vector<FitPod> pods_;
  NodeGroup group_;
  bool in_group_ = true;
  NodeQuestion question_{.slot = Slot{0}};
  EligibilityOptions options_;
};

TEST_F(EligibilityTest, AtTheThresholdANodeMayGo) {
  EXPECT_EQ(Reason(), NodeReason::kNone);
  pods_[0].requests[0].second = 2001;
  EXPECT_EQ(Reason(), NodeReason::kNotUnderutilized);
  group_.utilization_threshold = 0.6;
  EXPECT_EQ(Reason(), NodeReason::kNone);
}

TEST_F(EligibilityTest, OfAGroupThatIsSizedThoseGoThatAreChosen) {
  group_.sized = true;
  EXPECT_EQ(Reason(), NodeReason::kSizedByUtilization);
  question_.chosen = true;
  pods_[0].requests[0].second = 4000;
  EXPECT_EQ(Reason(), NodeReason::kNone);
  node_.traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
  EXPECT_EQ(Reason(), NodeReason::kScaleDownDisabledAnnotation);
  node_.traits.annotations = 0;
  group_.target = 1;
  EXPECT_EQ(Reason(), NodeReason::kNodeGroupMinSizeReached);
  question_.chosen = false;
  EXPECT_EQ(Reason(), NodeReason::kSizedByUtilization);
}

TEST_F(EligibilityTest, GroupsKeepTheirMinimum) {
  group_.target = 1;
  EXPECT_EQ(Reason(), NodeReason::kNodeGroupMinSizeReached);
  in_group_ = false;
  EXPECT_EQ(Reason(), NodeReason::kNotAutoscaled);
}

TEST_F(EligibilityTest, OnlyWhoNamesAGroupMakesTheControlPlaneAMachine) {
  node_.traits.kind = NodeKind::kControlPlane;
  EXPECT_EQ(Reason(), NodeReason::kNone);
  in_group_ = false;
  EXPECT_EQ(Reason(), NodeReason::kControlPlane);
  node_.traits.kind = NodeKind::kVirtual;
  EXPECT_EQ(Reason(), NodeReason::kVirtualNode);
}

TEST_F(EligibilityTest, ATaintOfFiveMinutesIsOver) {
  Taint(kToBeDeletedTaint, std::to_string(kEligibilityTime - 299));
  EXPECT_EQ(Reason(), NodeReason::kCurrentlyBeingDeleted);
  Taint(kToBeDeletedTaint, std::to_string(kEligibilityTime - 300));
  EXPECT_EQ(Reason(), NodeReason::kNone);
  Taint(kToBeDeletedTaint, "soon");
  EXPECT_EQ(Reason(), NodeReason::kNone);
  Taint(kToBeDeletedTaint, "9223372036854775807");
  EXPECT_EQ(Reason(), NodeReason::kCurrentlyBeingDeleted);
  node_.taints.clear();
  node_.traits.deleted_s = kEligibilityTime - 3600;  // a finalizer may keep it for long
  EXPECT_EQ(Reason(), NodeReason::kCurrentlyBeingDeleted);
  node_.traits.deleted_s.reset();
  question_.being_deleted = true;
  EXPECT_EQ(Reason(), NodeReason::kCurrentlyBeingDeleted);
}

TEST_F(EligibilityTest, TaintsOfThoseWhoDeleteNodesSaySoWithoutATime) {
  for (const std::string key :
       {"karpenter.sh/disrupted", "karpenter.sh/disruption", "aws-node-termination-handler/spot-itn",
        "cloud.google.com/impending-node-termination"}) {
    Taint(key, "");
    EXPECT_EQ(Reason(), NodeReason::kCurrentlyBeingDeleted) << key;
  }
  node_.taints.back().effect = "PreferNoSchedule";
  EXPECT_EQ(Reason(), NodeReason::kNone) << "pods may still come";
  for (const std::string key : {kDeletionCandidateTaint, kRemovalTaint, "karpenter.sh/unregistered"}) {
    Taint(key, "");
    EXPECT_EQ(Reason(), NodeReason::kNone) << key;
  }
}

TEST_F(EligibilityTest, ReadinessIsThatOfConditionsAndTaints) {
  options_.scale_down_unready_enabled = false;
  EXPECT_EQ(Reason(), NodeReason::kNone);
  for (const std::string what : {"not-ready", "disk-pressure", "network-unavailable"}) {
    Taint("node.kubernetes.io/" + what, "");
    EXPECT_EQ(Reason(), NodeReason::kScaleDownUnreadyDisabled) << what;
  }
  Taint("node.kubernetes.io/memory-pressure", "");
  EXPECT_EQ(Reason(), NodeReason::kNone) << "Cluster Autoscaler does not count it";
  node_.taints.clear();
  node_.traits.ready = false;
  EXPECT_EQ(Reason(), NodeReason::kScaleDownUnreadyDisabled);
}

TEST_F(EligibilityTest, AnnotationsAndDestinationsStay) {
  question_.destination = true;
  EXPECT_EQ(Reason(), NodeReason::kAlreadyADestination);
  node_.traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
  EXPECT_EQ(Reason(), NodeReason::kScaleDownDisabledAnnotation);
}

TEST_F(EligibilityTest, ANodeThatIsNotToBeDisruptedStays) {
  node_.traits.annotations = BitOf(NodeAnnotation::kDoNotDisrupt);
  EXPECT_EQ(Reason(), NodeReason::kDoNotDisrupt);
  group_.sized = question_.chosen = true;
  EXPECT_EQ(Reason(), NodeReason::kDoNotDisrupt) << "however it is to go";
  group_.target = 1;
  EXPECT_EQ(Reason(), NodeReason::kNodeGroupMinSizeReached);
}

TEST_F(EligibilityTest, ANodeThatOffersNothingCannotBeJudged) {
  node_.allocatable = {{"cpu", 4000}};
  EXPECT_EQ(Reason(), NodeReason::kUnexpectedError);
}

// DaemonSet pods that leave nothing: free where nobody else asks for any, else full.
TEST_F(EligibilityTest, DaemonPodsThatAskForAllLeaveNothing) {
  options_.utilization.ignore_daemonsets = true;
  FitPod daemon = {.requests = {{"cpu", 4000}}};
  daemon.traits.daemon_by_annotation = true;
  pods_ = {daemon};
  EXPECT_EQ(Reason(), NodeReason::kNone);
  pods_.push_back({.requests = {{"cpu", 1}}});
  EXPECT_EQ(Reason(), NodeReason::kNotUnderutilized);
}

TEST(TimersTest, AStartInTheFutureIsNow) {
  EXPECT_EQ(TimerStart(std::nullopt, kEligibilityTime), kEligibilityTime);
  EXPECT_EQ(TimerStart(kEligibilityTime - 5, kEligibilityTime), kEligibilityTime - 5);
  EXPECT_EQ(TimerStart(kEligibilityTime + 5, kEligibilityTime), kEligibilityTime);
}

TEST(TimersTest, TaintsOfTheFutureOrWithoutANumberSayNothing) {
  FitCluster cluster;
  for (const std::string value : {"9000", "10001", "soon", "6399", "6400"}) {
    cluster.Add({.name = "n" + value,
                 .taints = {{.key = kDeletionCandidateTaint, .value = value, .effect = "PreferNoSchedule"}}});
  }
  const RestoredTimers restored =
      RestoreTimers(cluster.state(), {}, kEligibilityTime);  // at most an hour old
  EXPECT_EQ(restored.unneeded, (std::vector<TimedNode>{{Slot{0}, 9000}, {Slot{4}, 6400}}));
}

TEST(BrakesTest, AnUnhealthyClusterHasMoreNodesNotReadyThanBothLimits) {
  const auto cluster_of = [](int nodes, int unready) {
    auto cluster = std::make_unique<FitCluster>();
    for (int i = 0; i < nodes; ++i) {
      FitNode node{.name = "n" + std::to_string(i)};
      node.traits.ready = i >= unready;
      cluster->Add(node);
    }
    return cluster;
  };
  EXPECT_EQ(WhatIsUnhealthy(cluster_of(3, 3)->state(), {}), "");
  EXPECT_EQ(WhatIsUnhealthy(cluster_of(20, 9)->state(), {}), "");
  EXPECT_EQ(WhatIsUnhealthy(cluster_of(20, 10)->state(), {}), "10 of 20 nodes are not ready");
  const BrakeOptions none_may_be{.ok_total_unready_count = 0, .max_total_unready_percentage = 0};
  EXPECT_EQ(WhatIsUnhealthy(cluster_of(2, 1)->state(), none_may_be), "1 of 2 nodes is not ready");
  EXPECT_EQ(WhatIsUnhealthy(cluster_of(1, 1)->state(), none_may_be), "1 of 1 node is not ready");
}

}  // namespace
}  // namespace loadline
