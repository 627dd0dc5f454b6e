#include "core/observe/settle_requests.h"

#include <gtest/gtest.h>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

struct SettleCase {
  std::string name;
  int taken_back = 0;  // nodes of the request that we have taken back meanwhile
  int removed = 0;     // nodes that we have removed meanwhile
  bool shrinks = false;
  int failures = 0;    // machines of it that could not be created
  int with_nodes = 0;  // machines of the group with a node at the end
  std::optional<BackOffReason> want;
  bool open = false;  // the request still is
};
class SettleRequestTest : public ::testing::TestWithParam<SettleCase> {};

// The outcome of a request for two nodes more than three, once none is on its way.
TEST_P(SettleRequestTest, OnceNoneIsOnItsWay) {
  const SettleCase& c = GetParam();
  FleetWorld world;
  for (int i = 0; i < 3; ++i) world.group.machines.push_back(MachineWithNode(absl::StrCat("m", i)));
  world.group.target = 3;
  world.Look(0);
  world.Grow(0, 2);
  if (c.failures > 0) {
    for (int i = 0; i < c.failures; ++i) {
      world.group.machines.push_back(FaultyMachine(absl::StrCat("f", i), true));
    }
    world.Look(0);
  }
  FleetOutcomes outcomes;
  for (int i = 0; i < c.removed; ++i) outcomes.removals.push_back({"g", absl::StrCat("m", i)});
  if (c.taken_back > 0) outcomes.taken_back.push_back({"g", c.taken_back});
  world.group.machines.clear();
  for (int i = 0; i < c.with_nodes; ++i) {
    world.group.machines.push_back(MachineWithNode(absl::StrCat("n", i)));
  }
  world.group.target = c.with_nodes;
  world.group.shrinks = c.shrinks;
  const FleetGroupView view = world.Look(1, outcomes);
  EXPECT_EQ(view.back_off.has_value(), c.want.has_value());
  if (c.want.has_value() && view.back_off.has_value()) {
    EXPECT_EQ(view.back_off->reason, *c.want);
  }
  EXPECT_EQ(world.state.groups[FleetKey("g")].request.has_value(), c.open);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, SettleRequestTest,
    ::testing::ValuesIn(std::vector<SettleCase>{
        {.name = "CameTrue", .with_nodes = 5},
        {.name = "TakenBack", .with_nodes = 3, .want = BackOffReason::kCreationFailed},
        {.name = "WeTookAllBack", .taken_back = 2, .with_nodes = 3},
        {.name = "WeTookOneBackAndTheOtherCame", .taken_back = 1, .with_nodes = 4},
        {.name = "WeTookOneBackAndTheCloudTheOther",
         .taken_back = 1,
         .with_nodes = 3,
         .want = BackOffReason::kCreationFailed},
        {.name = "WeRemovedTwoOthers", .removed = 2, .with_nodes = 3},
        {.name = "TakenBackBesideARemoval",
         .removed = 1,
         .with_nodes = 2,
         .want = BackOffReason::kCreationFailed},
        {.name = "ARemovalMayHaveLoweredIt", .shrinks = true, .with_nodes = 3, .open = true},
        {.name = "OneDidNotCome", .failures = 1, .with_nodes = 4, .want = BackOffReason::kOutOfResources}}),
    [](const auto& info) { return info.param.name; });

TEST(SettleRequestsTest, NodesThatDoNotRegisterInTimeMakeTheirGroupBackOffOnce) {
  FleetWorld world;
  world.Look(0);
  world.Grow(0, 2);
  world.group.machines = Machines("m", 2);
  EXPECT_FALSE(world.Look(1).back_off.has_value());
  EXPECT_FALSE(world.Look(14).back_off.has_value());
  FleetView view = world.LookAtAll(16);  // the request was made a minute before the machines were seen
  ASSERT_EQ(view.failures.size(), 1);
  EXPECT_EQ(view.failures[0].group, "g");
  EXPECT_EQ(view.failures[0].back_off.reason, BackOffReason::kTimeout);
  EXPECT_EQ(view.failures[0].back_off.text, "nodes did not register in 15 min");
  EXPECT_EQ(view.failures[0].back_off.until_ms, FleetWorld::At(21));
  EXPECT_EQ(view.groups[0].held, "backs off for 5 min: nodes did not register in 15 min");
  EXPECT_TRUE(view.backs_off);
  view = world.LookAtAll(17);
  EXPECT_TRUE(view.failures.empty());
  EXPECT_EQ(view.groups[0].held, "backs off for 4 min: nodes did not register in 15 min");
}

TEST(SettleRequestsTest, ASuccessForgetsFormerFailures) {
  FleetWorld world;
  world.Look(0);
  FleetOutcomes failed;
  failed.increases.push_back(
      {.group = "g", .result = IncreaseOutcome::Result::kFailed, .nodes = 1, .error = "no"});
  world.Look(0, failed);
  world.Grow(6, 1);
  world.group.machines = {MachineWithNode("m")};
  world.Look(7);
  EXPECT_FALSE(world.state.groups[FleetKey("g")].back_off.has_value());
  EXPECT_EQ(world.Look(8, failed).back_off->duration_ms, 5 * kFleetMinute);
}

TEST(SettleRequestsTest, WhatCameIsNoSuccessOfWhatFailedBesideIt) {
  FleetWorld world;
  world.Look(0);
  world.Grow(0, 2);
  world.group.machines = {MachineWithNode("m"), FaultyMachine("f")};
  const FleetView view = world.LookAtAll(1);
  EXPECT_FALSE(world.state.groups[FleetKey("g")].request.has_value());
  ASSERT_TRUE(view.groups[0].back_off.has_value());
  EXPECT_EQ(view.groups[0].back_off->text, "1 machine could not be created: BROKEN: no machine");
}

TEST(SettleRequestsTest, ARequestOfWhichAllFailHasEndedThere) {
  FleetWorld world;
  world.Look(0);
  world.Grow(0, 2);
  world.group.machines = {FaultyMachine("a"), FaultyMachine("b")};
  EXPECT_EQ(world.LookAtAll(1).failures.size(), 1);
  world.group = GroupOf("g", {});  // they are deleted, and the target is what it was
  EXPECT_TRUE(world.LookAtAll(2).failures.empty());
}

TEST(SettleRequestsTest, AGroupThatIsRefusedForNobodysFaultDoesNotBackOff) {
  FleetWorld world;
  world.Look(0);
  FleetOutcomes outcomes;
  outcomes.increases.push_back({.group = "g", .result = IncreaseOutcome::Result::kRefused, .nodes = 1});
  EXPECT_FALSE(world.Look(0, outcomes).back_off.has_value());
  EXPECT_FALSE(world.LookAtAll(1).cools_down);
}

// The cloud does not say how far its machines are: what it said last becomes neither late nor taken back.
TEST(SettleRequestsTest, AGroupThatCannotBeReadDoesNotBackOff) {
  FleetWorld world;
  world.group = GroupOf("g", Machines("g", 1));
  world.Look(0);
  world.Grow(1, 2);
  world.group.readable = false;
  EXPECT_FALSE(world.Look(17).back_off.has_value());
  world.group.target = 0;
  EXPECT_FALSE(world.Look(18).back_off.has_value());
}

}  // namespace
}  // namespace loadline
