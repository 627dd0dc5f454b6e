#include "core/expand/look_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "test/core/expand/growth_question.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

using NodesByGroup = std::map<std::string, int64_t>;

const NodesByGroup kSmall = {{"small", 1}};
const NodesByGroup kLarge = {{"large", 1}};

// Nodes of 2 and 8 CPUs with 300 millicores of DaemonSets on each, at one price per CPU, and a pod of 900.
class LookAheadTest : public ::testing::Test {
 protected:
  LookAheadTest() {
    question_.Add({.name = "small", .milli_cpu = 1'700, .usd = 0.095});
    question_.Add({.name = "large", .milli_cpu = 7'700, .usd = 0.38});
    question_.options.further = {.most = 16, .room = {16'000, 60 * kGi}};
  }

  GrowableGroups& groups() { return question_.groups; }
  NodesByGroup Grown(int64_t milli_cpu, int64_t count = 1) {
    question_.Pods({.requests = {{"cpu", milli_cpu}}}, count);
    plan_ = question_.Ask();
    return NodesOf(plan_, question_);
  }

  PlanningQuestion question_;
  ScaleUpPlan plan_;
};

TEST_F(LookAheadTest, ALargerNodeCostsLessPerPod) {
  EXPECT_EQ(Grown(900), kLarge);  // 8 pods at 0.38, against 1 at 0.095
  EXPECT_DOUBLE_EQ(plan_.cost, 0.38);
  EXPECT_EQ(plan_.cost_alone, 0.095);
  EXPECT_THAT(plan_.unplaced, testing::ElementsAre(0));
}

TEST_F(LookAheadTest, NobodyIsExpected) {
  question_.options.further = {};
  EXPECT_EQ(Grown(900), kSmall);
  EXPECT_EQ(plan_.cost_alone, std::nullopt);
}

TEST_F(LookAheadTest, AnEqualPricePerPodIsNoReason) {
  question_.options.further.most = 3;  // 4 pods at 0.38
  EXPECT_EQ(Grown(900), kSmall);
  EXPECT_EQ(plan_.cost_alone, std::nullopt);
}

TEST_F(LookAheadTest, LessThanATwentiethIsNoReason) {
  // 4 pods at 0.095 are 0.02375 each; 17 of the 18 count at 0.39, 0.02294 each, and at 0.38, 0.02235 each.
  groups()[GrowableIndex{1}].usd_per_hour = 0.39;
  EXPECT_EQ(Grown(425), kSmall);
  groups()[GrowableIndex{1}].usd_per_hour = 0.38;
  EXPECT_EQ(NodesOf(question_.Ask(), question_), kLarge);
}

TEST_F(LookAheadTest, OnlyAsManyCountAsAreExpected) {
  question_.options.further.most = 2;  // 3 pods at 0.38 in all: 0.127 each
  EXPECT_EQ(Grown(900), kSmall);
}

TEST_F(LookAheadTest, OnlyWhatTheyRequestTogetherCounts) {
  question_.options.further.room.milli_cpu = 2'600;  // 2 further pods, not 3
  EXPECT_EQ(Grown(900), kSmall);
}

TEST_F(LookAheadTest, FourPodsAtOneNodeEachAreWorthTheLargerOne) {
  question_.options.further.most = 4;  // 5 pods: 0.076 each
  EXPECT_EQ(Grown(900), kLarge);
}

TEST_F(LookAheadTest, PodsThatWaitTogetherAreOneRound) {
  EXPECT_EQ(Grown(900, 3), kLarge);  // 0.38 for 2 rounds, against 0.285 for each
  EXPECT_DOUBLE_EQ(plan_.cost_alone.value_or(0), 0.285);
}

TEST_F(LookAheadTest, MoreThanIsExpectedIsPlannedAsItIs) {
  EXPECT_EQ(Grown(900, 17), (NodesByGroup{{"large", 2}, {"small", 1}}));
  EXPECT_EQ(plan_.cost_alone, std::nullopt);
}

TEST_F(LookAheadTest, AGroupAtItsMaximumDoesNotGrow) {
  groups()[GrowableIndex{1}].max_nodes = 0;
  EXPECT_EQ(Grown(900), kSmall);
}

TEST_F(LookAheadTest, NodesWithGpusAndWholeGroupsAreNoSuchNodes) {
  groups()[GrowableIndex{1}].has_gpu = true;
  EXPECT_EQ(Grown(900), kSmall);
  groups()[GrowableIndex{1}].has_gpu = false;
  groups()[GrowableIndex{1}].atomic = true;
  EXPECT_EQ(NodesOf(question_.Ask(), question_), kSmall);
}

TEST_F(LookAheadTest, GroupsOfAHigherPriorityGrowFirst) {
  groups()[GrowableIndex{0}].priority = 1;
  EXPECT_EQ(Grown(900), kSmall);
}

// The least budget in which the plan for the pod alone is complete is enough with further pods, too.
TEST_F(LookAheadTest, NoPlanIsCutShortByIt) {
  const FurtherPods further = std::exchange(question_.options.further, {});
  EXPECT_EQ(Grown(900), kSmall);
  int64_t units = 1;
  while (question_.Ask(WorkBudget(units)).cut_short) ++units;
  question_.options.further = further;
  EXPECT_FALSE(question_.Ask(WorkBudget(units)).cut_short);
  EXPECT_EQ(NodesOf(question_.Ask(WorkBudget(10 * units)), question_), kLarge);
}

TEST_F(LookAheadTest, ThePriceForThemAloneIsKnownWithPriorities) {
  question_.Add({.name = "last", .milli_cpu = 1'700, .usd = 0.01, .priority = -1});
  groups()[GrowableIndex{0}].priority = 1;
  groups()[GrowableIndex{1}].priority = 1;
  EXPECT_EQ(Grown(900), kLarge);
  EXPECT_EQ(plan_.cost_alone, 0.095);
}

TEST_F(LookAheadTest, PodsOfJobsEnd) {
  FitPod pod{.requests = {{"cpu", 900}}};
  pod.traits.owner = PodOwner{"Job", "batch/v1", "job", "uid-job"};
  question_.Pods(pod, 1);
  EXPECT_EQ(NodesOf(question_.Ask(), question_), kSmall);
}

TEST_F(LookAheadTest, PodsThatRepelEachOtherFillNoNode) {
  FitPod pod{.requests = {{"cpu", 900}}, .labels = {{"app", "a"}}};
  pod.rules.anti_affinity.push_back(Term(Select("app", "a"), "kubernetes.io/hostname"));
  question_.Pods(pod, 1);
  EXPECT_EQ(NodesOf(question_.Ask(), question_), kSmall);
}

}  // namespace
}  // namespace loadline
