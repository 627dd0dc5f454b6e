#include "core/grow/why_no_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loadline {
namespace {

// Eight groups, each kept by something else.
class WhyNoGrowthTest : public ::testing::Test {
 protected:
  WhyNoGrowthTest() {
    seen_.groups.resize(8);
    findings_.groups.resize(8);
    findings_.fleet.groups.resize(8);
    problem_.groups.resize(8);
    for (const GroupIndex group : problem_.groups.indices()) {
      findings_.groups[group].room = 2;
      problem_.groups[group].model.emplace();
      problem_.groups[group].usd_per_hour = 1;
    }
    seen_.groups[GroupIndex{0}].problem = "no answer";
    findings_.fleet.groups[1].back_off.emplace();
    problem_.groups[GroupIndex{2}].sized = true;
    findings_.groups[GroupIndex{3}].held = "grows by all of its 5 nodes or none, and 4 may be added";
    plan_.growth.push_back({.group = GroupIndex{4}, .for_pods = 1, .for_slack = 1});
    problem_.groups[GroupIndex{5}].usd_per_hour.reset();
    plan_.at_maximum.push_back({GroupIndex{6}, {"cpu", "memory"}});
  }

  LoopObservation seen_;
  LoopFindings findings_;
  LoopProblem problem_;
  LoopPlan plan_;
};

TEST_F(WhyNoGrowthTest, NamesWhatHoldsEachGroup) {
  const StrongVector<GroupIndex, GrowthHold> want = {GrowthHold::kOptionsUnknown,
                                                     GrowthHold::kBacksOff,
                                                     GrowthHold::kSized,
                                                     GrowthHold::kHeld,
                                                     GrowthHold::kAtMaximum,
                                                     GrowthHold::kUnpriced,
                                                     GrowthHold::kMaximumOfCluster,
                                                     GrowthHold::kNothing};
  for (const GroupIndex group : want.indices()) {
    EXPECT_EQ(HoldOf(seen_, findings_, problem_, plan_, group), want[group]) << "group " << IndexOf(group);
  }
}

// A ranking needs no price.
TEST_F(WhyNoGrowthTest, RankedGroupsNeedNoPrice) {
  problem_.ranking.emplace();
  EXPECT_EQ(HoldOf(seen_, findings_, problem_, plan_, GroupIndex{5}), GrowthHold::kNothing);
  problem_.groups[GroupIndex{5}].model.reset();
  EXPECT_EQ(HoldOf(seen_, findings_, problem_, plan_, GroupIndex{5}), GrowthHold::kUnpriced);
}

TEST_F(WhyNoGrowthTest, SaysItInASentence) {
  EXPECT_EQ(
      WhyNoGrowth(seen_, findings_, problem_, plan_),
      "1 new nodes do not take it, 1 backs off after failed scale-up, 1 grows by all of its nodes or none, "
      "and so many may not be added, 1 max node group size reached, 1 no price or template known, 1 sized "
      "by utilization, 1 cannot be read, 1 max cluster cpu, memory limit reached");
  plan_.at_maximum = {
      {GroupIndex{6},
       {"cpu of CapacityQuota/q", "cpu", "nodes of CapacityQuota/q", "cpu of CapacityQuota/a"}}};
  EXPECT_THAT(std::string(WhyNoGrowth(seen_, findings_, problem_, plan_)),
              ::testing::EndsWith("1 cannot be read, 1 exceeded quota: \"CapacityQuota/a\", resources: cpu, "
                                  "1 exceeded quota: \"CapacityQuota/q\", resources: cpu, nodes, "
                                  "1 max cluster cpu limit reached"));
  findings_.held = "the cluster may have 3 nodes in all";
  EXPECT_EQ(WhyNoGrowth(seen_, findings_, problem_, plan_), findings_.held);
  EXPECT_EQ(WhyNoGrowth({}, {}, {}, {}), "there is no node group");
}

TEST_F(WhyNoGrowthTest, SaysWhatNewNodesRefuse) {
  problem_.groups.resize(3);
  seen_.groups = {{}, {}, {}};
  findings_.fleet.groups[1].back_off.reset();
  problem_.groups[GroupIndex{2}].sized = false;
  plan_.at_maximum.clear();
  RefusedPods refused{0, StrongVector<GroupIndex, std::optional<PodRefusal>>(3)};
  refused.by_group[GroupIndex{0}] = {
      0, Refusal(FilterName::kNodeResourcesFit, StatusClass::kUnschedulable, {"Insufficient cpu"})};
  refused.by_group[GroupIndex{1}] = refused.by_group[GroupIndex{0}];
  EXPECT_EQ(WhyNoGrowth(seen_, findings_, problem_, plan_, &refused),
            "2 Insufficient cpu, 1 new nodes would take it in a later plan");
  refused.by_group[GroupIndex{1}]->daemons_in_the_way = true;
  refused.by_group[GroupIndex{1}]->daemon = "kube-system/agent";
  refused.by_group[GroupIndex{2}] = {0, CannotJudge(FilterName::kVolumeBinding, "no claim")};
  EXPECT_EQ(
      WhyNoGrowth(seen_, findings_, problem_, plan_, &refused),
      "1 Insufficient cpu, 1 Insufficient cpu beside the pods of DaemonSets that each new node has, such "
      "as kube-system/agent, 1 cannot be judged: no claim");
}

}  // namespace
}  // namespace loadline
