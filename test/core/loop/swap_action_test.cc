// The outcomes for nodes that are taken back for a cheaper mix: see swap_test.cc for which those are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/loop/loop_actions.h"
#include "core/observe/action_outcomes.h"

namespace loadline {
namespace {

constexpr int64_t kSwapNowMs = 1'700'000'000'000;

class SwapActionTest : public ::testing::Test {
 protected:
  SwapActionTest() {
    seen_.groups.resize(2);
    seen_.groups[GroupIndex{0}].name = "small";
    seen_.groups[GroupIndex{1}].name = "large";
    findings_.groups.resize(2);
    findings_.groups[GroupIndex{0}].target = 3;
    findings_.groups[GroupIndex{1}].target = 5;
    plan_.growth = {{.group = GroupIndex{0}, .for_pods = 2}, {.group = GroupIndex{1}, .for_slack = 1}};
    plan_.take_back = {{GroupIndex{1}, 4}};
  }

  std::vector<LoopAction> Actions() {
    return ActionsOf(seen_, findings_, plan_, ClusterState(), ObserveOptions(), kSwapNowMs, &memory_);
  }

  FleetOutcomes Ended(ActionOutcome::Result result) {
    LoopOutcomes outcomes;
    outcomes.actions.push_back({memory_.open.back().id, result, ""});
    return TakeActionOutcomes(outcomes, seen_, &memory_);
  }

  LoopObservation seen_;
  LoopFindings findings_;
  LoopPlan plan_;
  LoopMemory memory_;
};

TEST_F(SwapActionTest, ComesAfterAllGrowthAndExpectsTheTargetThen) {
  const std::vector<LoopAction> actions = Actions();
  ASSERT_EQ(actions.size(), 3U);
  EXPECT_EQ(actions[0].kind, LoopAction::Kind::kGrow);
  EXPECT_EQ(actions[1].kind, LoopAction::Kind::kGrow);
  EXPECT_EQ(actions[2].kind, LoopAction::Kind::kSwap);
  EXPECT_EQ(actions[2].group, GroupIndex{1});
  EXPECT_EQ(actions[2].nodes, 4);
  EXPECT_EQ(actions[2].target, 6) << "five, and the one that it grows by";
}

TEST_F(SwapActionTest, WhatIsTakenBackIsWaitedForNoMore) {
  Actions();
  const FleetOutcomes ended = Ended(ActionOutcome::Result::kDone);
  ASSERT_EQ(ended.taken_back.size(), 1U);
  EXPECT_EQ(ended.taken_back[0].group, "large");
  EXPECT_EQ(ended.taken_back[0].nodes, 4);
  EXPECT_TRUE(memory_.swap_refused_ms.empty());
}

TEST_F(SwapActionTest, ARefusalIsRememberedByGroup) {
  for (const auto result :
       {ActionOutcome::Result::kChanged, ActionOutcome::Result::kFailed, ActionOutcome::Result::kUnknown}) {
    memory_ = LoopMemory();
    Actions();
    EXPECT_TRUE(Ended(result).taken_back.empty());
    EXPECT_EQ(memory_.swap_refused_ms[FleetKey("large")], kSwapNowMs);
    EXPECT_EQ(memory_.swap_refused_ms.size(), 1U);
  }
}

TEST_F(SwapActionTest, WhatWasNotTriedIsNoRefusal) {
  Actions();
  EXPECT_TRUE(TakeActionOutcomes({}, seen_, &memory_).taken_back.empty());
  EXPECT_TRUE(memory_.swap_refused_ms.empty());
}

}  // namespace
}  // namespace loadline
