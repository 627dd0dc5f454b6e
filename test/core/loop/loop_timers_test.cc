#include "core/loop/loop_timers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/drain/drain_progress.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kTimersNowS = 1'700'000'000;
constexpr int64_t kTimersTtlS = 3'600;

// Nodes "a" and "b", with UIDs "uid-a" and "uid-b", and one without a UID.
FitCluster TimedNodes() {
  FitCluster cluster;
  for (const std::string name : {"a", "b", "c"}) {
    FitNode node{.name = name};
    if (name != "c") node.traits.uid = "uid-" + name;
    cluster.Add(node);
  }
  return cluster;
}

TEST(LoopTimersTest, KnowsNodesByTheirUidsAndElseByTheirNames) {
  FitCluster cluster = TimedNodes();
  LoopMemory memory;
  memory.unneeded_since_s = {{FleetKey("uid-a"), kTimersNowS - 10},
                             {FleetKey("b"), kTimersNowS - 20},
                             {FleetKey("c"), kTimersNowS - 30},
                             {FleetKey("uid-gone"), kTimersNowS - 40}};
  EXPECT_THAT(KnownTimers(memory, cluster.state(), kTimersNowS, kTimersTtlS),
              ElementsAre(TimedNode{Slot{0}, kTimersNowS - 10}, TimedNode{Slot{2}, kTimersNowS - 30}));
}

TEST(LoopTimersTest, TimesOfTheFutureAndOldOnesSayNothing) {
  FitCluster cluster = TimedNodes();
  LoopMemory memory;
  memory.unneeded_since_s = {{FleetKey("uid-a"), kTimersNowS + 1},
                             {FleetKey("uid-b"), kTimersNowS - kTimersTtlS - 1},
                             {FleetKey("c"), kTimersNowS - kTimersTtlS}};
  EXPECT_THAT(KnownTimers(memory, cluster.state(), kTimersNowS, kTimersTtlS),
              ElementsAre(TimedNode{Slot{2}, kTimersNowS - kTimersTtlS}));
}

TEST(LoopTimersTest, ALoopThatPlansNoDrainsLeavesTimersAsTheyAre) {
  FitCluster cluster = TimedNodes();
  LoopMemory memory;
  memory.unneeded_since_s[FleetKey("uid-a")] = kTimersNowS;
  LoopPlan plan;
  NoteTimers(plan, cluster.state(), &memory);
  EXPECT_EQ(memory.unneeded_since_s.size(), 1);
  plan.scale_down_problem = std::make_unique<DrainProblem>();
  DrainRemoval& removal = plan.scale_down.remove.emplace_back();
  removal.slot = Slot{1};
  removal.since_s = kTimersNowS - 5;
  NoteTimers(plan, cluster.state(), &memory);
  EXPECT_THAT(memory.unneeded_since_s,
              ElementsAre(std::pair<const uint64_t, int64_t>(FleetKey("uid-b"), kTimersNowS - 5)));
  plan.scale_down.behind_budgets = {{Slot{0}, kTimersNowS - 3}};
  NoteTimers(plan, cluster.state(), &memory);
  EXPECT_EQ(memory.unneeded_since_s.size(), 2);
  EXPECT_EQ(memory.unneeded_since_s[FleetKey("uid-a")], kTimersNowS - 3);
}

TEST(DrainProgressTest, ANodeThatStartsTakesItsPlaceAmongThoseThatGo) {
  FitCluster cluster = TimedNodes();
  DrainState state = StateFromTimers(cluster.state(), {}, kTimersNowS, {});
  EXPECT_THAT(state.unneeded, IsEmpty());
  const TimedNode known{Slot{1}, kTimersNowS - 7};
  state = StateFromTimers(cluster.state(), {}, kTimersNowS, {&known, 1});
  ASSERT_EQ(state.unneeded.size(), 1);
  EXPECT_EQ(state.unneeded[0].node, "b");
  EXPECT_EQ(state.unneeded[0].uid, "uid-b");
  EXPECT_EQ(state.unneeded[0].since_s, kTimersNowS - 7);
  state.unneeded[0].hints.push_back({"placeholder/p", "a"});
  NoteStarted("b", kTimersNowS, cluster.state(), &state);
  NoteStarted("b", kTimersNowS, cluster.state(), &state);
  NoteStarted("no-such-node", kTimersNowS, cluster.state(), &state);
  NoteStarted("a", kTimersNowS, cluster.state(), &state);
  EXPECT_THAT(state.unneeded, IsEmpty());
  ASSERT_EQ(state.deleting.size(), 2);
  EXPECT_FALSE(state.deleting[0].drain) << "only placeholders move";
  EXPECT_TRUE(state.deleting[1].drain) << "nothing is known of it";
  NoteFailed("b", &state);
  EXPECT_FALSE(IsDeleting(state, "b"));
  EXPECT_TRUE(IsDeleting(state, "a"));
}

}  // namespace
}  // namespace loadline
