#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "core/drain/drain_question.h"
#include "core/drain/node_reason.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

// A node with a pod of 1,500m and 3 MiB, and a placeholder of slack on it.
class WhatWouldHelpTest : public ::testing::Test {
 protected:
  WhatWouldHelpTest() {
    FitPod pod = ReplicaPod("web-0", 1'500, 3 << 20);
    pod.traits.local_volume = "scratch";
    pod.traits.unreadable = "spec.containers[0]: is negative";
    DrainCluster cluster;
    cluster.groups = {{.name = "workers", .min_nodes = 4, .target = 4}};
    cluster.nodes = {
        {.node = {.name = "a", .allocatable = {{"cpu", 2'000}, {"memory", 4 << 20}, {"pods", 10}}},
         .pods = {pod}}};
    cluster.placeholders = {{"slack-3", "a", {.requests = {{"cpu", 250}, {"memory", 1 << 20}}}}};
    model_.emplace(cluster);
  }

  std::string Help(NodeReason reason, std::optional<PodRef> pod = std::nullopt,
                   PodReason pod_reason = PodReason::kNone,
                   BudgetRefusal budget = BudgetRefusal::kNone) const {
    DrainKeep keep;
    keep.slot = Slot{0};
    keep.reason = reason;
    keep.pod = pod;
    keep.pod_reason = pod_reason;
    keep.budget = budget;
    return WhatWouldHelp(model_->problem(), options_, plan_, keep);
  }
  std::string HelpBeyond(FilterName filter, Judgement judgement = Judgement::kDoesNotFit) const {
    DrainKeep keep;
    keep.slot = Slot{0};
    keep.reason = NodeReason::kNoPlaceToMovePods;
    keep.pod = PodRef::Pod(0);
    keep.nearest = Verdict{judgement, filter, StatusClass::kUnschedulable, {"one", "two"}};
    return WhatWouldHelp(model_->problem(), options_, plan_, keep);
  }
  std::string HelpForPod(PodReason reason, BudgetRefusal budget = BudgetRefusal::kNone) const {
    return Help(NodeReason::kBlockedByPod, PodRef::Pod(0), reason, budget);
  }

  std::optional<DrainModel> model_;
  DrainOptions options_;
  DrainPlan plan_;
};

TEST_F(WhatWouldHelpTest, WhatTheClosestNodeLacksIsNamedUnlessItIsCpuOrMemory) {
  DrainKeep keep;
  keep.slot = Slot{0};
  keep.reason = NodeReason::kNoPlaceToMovePods;
  keep.pod = PodRef::Pod(0);
  const auto help = [&](std::vector<std::string> reasons) {
    keep.nearest = Verdict{Judgement::kDoesNotFit, FilterName::kNodeResourcesFit, StatusClass::kUnschedulable,
                           std::move(reasons)};
    return WhatWouldHelp(model_->problem(), options_, plan_, keep);
  };
  const std::string room =
      "a node that stays and takes pod default/web-0, which requests 1.5 cpu and 3Mi memory";
  EXPECT_EQ(help({"Insufficient cpu", "Insufficient memory"}), room);
  EXPECT_EQ(help({"Insufficient cpu", "Insufficient nvidia.com/gpu"}),
            room + ": Insufficient cpu; Insufficient nvidia.com/gpu");
  EXPECT_EQ(help({"Too many pods"}), room + ": Too many pods");
}

TEST_F(WhatWouldHelpTest, APodWithoutAPlaceIsToldWithWhatItRequests) {
  EXPECT_EQ(Help(NodeReason::kNoPlaceToMovePods, PodRef::Pod(0)),
            "a node that stays and takes pod default/web-0, which requests 1.5 cpu and 3Mi memory");
  EXPECT_EQ(Help(NodeReason::kPlaceholdersNeedRoom, PodRef::Placeholder(0)),
            "a node that stays and takes placeholder slack-3, which requests 0.25 cpu and 1Mi memory");
  EXPECT_EQ(Help(NodeReason::kNoPlaceToMovePods), "more room on nodes that stay");
}

// Room is missing where no other filter refuses the pod on the closest node.
TEST_F(WhatWouldHelpTest, TheFilterThatRefusesTheNearestNodeIsTold) {
  const std::string room =
      "a node that stays and takes pod default/web-0, which requests 1.5 cpu and 3Mi memory";
  EXPECT_EQ(HelpBeyond(FilterName::kNodeResourcesFit), room + ": one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kNone, Judgement::kFits), room + ", beside the other pods of the node");
  EXPECT_EQ(
      HelpBeyond(FilterName::kPodTopologySpread),
      "a node that stays in a domain that the spread constraints of pod default/web-0 permit: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kNodeUnschedulable),
            "a node that stays, is ready and not cordoned, and takes pod default/web-0: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kVolumeBinding),
            "a node that stays and reaches the volumes of pod default/web-0: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kNodeVolumeLimits),
            "a node that stays and can attach the volumes of pod default/web-0 as well: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kNone), "a node that stays and takes pod default/web-0: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kNodeName), "a node that stays and takes pod default/web-0: one; two");
  EXPECT_EQ(HelpBeyond(FilterName::kDynamicResources, Judgement::kCannotJudge),
            "whether another node takes pod default/web-0 has to be known: one; two");
  for (int filter = 1; filter < kFilterNames; ++filter) {
    EXPECT_NE(HelpBeyond(static_cast<FilterName>(filter)).find("default/web-0"), std::string::npos) << filter;
  }
}

TEST_F(WhatWouldHelpTest, EachBrakeHasAdvice) {
  EXPECT_EQ(Help(NodeReason::kNotUnneededOtherReason), "what the brake names has to pass");
  std::set<std::string> reported;
  for (const DrainBrake brake :
       {DrainBrake::kDoubt, DrainBrake::kUnhealthy, DrainBrake::kNodesVanished, DrainBrake::kClockWentBack,
        DrainBrake::kNodesBeingDeleted, DrainBrake::kRecentEvictions, DrainBrake::kNotVerified}) {
    plan_.brake = brake;
    reported.insert(Help(NodeReason::kNotUnneededOtherReason));
  }
  EXPECT_EQ(reported.size(), 7U);
  plan_.brake = DrainBrake::kUnhealthy;
  EXPECT_EQ(Help(NodeReason::kNotUnneededOtherReason),
            "get nodes ready, or raise ok-total-unready-count or max-total-unready-percentage");
}

// 1,500m of 2,000m; with what its group says in place of the options, 1,500m - 300m of 2,000m - 300m.
TEST_F(WhatWouldHelpTest, SharesAreThoseThatWereJudged) {
  options_.eligibility.utilization_threshold = 0.625;
  EXPECT_EQ(Help(NodeReason::kNotUnderutilized),
            "less requested on it than the threshold of 62.5 %: 75.0 % of its cpu are");
  FitPod daemon = ReplicaPod("agent", 300);
  daemon.traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "uid-agent"};
  DrainCluster cluster;
  cluster.groups = {
      {.name = "workers", .target = 4, .utilization_threshold = 0.7, .ignore_daemonsets_utilization = true}};
  cluster.nodes = {{.node = {.name = "a", .allocatable = {{"cpu", 2'000}, {"memory", 4 << 20}, {"pods", 10}}},
                    .pods = {ReplicaPod("web-0", 1'200), daemon}}};
  model_.emplace(cluster);
  EXPECT_EQ(Help(NodeReason::kNotUnderutilized),
            "less requested on it than the threshold of 70 %: 70.6 % of its cpu are");
}

TEST_F(WhatWouldHelpTest, ANodeWithoutAllocatableIsToldWhatItLacks) {
  EXPECT_EQ(Help(NodeReason::kUnexpectedError), "it has to report allocatable cpu and memory above 0");
  DrainCluster cluster;
  cluster.nodes = {{.node = {.name = "a", .allocatable = {{"cpu", 0}, {"memory", 4 << 20}, {"pods", 10}}}},
                   {.node = {.name = "b", .allocatable = {{"cpu", 1}, {"memory", 0}, {"pods", 10}}}}};
  model_.emplace(cluster);
  EXPECT_EQ(Help(NodeReason::kUnexpectedError),
            "it has to report allocatable cpu above 0: its kubelet has not, or no longer does");
}

TEST_F(WhatWouldHelpTest, GroupsAndNodesAreToldWithTheirNumbers) {
  EXPECT_EQ(Help(NodeReason::kNodeGroupMinSizeReached), "a smaller minimum of group workers, which is 4");
  EXPECT_EQ(Help(NodeReason::kNotUnderutilized),
            "less requested on it than the threshold of 50 %: 75.0 % of its cpu are");
  EXPECT_EQ(Help(NodeReason::kBlockedByOnCompletionPod, PodRef::Pod(0)),
            "pod default/web-0 has to run to completion");
}

TEST_F(WhatWouldHelpTest, EachReasonOfAPodHasItsOwnAdvice) {
  EXPECT_EQ(HelpForPod(PodReason::kControllerNotFound),
            "the owner that pod default/web-0 names has to exist: nothing would replace the pod");
  EXPECT_EQ(HelpForPod(PodReason::kMinReplicasReached),
            "more replicas of pod default/web-0, or a smaller min-replica-count");
  EXPECT_EQ(HelpForPod(PodReason::kNotReplicated),
            "have pod default/web-0 run by a controller that replaces it, or annotate it with "
            "cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\"");
  EXPECT_EQ(HelpForPod(PodReason::kLocalStorageRequested),
            "name volume scratch of pod default/web-0 in "
            "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes, or annotate it with "
            "cluster-autoscaler.kubernetes.io/safe-to-evict: \"true\"");
  EXPECT_EQ(HelpForPod(PodReason::kNotSafeToEvictAnnotation),
            "take cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\" off pod default/web-0");
  EXPECT_EQ(HelpForPod(PodReason::kUnreadable), "correct pod default/web-0: spec.containers[0]: is negative");
}

// A value that nobody knows protects, and whoever wrote it is to learn so.
TEST_F(WhatWouldHelpTest, AValueThatNobodyKnowsIsTold) {
  FitPod pod = ReplicaPod("web-0", 1'500, 3 << 20);
  pod.traits.do_not_disrupt = true;
  pod.traits.unknown_protection = "karpenter.sh/do-not-disrupt: \"1d\"";
  DrainCluster cluster;
  cluster.groups = {{.name = "workers", .target = 4}};
  cluster.nodes = {{.node = {.name = "a"}, .pods = {pod}}};
  cluster.nodes[0].node.traits.unknown_protection =
      "cluster-autoscaler.kubernetes.io/scale-down-disabled: \"True\"";
  model_.emplace(cluster);
  EXPECT_EQ(
      HelpForPod(PodReason::kDoNotDisruptAnnotation),
      "correct karpenter.sh/do-not-disrupt: \"1d\" of pod default/web-0: nobody knows the value, and so it "
      "protects as \"true\" would");
  EXPECT_EQ(
      Help(NodeReason::kScaleDownDisabledAnnotation),
      "correct cluster-autoscaler.kubernetes.io/scale-down-disabled: \"True\" of the node: nobody knows the "
      "value, and so it protects as \"true\" would");
}

// "true" is the value of this annotation that does not protect.
TEST_F(WhatWouldHelpTest, AnUnknownSafeToEvictProtectsAsFalse) {
  FitPod pod = ReplicaPod("web-0", 1'500, 3 << 20);
  pod.traits.safe_to_evict = SafeToEvict::kNo;
  pod.traits.unknown_protection = "cluster-autoscaler.kubernetes.io/safe-to-evict: \"False\"";
  DrainCluster cluster;
  cluster.groups = {{.name = "workers", .target = 4}};
  cluster.nodes = {{.node = {.name = "a"}, .pods = {pod}}};
  model_.emplace(cluster);
  EXPECT_EQ(
      HelpForPod(PodReason::kNotSafeToEvictAnnotation),
      "correct cluster-autoscaler.kubernetes.io/safe-to-evict: \"False\" of pod default/web-0: nobody knows "
      "the value, and so it protects as \"false\" would");
}

TEST_F(WhatWouldHelpTest, AProtectionThatEndsIsToldWithItsTime) {
  FitPod pod = ReplicaPod("web-0", 1'500, 3 << 20);
  pod.traits.do_not_disrupt = true;
  DrainCluster cluster;
  cluster.groups = {{.name = "workers", .target = 4}};
  cluster.nodes = {{.node = {.name = "a"}, .pods = {pod}}};
  model_.emplace(cluster);
  EXPECT_EQ(HelpForPod(PodReason::kDoNotDisruptAnnotation),
            "take karpenter.sh/do-not-disrupt, or do-not-evict, off pod default/web-0");
  cluster.nodes[0].pods[0].traits.do_not_disrupt_until_s = model_->problem().now_s + 90;
  model_.emplace(cluster);
  EXPECT_EQ(
      HelpForPod(PodReason::kDoNotDisruptAnnotation),
      "wait 1 min 30 s: until then karpenter.sh/do-not-disrupt protects pod default/web-0; or take it off");
}

TEST_F(WhatWouldHelpTest, EachRefusalOfABudgetHasItsOwnAdvice) {
  const auto help = [&](BudgetRefusal refusal) { return HelpForPod(PodReason::kNotEnoughPdb, refusal); };
  EXPECT_EQ(help(BudgetRefusal::kExhausted),
            "more ready replicas than the disruption budget of pod default/web-0 asks for");
  EXPECT_EQ(
      help(BudgetRefusal::kNeverAllows),
      "change the disruption budget of pod default/web-0, or run more replicas if its minAvailable is a "
      "number: it asks for as many pods as there are");
  EXPECT_EQ(help(BudgetRefusal::kSeveralBudgets),
            "let only one disruption budget select pod default/web-0: the API refuses to evict a pod under "
            "several");
  EXPECT_EQ(help(BudgetRefusal::kInvalidSelector),
            "correct the disruption budget in namespace default that cannot be read: it may select any pod");
  EXPECT_EQ(help(BudgetRefusal::kStale),
            "wait until the status of the disruption budget of pod default/web-0 is up to date");
  EXPECT_EQ(
      help(BudgetRefusal::kUnhealthy),
      "get pod default/web-0 ready, or set unhealthyPodEvictionPolicy: AlwaysAllow in its disruption budget");
}

}  // namespace
}  // namespace loadline
