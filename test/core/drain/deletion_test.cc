#include "core/drain/deletion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/drain/node_reason.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kDeletionTime = 10'000;
constexpr int64_t kLongAgo = 0;

// Two groups of ten nodes of a core each, the second one atomic, with three nodes.
class DeletionTest : public ::testing::Test {
 protected:
  DeletionTest() {
    groups_.push_back({.name = "plain", .target = 10});
    groups_.push_back({.name = "atomic", .target = 3, .atomic = true});
  }

  static DeletionCandidate Empty() {
    return {.group = GroupIndex{0}, .allocatable = {1000, 0}, .empty = true, .since_s = kLongAgo};
  }
  static DeletionCandidate Drain() {
    return {.group = GroupIndex{0}, .allocatable = {1000, 0}, .since_s = kLongAgo};
  }
  static DeletionCandidate Risky() { return {.group = GroupIndex{0}, .risky = true, .since_s = kLongAgo}; }
  static DeletionCandidate Atomic(bool empty) {
    return {.group = GroupIndex{1}, .empty = empty, .since_s = kLongAgo};
  }

  Deletions Select(const std::vector<DeletionCandidate>& candidates) {
    SizeLimits limits(groups_, minimum_);
    for (int i = 0; i < registered_; ++i) limits.AddNode(GroupIndex{0}, {1000, 0}, false);
    for (int i = 0; i < 3; ++i) limits.AddNode(GroupIndex{1}, {1000, 0}, false);
    NodeAllowance allowance(options_.budgets, groups_, StrongVector<GroupIndex, int64_t>{registered_, 3},
                            kDeletionTime);
    return SelectDeletions(candidates, groups_, under_way_, options_, kDeletionTime, &limits, &allowance);
  }

  // Returns what each candidate waits for; "None": it is removed.
  std::vector<std::string> Waits(const std::vector<DeletionCandidate>& candidates) {
    std::vector<std::string> names;
    for (const DeletionDecision& decision : Select(candidates).decisions) {
      EXPECT_EQ(decision.start, decision.waits == NodeReason::kNone);
      names.emplace_back(Name(decision.waits));
    }
    return names;
  }

  NodeGroups groups_;
  int registered_ = 10;
  ClusterMinimum minimum_;
  DeletionsUnderWay under_way_;
  DeletionOptions options_;
};

TEST_F(DeletionTest, ATimerEndsStrictlyAfterItsTime) {
  DeletionCandidate node = Empty();
  node.since_s = kDeletionTime - 600;
  Deletions deletions = Select({node});
  EXPECT_EQ(deletions.decisions[0].waits, NodeReason::kNotUnneededLongEnough);
  EXPECT_EQ(deletions.decisions[0].ready_at_s, kDeletionTime + 1);
  EXPECT_EQ(deletions.status, DrainStatus::kNoNodeDeleted);
  node.since_s = kDeletionTime - 601;
  EXPECT_THAT(Waits({node}), ElementsAre("None"));
  node.ready = false;
  EXPECT_THAT(Waits({node}), ElementsAre("NotUnreadyLongEnough"));
}

TEST_F(DeletionTest, AGroupMayStateItsOwnTimes) {
  groups_[GroupIndex{0}].unneeded_time_s = 0;
  DeletionCandidate node = Empty();
  node.since_s = kDeletionTime;
  EXPECT_THAT(Waits({node}), ElementsAre("None"));
}

TEST_F(DeletionTest, TheMinimumHoldsByTargetAndByNodes) {
  groups_[GroupIndex{0}].min_nodes = 8;
  EXPECT_THAT(Waits({Empty(), Empty(), Empty()}), ElementsAre("None", "None", "NodeGroupMinSizeReached"));
  registered_ = 9;
  EXPECT_THAT(Waits({Empty(), Empty()}), ElementsAre("None", "NodeGroupMinSizeReached"));
  registered_ = 10;
  groups_[GroupIndex{0}].target = 9;
  EXPECT_THAT(Waits({Empty(), Empty()}), ElementsAre("None", "NodeGroupMinSizeReached"));
}

// 13 cores in all.
TEST_F(DeletionTest, TheClusterKeepsItsMinimum) {
  minimum_.amounts.cpu = 12'000;
  EXPECT_THAT(Waits({Drain(), Empty()}), ElementsAre("MinimalResourceLimitExceeded", "None"));
}

TEST_F(DeletionTest, ANodeThatWaitsForPodsToCompleteTakesNothingFromOthers) {
  groups_[GroupIndex{0}].min_nodes = 9;
  DeletionCandidate waits = Empty();
  waits.on_completion = true;
  EXPECT_THAT(Waits({waits, Empty()}), ElementsAre("BlockedByOnCompletionPod", "None"));
}

TEST_F(DeletionTest, AnAtomicGroupGoesAsAWhole) {
  EXPECT_THAT(Waits({Atomic(true), Atomic(false)}),
              ElementsAre("AtomicScaleDownFailed", "AtomicScaleDownFailed"));
  DeletionCandidate young = Atomic(true);
  young.since_s = kDeletionTime;
  EXPECT_THAT(Waits({Atomic(true), Atomic(false), young}),
              ElementsAre("AtomicScaleDownFailed", "AtomicScaleDownFailed", "NotUnneededLongEnough"));
  EXPECT_THAT(Waits({Atomic(true), Atomic(false), Atomic(false)}), ElementsAre("None", "None", "None"));
}

TEST_F(DeletionTest, AnAtomicGroupWaitsForNodesOnTheirWay) {
  groups_[GroupIndex{1}].target = 4;
  EXPECT_THAT(Waits({Atomic(true), Atomic(true), Atomic(true)}), ElementsAre("None", "None", "None"));
  groups_[GroupIndex{1}].upcoming = 1;
  EXPECT_THAT(Waits({Atomic(true), Atomic(true), Atomic(true)}),
              ElementsAre("AtomicScaleDownFailed", "AtomicScaleDownFailed", "AtomicScaleDownFailed"));
}

TEST_F(DeletionTest, NamesTheLimitThatHoldsNodesBack) {
  options_.max_scale_down_parallelism = 2;
  options_.max_drain_parallelism = 1;
  Deletions deletions = Select({Drain(), Drain(), Empty()});
  EXPECT_THAT(deletions.start, ElementsAre(2, 0));
  EXPECT_EQ(deletions.limit, ThrottleLimit::kMaxScaleDownParallelism);
  EXPECT_EQ(deletions.status, DrainStatus::kNodeDeleteStarted);
  deletions = Select({Drain(), Drain()});
  EXPECT_THAT(deletions.start, ElementsAre(0));
  EXPECT_EQ(deletions.limit, ThrottleLimit::kMaxDrainParallelism);
  under_way_.drain = 1;
  deletions = Select({Drain()});
  EXPECT_THAT(deletions.start, IsEmpty());
  EXPECT_EQ(deletions.status, DrainStatus::kThrottled);
  EXPECT_EQ(deletions.decisions[0].waits, NodeReason::kScaleDownThrottled);
}

TEST_F(DeletionTest, ExclusiveDrainsWaitForOneThatRuns) {
  options_.exclusive = true;
  EXPECT_THAT(Waits({Drain(), Drain()}), ElementsAre("None", "None"));
  under_way_.drain = 1;
  EXPECT_THAT(Waits({Drain(), Empty()}), ElementsAre("ScaleDownThrottled", "None"));
  EXPECT_EQ(Select({Drain()}).limit, ThrottleLimit::kExclusive);
}

TEST_F(DeletionTest, ARiskyNodeGoesLastAndAlone) {
  EXPECT_THAT(Waits({Risky(), Drain(), Empty()}), ElementsAre("WaitsForOtherDrains", "None", "None"));
  EXPECT_THAT(Waits({Risky(), Risky(), Empty()}), ElementsAre("None", "WaitsForOtherDrains", "None"));
  under_way_ = {.drain = 1, .risky = true};
  EXPECT_THAT(Waits({Drain(), Empty()}), ElementsAre("WaitsForOtherDrains", "None"));
}

// 13 nodes in all, of which two may go: not the three of the atomic group, so two others.
TEST_F(DeletionTest, AnAtomicGroupThatCannotGoLeavesThePlacesToOthers) {
  minimum_.nodes = 11;
  EXPECT_THAT(Waits({Atomic(true), Atomic(true), Atomic(true), Drain(), Drain(), Drain()}),
              ElementsAre("AtomicScaleDownFailed", "AtomicScaleDownFailed", "AtomicScaleDownFailed", "None",
                          "None", "MinimalResourceLimitExceeded"));
}

// Its other drains would run beside the risky one.
TEST_F(DeletionTest, AnAtomicGroupOfSeveralDrainsWaitsWhileOneIsRisky) {
  DeletionCandidate risky = Atomic(false);
  risky.risky = true;
  EXPECT_THAT(Waits({Atomic(false), risky, Atomic(true)}),
              ElementsAre("WaitsForOtherDrains", "WaitsForOtherDrains", "WaitsForOtherDrains"));
  EXPECT_THAT(Waits({Atomic(true), risky, Atomic(true)}), ElementsAre("None", "None", "None"));
}

// The others wait for their timers; see WaitTime().
TEST_F(DeletionTest, NoTimerHoldsANodeThatIsReplaced) {
  options_.timers.unneeded_time_s = 600;
  DeletionCandidate replaced = Drain();
  replaced.replaced = true;
  DeletionCandidate drained = Drain();
  replaced.since_s = drained.since_s = kDeletionTime - 10;
  EXPECT_THAT(Waits({replaced, drained}), ElementsAre("None", "NotUnneededLongEnough"));
  const Deletions deletions = Select({replaced, drained});
  EXPECT_EQ(deletions.decisions[0].ready_at_s, kDeletionTime - 10);
  EXPECT_EQ(deletions.decisions[1].ready_at_s, kDeletionTime - 10 + 601);
}

TEST_F(DeletionTest, NothingToDo) {
  EXPECT_EQ(Select({}).status, DrainStatus::kNoCandidates);
  DeletionCandidate stray = Empty();
  stray.group.reset();
  EXPECT_THAT(Waits({stray}), ElementsAre("NotAutoscaled"));
}

// In a group of ten nodes 15 percent are two.
TEST_F(DeletionTest, BudgetsHoldForEachReason) {
  options_.budgets = {{.reasons = {RemovalReason::kEmpty}, .nodes = 15, .percent = true},
                      {.reasons = {RemovalReason::kUnderutilized, RemovalReason::kReplaced}, .nodes = 1}};
  DeletionCandidate replaced = Drain();
  replaced.replaced = true;
  EXPECT_THAT(Waits({Empty(), Empty(), Empty(), replaced, Drain()}),
              ElementsAre("None", "None", "ScaleDownThrottled", "None", "ScaleDownThrottled"));
  EXPECT_EQ(Select({Empty(), Empty(), Empty()}).limit, ThrottleLimit::kNodeBudget);
}

TEST_F(DeletionTest, BudgetsHoldForTheirGroupsInTheirWindowsOnly) {
  options_.budgets = {{.groups = {"atomic"}, .nodes = 0}};
  EXPECT_THAT(Waits({Empty(), Atomic(true), Atomic(true), Atomic(true)}),
              ElementsAre("None", "ScaleDownThrottled", "ScaleDownThrottled", "ScaleDownThrottled"));
  options_.budgets[0].windows = {{{kDeletionTime, kDeletionTime + 1}}};
  EXPECT_EQ(Select({Atomic(true), Atomic(true), Atomic(true)}).start.size(), 0U);
  for (const TimeWindow ended : {TimeWindow{0, kDeletionTime}, TimeWindow{kDeletionTime + 1, INT64_MAX}}) {
    options_.budgets[0].windows = {{ended}};
    EXPECT_EQ(Select({Atomic(true), Atomic(true), Atomic(true)}).start.size(), 3U);
  }
}

// Two of three are allowed, so none is removed; and it keeps no other group from removals.
TEST_F(DeletionTest, AnAtomicGroupNeedsABudgetForAllOfIt) {
  options_.budgets = {{.groups = {"atomic"}, .nodes = 2}};
  EXPECT_THAT(Waits({Atomic(true), Atomic(true), Atomic(true), Empty()}),
              ElementsAre("ScaleDownThrottled", "ScaleDownThrottled", "ScaleDownThrottled", "None"));
  options_.budgets[0].nodes = 3;
  EXPECT_EQ(Select({Atomic(true), Atomic(true), Atomic(true), Empty()}).start.size(), 4U);
}

}  // namespace
}  // namespace loadline
