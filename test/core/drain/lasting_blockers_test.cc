#include "core/drain/lasting_blockers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// Returns a pod of a ReplicaSet, with the label app=web: nothing keeps it.
FitPod WebPod() {
  FitPod pod;
  pod.labels = {{"app", "web"}};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", "web", "uid"};
  return pod;
}

// Selects app=web; `desired` of `expected` pods have to be healthy.
DisruptionBudget WebBudget(int32_t expected, int32_t desired) {
  DisruptionBudget budget;
  budget.selector = Select("app", "web");
  budget.expected_pods = expected;
  budget.desired_healthy = desired;
  return budget;
}

class LastingBlockersTest : public ::testing::Test {
 protected:
  bool Blocks(const FitPod& pod) { return LastingBlockers(objects()).Blocks(cluster_.Shape(pod)); }

  void SetBudget(const std::string& name, DisruptionBudget budget, uint64_t fingerprint = 1) {
    objects().Set({{ObjectKind::kDisruptionBudget, "default", name}, std::move(budget), fingerprint});
  }

  ClusterObjects& objects() { return cluster_.state().objects(); }

  FitCluster cluster_;
};

TEST_F(LastingBlockersTest, APodWithoutAnOwnerBlocks) {
  EXPECT_FALSE(Blocks(WebPod()));
  EXPECT_TRUE(Blocks(FitPod()));
}

TEST_F(LastingBlockersTest, AnAnnotatedPodBlocks) {
  FitPod not_safe = WebPod();
  not_safe.traits.safe_to_evict = SafeToEvict::kNo;
  EXPECT_TRUE(Blocks(not_safe));
  FitPod for_ever = WebPod();
  for_ever.traits.do_not_disrupt = true;
  EXPECT_TRUE(Blocks(for_ever));
  FitPod for_a_time = for_ever;
  for_a_time.traits.do_not_disrupt_until_s = 1;
  EXPECT_TRUE(Blocks(for_a_time));
  FitPod safe;
  safe.traits.safe_to_evict = SafeToEvict::kYes;
  EXPECT_FALSE(Blocks(safe));
}

TEST_F(LastingBlockersTest, APodThatLeavesWithItsNodeDoesNot) {
  FitPod daemon = WebPod();
  daemon.traits.owner->kind = "DaemonSet";
  daemon.traits.safe_to_evict = SafeToEvict::kNo;
  EXPECT_FALSE(Blocks(daemon));
  FitPod mirror;
  mirror.traits.mirror = true;
  mirror.traits.owner = PodOwner{"Node", "v1", "n", "uid"};
  EXPECT_FALSE(Blocks(mirror));
  FitPod placeholder;
  placeholder.traits.placeholder = true;
  EXPECT_FALSE(Blocks(placeholder));
  FitPod finished;
  finished.traits.phase = PodPhase::kFailed;
  EXPECT_FALSE(Blocks(finished));
  FitPod terminating;
  terminating.traits.deleted_s = 5;
  EXPECT_FALSE(Blocks(terminating));
}

// Flags of an autoscaler let these pods go.
TEST_F(LastingBlockersTest, WhatFlagsDecideDoesNotBlock) {
  FitPod system = WebPod();
  system.namespace_name = "kube-system";
  EXPECT_FALSE(Blocks(system));
  FitPod local = WebPod();
  local.traits.local_volume = "data";
  EXPECT_FALSE(Blocks(local));
  FitPod custom = WebPod();
  custom.traits.owner->kind = "CloneSet";
  EXPECT_FALSE(Blocks(custom));
}

TEST_F(LastingBlockersTest, ABudgetThatNeverAllowsAnEvictionBlocks) {
  SetBudget("web", WebBudget(3, 2));
  EXPECT_FALSE(Blocks(WebPod())) << "none is left at present";
  SetBudget("web", WebBudget(3, 3));
  EXPECT_TRUE(Blocks(WebPod()));
  FitPod other = WebPod();
  other.labels = {{"app", "other"}};
  EXPECT_FALSE(Blocks(other));
  FitPod expendable = WebPod();
  expendable.traits.priority = -11;
  EXPECT_FALSE(Blocks(expendable)) << "it keeps no node";
  FitPod elsewhere = WebPod();
  elsewhere.namespace_name = "elsewhere";
  EXPECT_FALSE(Blocks(elsewhere));
  DisruptionBudget stale = WebBudget(3, 3);
  stale.generation = 1;
  SetBudget("web", stale);
  EXPECT_FALSE(Blocks(WebPod()));
}

TEST_F(LastingBlockersTest, SeveralBudgetsBlockAndSoDoesOneOfUnknownPods) {
  SetBudget("a", WebBudget(3, 1));
  SetBudget("b", WebBudget(3, 1));
  EXPECT_TRUE(Blocks(WebPod()));
  FitPod other = WebPod();
  other.labels = {{"app", "other"}};
  EXPECT_FALSE(Blocks(other));
  DisruptionBudget invalid = WebBudget(3, 1);
  invalid.selector = {true, {}};
  invalid.selector_error = "no such operator";
  SetBudget("c", invalid);
  EXPECT_TRUE(Blocks(other));
}

TEST_F(LastingBlockersTest, TheRuleStaysTheSameUntilABudgetSaysSomethingElse) {
  LastingBlockersCache cache;
  SetBudget("web", WebBudget(3, 2));
  const std::shared_ptr<const LastingBlockers> first = cache.For(objects());
  EXPECT_EQ(cache.For(objects()), first);
  DisruptionBudget allows = WebBudget(4, 2);
  allows.disruptions_allowed = 2;
  SetBudget("web", allows, 2);
  EXPECT_EQ(cache.For(objects()), first);
  SetBudget("web", WebBudget(4, 4), 3);
  const std::shared_ptr<const LastingBlockers> second = cache.For(objects());
  EXPECT_NE(second, first);
  EXPECT_TRUE(second->Blocks(cluster_.Shape(WebPod())));
  EXPECT_FALSE(first->Blocks(cluster_.Shape(WebPod()))) << "refers to the objects of before";
  objects().Remove({ObjectKind::kDisruptionBudget, "default", "web"});
  EXPECT_NE(cache.For(objects()), second);
}

}  // namespace
}  // namespace loadline
