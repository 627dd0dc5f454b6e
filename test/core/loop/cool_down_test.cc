// Groups that cool down by themselves: --scale-down-delay-type-local.
#include "core/loop/cool_down.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/drain/node_reason.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two groups, each with one empty node.
class CoolDownTest : public LoopTest {
 protected:
  CoolDownTest() {
    problem_.decisions.scale_down = true;
    AddGroup("g", 1000, 1, /*target=*/1);
    AddGroup("h", 1000, 1, /*target=*/1);
    nodes_ = {{NodeOf("a", 1000), {}, GroupIndex{0}}, {NodeOf("b", 1000), {}, GroupIndex{1}}};
    for (TestNode& node : nodes_) node.node.traits.ready = true;
  }

  std::vector<std::string> Started(const LoopPlan& plan) const {
    std::vector<std::string> started;
    const std::vector<std::string> all = Removed(plan);
    for (size_t i = 0; i < all.size(); ++i) {
      if (plan.scale_down.remove[i].start) started.push_back(all[i]);
    }
    return started;
  }
};

TEST_F(CoolDownTest, OnlyNodesOfThatGroupStay) {
  EXPECT_THAT(Started(Plan()), UnorderedElementsAre("a", "b"));
  drain_ = {};
  problem_.groups[GroupIndex{0}].stays_until_s = kLoopNow + 60;
  const LoopPlan plan = Plan();
  EXPECT_THAT(Removed(plan), UnorderedElementsAre("a", "b")) << "its timer goes on";
  EXPECT_THAT(Started(plan), ElementsAre("b"));
  for (const DrainRemoval& removal : plan.scale_down.remove) {
    if (removal.start) continue;
    EXPECT_EQ(removal.waits, NodeReason::kNotUnneededLongEnough);
    EXPECT_EQ(removal.since_s, kLoopNow);
    EXPECT_EQ(removal.ready_at_s, kLoopNow + 60);
  }
}

TEST_F(CoolDownTest, TheLongerOfDelayAndTimerIsTold) {
  problem_.groups[GroupIndex{0}].unneeded_time_s = 600;
  problem_.groups[GroupIndex{0}].stays_until_s = kLoopNow + 60;
  nodes_.pop_back();
  const LoopPlan plan = Plan();
  ASSERT_EQ(plan.scale_down.remove.size(), 1u);
  EXPECT_EQ(plan.scale_down.remove[0].ready_at_s, kLoopNow + 601);
}

TEST_F(CoolDownTest, NodesThatASizeRemovesStayAsWell) {
  DrainProblem drain;
  drain.groups = problem_.groups;
  drain.groups[GroupIndex{0}].stays_until_s = kLoopNow + 60;
  drain.group_of = GroupsBySlot({GroupIndex{0}, GroupIndex{1}});
  drain.chosen = {Slot{0}, Slot{1}};
  HoldNodesThatCoolDown(&drain);
  EXPECT_THAT(drain.chosen, ElementsAre(Slot{1}));
  drain.groups[GroupIndex{1}].stays_until_s = kLoopNow + 60;
  HoldNodesThatCoolDown(&drain);
  EXPECT_THAT(drain.chosen, IsEmpty());
}

}  // namespace
}  // namespace loadline
