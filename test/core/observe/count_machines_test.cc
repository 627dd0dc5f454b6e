#include "core/observe/count_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

FleetMachine UnreadyMachine(const std::string& id, int64_t created_minute) {
  return MachineWithNode(id, FleetNode{.created_ms = FleetWorld::At(created_minute)});
}

TEST(CountMachinesTest, EachMachineOnce) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("ready"), UnreadyMachine("young", 0),
                              UnreadyMachine("old", -15), Machine("coming"), FaultyMachine("failed"),
                              Machine("deleting", MachineState::kDeleting), MachineWithNode("leaving")});
  world.group.machines[6].node->leaving = true;
  world.group.target = 8;
  const FleetGroupView view = world.Look(0);
  EXPECT_THAT(view.started, ElementsAre(0, 2));
  EXPECT_THAT(view.not_started, ElementsAre(1));
  EXPECT_EQ(view.starting, 1);
  EXPECT_EQ(view.coming, 1 + 2);  // one machine, and two that are not listed yet
  EXPECT_EQ(view.unbegun, 2);
  EXPECT_THAT(view.failed, ElementsAre(4));
  EXPECT_EQ(view.live, 6);
  EXPECT_THAT(view.late, IsEmpty());
}

TEST(CountMachinesTest, AMachineThatMayBeBeingDeletedIsPartOfTheTarget) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), Machine("b")});
  world.Look(0);
  FleetOutcomes outcomes;
  outcomes.given_up = {"b"};
  const FleetGroupView view = world.Look(1, outcomes);
  EXPECT_EQ(view.live, 1);
  EXPECT_EQ(view.coming, 0);  // no third one is expected, should the cloud keep it
}

TEST(CountMachinesTest, AGroupHasItsOwnTimes) {
  FleetWorld world;
  world.group = GroupOf("g", {UnreadyMachine("young", 0), Machine("m")});
  world.group.startup_ms = 2 * kFleetMinute;
  world.group.provision_ms = 3 * kFleetMinute;
  world.Look(0);
  EXPECT_EQ(world.Look(1).starting, 1);
  EXPECT_EQ(world.Look(2).starting, 0);
  EXPECT_THAT(world.Look(2).late, IsEmpty());
  EXPECT_THAT(world.Look(3).late, ElementsAre(1));
}

TEST(CountMachinesTest, AFaultIsCountedOnce) {
  FleetWorld world;
  world.group = GroupOf("g", {FaultyMachine("a", true), FaultyMachine("b", true), FaultyMachine("c")});
  FleetView view = world.LookAtAll(0);
  ASSERT_EQ(view.failed_creations.size(), 2);
  EXPECT_EQ(view.failed_creations[0].reason, BackOffReason::kOutOfResources);
  EXPECT_EQ(view.failed_creations[0].machines, 2);
  EXPECT_EQ(view.failed_creations[1].reason, BackOffReason::kCreationFailed);
  EXPECT_EQ(view.failed_creations[1].machines, 1);
  view = world.LookAtAll(1);
  EXPECT_TRUE(view.failed_creations.empty());
  EXPECT_TRUE(view.failures.empty());
}

TEST(CountMachinesTest, NodesOfNoMachine) {
  FleetWorld world;
  world.other_nodes = {ReadyNode(), FleetNode{.created_ms = FleetWorld::At(0)}, FleetNode{.created_ms = 1}};
  EXPECT_THAT(world.LookAtAll(14).other_not_started, ElementsAre(1));
  EXPECT_THAT(world.LookAtAll(15).other_not_started, IsEmpty());
}

}  // namespace
}  // namespace loadline
