#include "core/removal/removal_pods.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace loadline {
namespace {

constexpr int64_t kAskedS = 10'000;

struct PodCase {
  std::string name;
  RemovalPod pod;
  bool unexpected = false;  // it keeps the node at the first look
  bool goes = false;        // it is evicted, or waited for
  bool lost = false;        // it keeps the node at the last look
};

class RemovalPodsTest : public ::testing::TestWithParam<PodCase> {};

TEST_P(RemovalPodsTest, IsJudged) {
  const PodCase& c = GetParam();
  const std::vector<RemovalPod> pods = {c.pod};
  EXPECT_EQ(Unexpected(pods, kAskedS).has_value(), c.unexpected);
  EXPECT_EQ(PodsToGo({}, /*empty=*/false, pods, kAskedS).size(), c.goes ? 1 : 0);
  EXPECT_EQ(WouldBeLost(pods, kAskedS).has_value(), c.lost);
}

// By the rules of Cluster Autoscaler's actuator and drain package, and ours of placeholders.
INSTANTIATE_TEST_SUITE_P(
    Cases, RemovalPodsTest,
    ::testing::ValuesIn(std::vector<PodCase>{
        {"Planned", {}, false, true, true},
        {"Left", {.planned = PlannedPod::kStays}, true, false, true},
        {"New", {.planned = PlannedPod::kNew}, true, false, true},
        {"Changed", {.planned = PlannedPod::kChanged}, true, false, true},
        {"NewMirror", {.planned = PlannedPod::kNew, .mirror = true}, false, false, false},
        {"NewFinished", {.planned = PlannedPod::kNew, .finished = true}, false, false, false},
        {"NewPlaceholder", {.planned = PlannedPod::kNew, .placeholder = true}, false, true, true},
        {"NewExpendable", {.planned = PlannedPod::kNew, .priority = -11}, false, true, false},
        {"NewOfTheCutoff", {.planned = PlannedPod::kNew, .priority = -10}, true, false, true},
        {"NewDaemonSet", {.planned = PlannedPod::kNew, .daemon_set = true}, false, true, false},
        {"DaemonSetThatRefuses",
         {.planned = PlannedPod::kNew, .daemon_set = true, .evict_daemon_set = false},
         false,
         false,
         false},
        {"Ends", {.deleted_s = kAskedS}, false, true, true},
        {"EndsFor60S", {.deleted_s = kAskedS - 60}, false, true, true},
        {"ShouldHaveEnded", {.planned = PlannedPod::kNew, .deleted_s = kAskedS - 61}, false, false, false},
        {"MayEndForLonger", {.grace_s = 40, .deleted_s = kAskedS - 61}, false, true, true},
    }),
    [](const auto& info) { return info.param.name; });

TEST(RemovalPodsTest, WhatAPodStatesIsBoundedAndNoPodThatEndsIsEvicted) {
  RemovalPod longest;
  longest.grace_s = 3600;
  RemovalPod ends;
  ends.deleted_s = kAskedS;
  const std::vector<PodRemoval> go = PodsToGo({}, /*empty=*/false, std::vector{longest, ends}, kAskedS);
  EXPECT_EQ(go[0].grace_s, 600);
  EXPECT_FALSE(go[0].accepted);
  EXPECT_TRUE(go[1].accepted);
}

TEST(RemovalPodsTest, NobodyWaitsForAnExpendablePod) {
  RemovalPod expendable;
  expendable.priority = -11;
  const std::vector<PodRemoval> go = PodsToGo({}, /*empty=*/true, {{RemovalPod(), expendable}}, kAskedS);
  ASSERT_EQ(go.size(), 2);
  EXPECT_FALSE(go[0].best_effort);
  EXPECT_TRUE(go[1].best_effort);
}

TEST(RemovalPodsTest, DaemonSetsOfEmptyNodesStayByDefault) {
  RemovalPod daemon;
  daemon.daemon_set = true;
  EXPECT_TRUE(PodsToGo({}, /*empty=*/true, std::vector{daemon}, kAskedS).empty());
  daemon.evict_daemon_set = true;
  EXPECT_TRUE(PodsToGo({}, /*empty=*/true, std::vector{daemon}, kAskedS)[0].best_effort);
}

}  // namespace
}  // namespace loadline
