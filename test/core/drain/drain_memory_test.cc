#include "core/drain/drain_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/drain/candidate_rounds.h"
#include "core/drain/node_reason.h"
#include "core/drain/vanished_pods.h"
#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

DrainCluster OneDrains() {
  return {.nodes = {NodeWith("a", {ReplicaPod("p", 300)}), NodeWith("b", {ReplicaPod("q", 400)})}};
}

TEST(DrainMemoryTest, AStateThatNoCallHasReadIsGivenBack) {
  DrainState state;
  state.unneeded = {{.node = "a", .uid = "u", .since_s = 5, .hints = {{"uid-p", "b"}}}};
  state.resume_at = "b";
  DrainMemory memory;
  memory.Set(state);
  EXPECT_EQ(memory.ToState(nullptr).unneeded, state.unneeded);
  EXPECT_EQ(memory.ToState(nullptr).resume_at, "b");
}

TEST(DrainMemoryTest, ThePlanIsKnownByNamesAgain) {
  DrainModel model(OneDrains());
  CallFixture fixture(&model);
  PlanCandidates({}, /*anew=*/true, &fixture.call(), &fixture.follower(), &fixture.memory());
  ASSERT_THAT(fixture.Planned(), ElementsAre("a"));
  fixture.memory().KeepTimer({"gone", "", 7, {{1, "b"}}});
  const DrainState state = fixture.memory().ToState(&fixture.call());
  EXPECT_THAT(state.unneeded,
              ElementsAre(UnneededNode{.node = "a", .since_s = kDrainNow, .hints = {{"uid-p", "b"}}},
                          UnneededNode{.node = "gone", .since_s = 7}));
}

// b was tried in vain, as it was an hour ago.
TEST(DrainMemoryTest, ADrainThatFailsForTheSameReasonFailedSinceThen) {
  DrainCluster cluster = OneDrains();
  cluster.nodes[0].pods = {ReplicaPod("p", 900)};
  DrainModel model(cluster);
  for (const NodeReason before : {NodeReason::kNoPlaceToMovePods, NodeReason::kBlockedByPod}) {
    DrainState state;
    state.failed = {{.node = "b", .reason = before, .since_s = kDrainNow - 3'600}};
    CallFixture fixture(&model, std::move(state));
    DrainPlan plan;
    const std::string resume_at =
        PlanCandidates({}, /*anew=*/true, &fixture.call(), &fixture.follower(), &fixture.memory());
    fixture.memory().Remember(fixture.call(), fixture.follower().trial(), resume_at, {}, &plan);
    ASSERT_THAT(plan.keep, SizeIs(2));
    EXPECT_EQ(plan.keep[1].reason, NodeReason::kNoPlaceToMovePods);
    const int64_t since_s = before == NodeReason::kNoPlaceToMovePods ? kDrainNow - 3'600 : kDrainNow;
    EXPECT_EQ(plan.keep[1].since_s, since_s);
    EXPECT_EQ(fixture.memory().state().failed[1].since_s, since_s);
    EXPECT_EQ(fixture.memory().state().failed[1].pod, "default/q");
    EXPECT_EQ(fixture.memory().state().nodes, 2);
  }
}

// Node a of two would be removed with its pod: the next call expects neither of them, unless nothing is
// removed.
TEST(DrainMemoryTest, NodesThatDoNotGoStillCount) {
  for (const bool nothing_leaves : {false, true}) {
    DrainModel model(OneDrains());
    model.problem().nothing_leaves = nothing_leaves;
    CallFixture fixture(&model);
    DrainPlan plan;
    std::string resume_at =
        PlanCandidates({}, /*anew=*/true, &fixture.call(), &fixture.follower(), &fixture.memory());
    ASSERT_THAT(fixture.Planned(), ElementsAre("a"));
    DrainRemoval& removal = plan.remove.emplace_back();
    removal.slot = *model.problem().cluster->Find("a");
    removal.start = true;
    std::vector<OwnerPods> pods = CountPods(*model.problem().cluster);
    fixture.memory().Remember(fixture.call(), fixture.follower().trial(), std::move(resume_at),
                              std::move(pods), &plan);
    int64_t counted = 0;
    for (const OwnerPods& owner : fixture.memory().state().pods) counted += owner.pods;
    EXPECT_EQ(fixture.memory().state().nodes, nothing_leaves ? 2 : 1);
    EXPECT_EQ(counted, nothing_leaves ? 2 : 1);
  }
}

TEST(DrainMemoryTest, EvictionsAreForgottenAlsoWhereTheClockWentBack) {
  DrainState state;
  state.recent_evictions.resize(2);
  state.recent_evictions[0].at_s = kDrainNow - 60;
  state.recent_evictions[1].at_s = kDrainNow + 1'000;
  DrainMemory memory;
  memory.Set(std::move(state));
  memory.ForgetOldEvictions(kDrainNow, 60);
  ASSERT_THAT(memory.state().recent_evictions, SizeIs(1));
  EXPECT_EQ(memory.state().recent_evictions[0].at_s, kDrainNow);
  memory.ForgetOldEvictions(kDrainNow + 60, 60);
  EXPECT_THAT(memory.state().recent_evictions, IsEmpty());
}

}  // namespace
}  // namespace loadline
