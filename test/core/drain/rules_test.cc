#include "core/drain/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRulesTime = 1'000'000;

FitPod OwnedBy(const std::string& kind, const std::string& name, const std::string& uid = "") {
  FitPod pod;
  pod.traits.owner = PodOwner{kind, "apps/v1", name, uid};
  return pod;
}

FitPod Mirror(FitPod pod) {
  pod.traits.mirror = true;
  return pod;
}

class RulesTest : public ::testing::Test {
 protected:
  // The pods of node "n", judged.
  NodePodsJudgement Judge(const std::vector<FitPod>& pods) {
    cluster_.Add({.name = "n", .traits = {.uid = "uid-n"}}, pods);
    budgets_ = DisruptionBudgets(cluster_.state());
    return PodJudge(cluster_.state(), budgets_, options_, kRulesTime).JudgeNode(*cluster_.state().Find("n"));
  }

  PodReason Blocks(const FitPod& pod) {
    const NodePodsJudgement judgement = Judge({pod});
    return judgement.block.has_value() ? judgement.block->reason : PodReason::kNone;
  }

  void Known(ObjectKind kind, const std::string& name, Workload workload) {
    cluster_.state().objects().Set({{kind, "default", name}, std::move(workload), 1});
    cluster_.state().objects().SetComplete(kind);
  }

  FitCluster cluster_;
  DrainRuleOptions options_;
  DisruptionBudgets budgets_;
};

TEST_F(RulesTest, SortsPodsOfANode) {
  FitPod waits = OwnedBy("ReplicaSet", "r");
  waits.traits.safe_to_evict = SafeToEvict::kOnCompletion;
  FitPod daemon = OwnedBy("DaemonSet", "d");
  FitPod placeholder;
  placeholder.traits.placeholder = true;
  const NodePodsJudgement judgement =
      Judge({OwnedBy("ReplicaSet", "r"), Mirror({}), daemon, waits, placeholder});
  EXPECT_THAT(judgement.move, ElementsAre(0, 4));
  EXPECT_THAT(judgement.daemon, ElementsAre(2));
  EXPECT_THAT(judgement.wait, ElementsAre(3));
  EXPECT_FALSE(judgement.block.has_value());
}

TEST_F(RulesTest, StopsAtTheFirstPodThatBlocks) {
  const NodePodsJudgement judgement = Judge({OwnedBy("ReplicaSet", "r"), FitPod(), OwnedBy("Job", "j")});
  EXPECT_THAT(judgement.move, ElementsAre(0));
  EXPECT_EQ(judgement.block, (NodePodsJudgement::Block{1, PodReason::kNotReplicated}));
}

FitPod OfPriority(FitPod pod, int32_t priority) {
  pod.traits.priority = priority;
  return pod;
}

TEST_F(RulesTest, AnExpendablePodIsSkippedAndTheCutoffItselfIsNotBelowIt) {
  FitPod protected_pod;
  protected_pod.traits.safe_to_evict = SafeToEvict::kNo;
  FitPod placeholder;
  placeholder.traits.placeholder = true;
  const NodePodsJudgement judgement =
      Judge({OfPriority(protected_pod, -11), OfPriority(OwnedBy("ReplicaSet", "r"), -11),
             OfPriority(OwnedBy("ReplicaSet", "r"), -10), OfPriority(placeholder, -1000)});
  EXPECT_FALSE(judgement.block.has_value());
  EXPECT_THAT(judgement.move, ElementsAre(2, 3));
}

TEST_F(RulesTest, APodOfTheCutoffIsJudgedAsAnyOther) {
  EXPECT_EQ(Blocks(OfPriority(FitPod(), -10)), PodReason::kNotReplicated);
}

FitPod NotToBeDisrupted() {
  FitPod pod = OwnedBy("ReplicaSet", "r");
  pod.traits.do_not_disrupt = true;
  return pod;
}

TEST_F(RulesTest, DoNotDisruptOutvotesSafeToEvict) {
  FitPod pod = NotToBeDisrupted();
  pod.traits.safe_to_evict = SafeToEvict::kYes;
  EXPECT_EQ(Blocks(pod), PodReason::kDoNotDisruptAnnotation);
}
TEST_F(RulesTest, DoNotDisruptOutvotesTheAgeOfASystemPod) {
  FitPod pod = NotToBeDisrupted();
  pod.namespace_name = "kube-system";
  pod.traits.created_s = 0;
  EXPECT_EQ(Blocks(pod), PodReason::kDoNotDisruptAnnotation);
}
TEST_F(RulesTest, DoNotDisruptDoesNotKeepWhatHasEndedOrEnds) {
  FitPod failed = NotToBeDisrupted(), succeeded = NotToBeDisrupted(), ends = NotToBeDisrupted();
  failed.traits.phase = PodPhase::kFailed;
  succeeded.traits.phase = PodPhase::kSucceeded;
  ends.traits.deleted_s = kRulesTime;
  EXPECT_FALSE(Judge({failed, succeeded, ends}).block.has_value());
}
TEST_F(RulesTest, APodThatHasSucceededNeedsNoOwner) {
  FitPod pod = OwnedBy("ReplicaSet", "r");
  pod.traits.owner.reset();
  pod.traits.phase = PodPhase::kSucceeded;
  EXPECT_FALSE(Judge({pod}).block.has_value());
}
TEST_F(RulesTest, DoNotDisruptOfAPodOfADaemonSetKeepsTheNode) {
  FitPod daemon = OwnedBy("DaemonSet", "d");
  daemon.traits.do_not_disrupt = true;
  EXPECT_EQ(Blocks(daemon), PodReason::kDoNotDisruptAnnotation);
}
TEST_F(RulesTest, DoNotDisruptOfAMirrorPodKeepsTheNode) {
  FitPod pod = Mirror({});
  pod.traits.do_not_disrupt = true;
  EXPECT_EQ(Blocks(pod), PodReason::kDoNotDisruptAnnotation);
}

TEST_F(RulesTest, DoNotDisruptHoldsUntilTheEndOfItsTime) {
  FitPod pod = NotToBeDisrupted();
  pod.traits.safe_to_evict = SafeToEvict::kYes;
  pod.traits.do_not_disrupt_until_s = kRulesTime + 1;
  EXPECT_EQ(Blocks(pod), PodReason::kDoNotDisruptAnnotation);
}
TEST_F(RulesTest, DoNotDisruptEndsWithItsTime) {
  FitPod pod = NotToBeDisrupted();
  pod.traits.safe_to_evict = SafeToEvict::kYes;
  pod.traits.do_not_disrupt_until_s = kRulesTime;
  EXPECT_EQ(Blocks(pod), PodReason::kNone);
}

TEST_F(RulesTest, AMirrorPodBelongsToItsNode) {
  EXPECT_EQ(Blocks(Mirror(OwnedBy("Node", "n", "uid-n"))), PodReason::kNone);
}
TEST_F(RulesTest, AMirrorPodOfAnotherNodeIsForged) {
  EXPECT_EQ(Blocks(Mirror(OwnedBy("Node", "other", "uid-o"))), PodReason::kControllerNotFound);
}
TEST_F(RulesTest, AMirrorPodOfAFormerNodeOfThatNameIsForged) {
  EXPECT_EQ(Blocks(Mirror(OwnedBy("Node", "n", "uid-old"))), PodReason::kControllerNotFound);
}
TEST_F(RulesTest, AMirrorPodOfAReplicaSetIsForged) {
  EXPECT_EQ(Blocks(Mirror(OwnedBy("ReplicaSet", "r"))), PodReason::kControllerNotFound);
}

TEST_F(RulesTest, TheOwnerOfAPodThatHasEndedMayBeGone) {
  Known(ObjectKind::kReplicaSet, "web", {.uid = "1", .target_replicas = 3});
  FitPod pod = OwnedBy("ReplicaSet", "gone");
  EXPECT_EQ(Blocks(pod), PodReason::kControllerNotFound);
  cluster_ = FitCluster();
  Known(ObjectKind::kReplicaSet, "web", {.uid = "1", .target_replicas = 3});
  pod.traits.phase = PodPhase::kSucceeded;
  EXPECT_EQ(Blocks(pod), PodReason::kNone);
}

TEST_F(RulesTest, AnOwnerThatDoesNotExistIsForged) {
  Known(ObjectKind::kReplicaSet, "web", {.uid = "1", .target_replicas = 3});
  EXPECT_EQ(Blocks(OwnedBy("ReplicaSet", "web", "1")), PodReason::kNone);
  cluster_ = FitCluster();
  Known(ObjectKind::kReplicaSet, "web", {.uid = "1", .target_replicas = 3});
  EXPECT_EQ(Blocks(OwnedBy("ReplicaSet", "web", "2")), PodReason::kControllerNotFound);
  cluster_ = FitCluster();
  Known(ObjectKind::kReplicaSet, "web", {.uid = "1", .target_replicas = 3});
  options_.skip_nodes_with_custom_controller_pods = false;
  EXPECT_EQ(Blocks(OwnedBy("ReplicaSet", "gone")), PodReason::kControllerNotFound);
}

TEST_F(RulesTest, AskForReplicas) {
  Known(ObjectKind::kReplicaSet, "web", {.target_replicas = 1});
  options_.min_replica_count = 2;
  EXPECT_EQ(Blocks(OwnedBy("ReplicaSet", "web")), PodReason::kMinReplicasReached);
}

TEST_F(RulesTest, TheSystemRuleAsksForAgeOrABudget) {
  FitPod pod = OwnedBy("ReplicaSet", "dns");
  pod.namespace_name = "kube-system";
  EXPECT_EQ(Blocks(pod), PodReason::kUnmovableKubeSystemPod);
  cluster_ = FitCluster();
  pod.traits.created_s = kRulesTime - 3600;
  EXPECT_EQ(Blocks(pod), PodReason::kUnmovableKubeSystemPod);
  cluster_ = FitCluster();
  pod.traits.created_s = kRulesTime - 3601;
  EXPECT_EQ(Blocks(pod), PodReason::kNone);
}

TEST_F(RulesTest, TimesAtTheEndOfTheirRangeDoNotWrap) {
  PodTraits traits;
  traits.deleted_s = INT64_MAX;
  traits.grace_s = INT64_MAX;
  EXPECT_FALSE(IsLongTerminating(traits, kRulesTime));
  traits.deleted_s = INT64_MIN;
  traits.grace_s = INT64_MIN;
  EXPECT_TRUE(IsLongTerminating(traits, kRulesTime));
}

// A pod of one shape is judged once, and budgets anew each time.
TEST_F(RulesTest, AsksBudgetsEachTime) {
  DisruptionBudget budget;
  budget.disruptions_allowed = 1;
  cluster_.state().objects().Set({{ObjectKind::kDisruptionBudget, "default", "all"}, budget, 1});
  FitPod pod = OwnedBy("ReplicaSet", "r");
  pod.traits.ready = true;
  cluster_.Add({.name = "n"}, {pod});
  DisruptionBudgets budgets(cluster_.state());
  PodJudge judge(cluster_.state(), budgets, options_, kRulesTime);
  EXPECT_FALSE(judge.JudgeNode(Slot{0}).block.has_value());
  budgets.Take(budgets.UseOf(cluster_.state().pods(Slot{0}).pods()[0].shape));
  EXPECT_EQ(judge.JudgeNode(Slot{0}).block, (NodePodsJudgement::Block{0, PodReason::kNotEnoughPdb}));
}

}  // namespace
}  // namespace loadline
