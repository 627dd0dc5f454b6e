#include "core/grow/small_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FitPod Daemon(const std::string& owner, int64_t milli_cpu) {
  FitPod pod{.namespace_name = "kube-system", .requests = {{"cpu", milli_cpu}}};
  pod.traits.owner = PodOwner{"DaemonSet", "apps/v1", owner, "uid-" + owner};
  return pod;
}

// A group of nodes with one core, and one of nodes with four.
class SmallGroupsTest : public ::testing::Test {
 protected:
  StrongVector<GroupIndex, std::string> Hold(const std::vector<FitPod>& daemons, WorkBudget budget = {}) {
    FitCluster cluster;
    problem_.drain.cluster = &cluster.state();
    problem_.groups = {};
    for (const int64_t milli_cpu : {1000, 4000}) {
      FitNode node{.name = "template", .allocatable = {{"cpu", milli_cpu}, {"memory", 16}, {"pods", 110}}};
      if (milli_cpu == 1000) node.taints = small_taints_;
      NodeGroup& group = problem_.groups.emplace_back();
      group.name = milli_cpu == 1000 ? "small" : "large";
      group.model = NodeModel{cluster.Shape(node)};
    }
    problem_.groups[GroupIndex{0}].blocked_reason = small_blocked_;
    problem_.daemons.clear();
    for (const FitPod& daemon : daemons) problem_.daemons.push_back(cluster.Incoming(daemon));
    problem_.names = cluster.names();
    cluster.state().set_resource_names(cluster.names());
    Snapshot snapshot(cluster.state());
    StrongVector<GroupIndex, std::string> held = HoldSmallGroups(&snapshot, &budget, &problem_);
    EXPECT_EQ(snapshot.depth(), 0u);
    EXPECT_EQ(snapshot.node_end(), 0) << "the snapshot is as before";
    return held;
  }
  const std::string& blocked(int32_t group) { return problem_.groups[GroupIndex{group}].blocked_reason; }

  LoopProblem problem_;
  std::vector<Taint> small_taints_;
  std::string small_blocked_;
};

TEST_F(SmallGroupsTest, AGroupWithoutRoomForAllDaemonsIsHeld) {
  EXPECT_THAT(Hold({Daemon("logs", 600), Daemon("net", 400)}), ElementsAre("", ""));
  EXPECT_EQ(blocked(0), "");
  EXPECT_THAT(Hold({Daemon("logs", 600), Daemon("net", 401)}),
              ElementsAre(HasSubstr("no room for all pods of DaemonSets, such as kube-system/net"), ""));
  EXPECT_THAT(blocked(0), HasSubstr("kube-system/net"));
  EXPECT_EQ(blocked(1), "");
  EXPECT_THAT(Hold({Daemon("logs", 5000)}), ElementsAre(HasSubstr("kube-system/logs"), HasSubstr("/logs")));
}

TEST_F(SmallGroupsTest, ADaemonThatDoesNotBelongThereTakesNoRoom) {
  small_taints_ = {{"dedicated", "x", "NoSchedule"}};
  EXPECT_THAT(Hold({Daemon("logs", 600), Daemon("net", 600)}), ElementsAre("", ""));
}

TEST_F(SmallGroupsTest, AnotherReasonStays) {
  small_blocked_ = "back-off";
  EXPECT_THAT(Hold({Daemon("logs", 1001)}), ElementsAre(HasSubstr("kube-system/logs"), ""));
  EXPECT_EQ(blocked(0), "back-off");
}

TEST_F(SmallGroupsTest, WithoutWorkLeftGroupsMayGrow) {
  EXPECT_THAT(Hold({Daemon("logs", 1001)}, WorkBudget(50)), ElementsAre("", ""));
}

}  // namespace
}  // namespace loadline
