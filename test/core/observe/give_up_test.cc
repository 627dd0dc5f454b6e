#include "core/observe/give_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GiveUpTest, LateMachinesGoInSteps) {
  FleetWorld world;
  world.options.max_deletions = 4;
  world.group = GroupOf("g", Machines("m", 10));
  world.Look(0);
  EXPECT_THAT(world.Look(14).delete_late, IsEmpty());
  EXPECT_THAT(world.Look(15).delete_late, ElementsAre(0, 1, 2, 3));
  // Machines that were given up are not given up again while the cloud has its time, though they are still
  // listed.
  FleetOutcomes outcomes;
  outcomes.given_up = {"m0", "m1", "m2", "m3"};
  world.group.target = 6;
  EXPECT_THAT(world.Look(16, outcomes).delete_late, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(world.Look(20).delete_late, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(world.Look(21).delete_late, ElementsAre(0, 1, 2, 3));
}

TEST(GiveUpTest, DownToTheMinimumOfTheirGroup) {
  FleetWorld world;
  world.group = GroupOf("g", Machines("m", 5));
  world.group.min_nodes = 3;
  world.Look(0);
  EXPECT_THAT(world.Look(15).delete_late, ElementsAre(0, 1));
  world.group.min_nodes = 5;
  EXPECT_THAT(world.Look(15).delete_late, IsEmpty());
  world.group.min_nodes = 0;
  world.group.readable = false;  // it may have to go as a whole
  EXPECT_THAT(world.Look(15).delete_late, IsEmpty());
}

TEST(GiveUpTest, FailedMachinesGoFirstAndAllGroupsShareTheLimit) {
  FleetOptions options = DefaultFleetOptions();
  options.max_deletions = 3;
  FleetObservation observation;
  observation.groups = {GroupOf("a", Machines("late", 1)), GroupOf("b", Machines("b", 4))};
  FleetState state;
  LookAtFleet(&observation, {}, options, FleetWorld::At(0), &state);
  observation.groups[0].machines.push_back(FaultyMachine("failed"));
  observation.groups[0].target = 2;
  const FleetView view = LookAtFleet(&observation, {}, options, FleetWorld::At(15), &state);
  EXPECT_THAT(view.groups[0].delete_failed, ElementsAre(1));
  EXPECT_THAT(view.groups[0].delete_late, ElementsAre(0));
  EXPECT_THAT(view.groups[1].delete_late, ElementsAre(0));
}

// Node objects may vanish all at once, such as from a store that was restored. Pods run on.
TEST(GiveUpTest, AMachineThatOnceHadANodeIsLostAndNotLate) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), MachineWithNode("b")});
  world.Look(0);
  for (FleetMachine& machine : world.group.machines) machine.node.reset();
  world.Look(1);
  EXPECT_EQ(world.Look(15).lost, 0);
  const FleetGroupView view = world.Look(16);
  EXPECT_EQ(view.lost, 2);
  EXPECT_THAT(view.late, IsEmpty());
  EXPECT_THAT(view.delete_late, IsEmpty());
  EXPECT_FALSE(view.back_off.has_value());
}

// A new process cannot read the group, and hears of no machine: what an earlier one knew is not forgotten.
TEST(GiveUpTest, AMachineOfAGroupThatCannotBeReadForSomeTimeIsLostAndNotLate) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), MachineWithNode("b")});
  world.Look(0);
  const FleetGroup well = world.group;
  world.group = GroupOf("g", {});
  world.group.readable = false;
  world.Look(1);
  world.group = well;
  for (FleetMachine& machine : world.group.machines) machine.node.reset();
  world.Look(2);
  const FleetGroupView view = world.Look(17);
  EXPECT_EQ(view.lost, 2);
  EXPECT_THAT(view.late, IsEmpty());
  EXPECT_THAT(view.delete_late, IsEmpty());
}

// Nodes that the cloud does not begin are waited for as long as any others, also where it does not tell of
// them.
TEST(GiveUpTest, NodesOfAGroupThatCannotBeReadAreNotWaitedForForEver) {
  FleetWorld world;
  world.Look(0);
  world.Grow(1, 2);
  world.group.readable = false;
  EXPECT_EQ(world.Look(2).coming, 2);
  EXPECT_EQ(world.Look(18).coming, 0);
}

TEST(GiveUpTest, AFaultOfAMachineThatOnceHadANodeDeletesNothing) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), MachineWithNode("b")});
  world.Look(0);
  world.group.machines[0].node.reset();
  world.group.machines[0].fault = MachineFault{"UNREACHABLE", "no answer"};
  const FleetGroupView view = world.Look(1);
  EXPECT_EQ(view.lost, 1);
  EXPECT_THAT(view.failed, IsEmpty());
  EXPECT_THAT(view.delete_failed, IsEmpty());
}

TEST(GiveUpTest, OneThatIsCreatedAnewUnderTheSameIdCanBeLate) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a")});
  world.Look(0);
  world.group.machines = {Machine("a", MachineState::kCreating)};
  world.Look(1);
  world.group.machines = {Machine("a", MachineState::kRunning)};
  EXPECT_THAT(world.Look(16).delete_late, ElementsAre(0));
}

TEST(GiveUpTest, AMachineWhoseNodeWeRemovedHasHadNone) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), MachineWithNode("b")});
  world.Look(0);
  world.group.machines[0].node.reset();
  FleetOutcomes outcomes;
  outcomes.removals = {{"g", "a"}};
  world.Look(1, outcomes);
  EXPECT_THAT(world.Look(16).delete_late, ElementsAre(0));
}

// Machines that ran before the first look may have nodes by other provider ids than the cloud tells.
TEST(GiveUpTest, InheritedMachinesGoOnlyBesideOnesWithNodes) {
  for (const MachineState machine_state : {MachineState::kRunning, MachineState::kUnknown}) {
    FleetWorld world;
    world.group = GroupOf("g", Machines("m", 2, machine_state));
    world.Look(0);
    EXPECT_EQ(world.Look(15).late.size(), 2);
    EXPECT_THAT(world.Look(15).delete_late, IsEmpty());
    world.group.machines.push_back(MachineWithNode("n"));
    world.group.target = 3;
    EXPECT_THAT(world.Look(16).delete_late, ElementsAre(0, 1));
  }
  FleetWorld world;
  world.group = GroupOf("g", Machines("m", 1, MachineState::kCreating));
  world.Look(0);
  EXPECT_THAT(world.Look(15).delete_late, ElementsAre(0));
  // With a state that was kept, a machine that was not there before is an ordinary one.
  world.group = GroupOf("g", Machines("later", 1, MachineState::kRunning));
  world.Look(20);
  EXPECT_THAT(world.Look(35).delete_late, ElementsAre(0));
}

// Their provider may be of another version, and call machines that run by other ids; and a cloud may leave
// some out.
TEST(GiveUpTest, MachinesThatANewClientFindsAreInherited) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a"), MachineWithNode("b")});
  world.Look(0);
  world.group = GroupOf("g", Machines("other", 2, MachineState::kRunning));
  const FleetObservation first{{world.group}, {}, true};
  LookAtFleet(&first, {}, world.options, FleetWorld::At(1), &world.state);
  EXPECT_EQ(world.Look(16).late.size(), 2);
  EXPECT_THAT(world.Look(16).delete_late, IsEmpty());
  const std::vector<FleetMachine> machines = std::exchange(world.group.machines, {});
  world.Look(17);
  world.group.machines = machines;
  world.Look(18);
  EXPECT_EQ(world.Look(33).late.size(), 2);
  EXPECT_THAT(world.Look(33).delete_late, IsEmpty());
}

TEST(GiveUpTest, WhatTheCloudDoesNotBeginIsTakenBack) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a")});
  world.group.target = 4;
  world.group.min_nodes = 2;
  EXPECT_EQ(world.Look(0).coming, 3);
  EXPECT_EQ(world.Look(14).take_back, 0);
  const FleetGroupView view = world.Look(15);
  EXPECT_EQ(view.coming, 0);
  EXPECT_EQ(view.not_begun, 3);
  EXPECT_EQ(view.take_back, 2);
  EXPECT_EQ(view.back_off->reason, BackOffReason::kTimeout);
  world.group.target = 1;
  EXPECT_EQ(world.Look(16).take_back, 0);
  world.group.target = 2;  // a new time begins
  EXPECT_EQ(world.Look(17).coming, 1);
}

}  // namespace
}  // namespace loadline
