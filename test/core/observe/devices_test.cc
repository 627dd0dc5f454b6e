#include "core/observe/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/observe/fleet_state.h"
#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const uint64_t kFleetGpu = FleetKey("nvidia.com/gpu"), kFleetNic = FleetKey("example.com/nic");

struct DevicesCase {
  std::string name;
  std::vector<uint64_t> known;
  std::vector<uint64_t> from_template;
  int old_with = 0, old_without = 0, young_with = 0, young_without = 0;
  std::vector<uint64_t> want;
};
class DevicesOfGroupTest : public ::testing::TestWithParam<DevicesCase> {};

TEST_P(DevicesOfGroupTest, OfTemplateAndNodes) {
  const DevicesCase& c = GetParam();
  FleetGroup group;
  group.template_devices = c.from_template;
  const auto add = [&](int count, int64_t age_minutes, const std::vector<uint64_t>& devices) {
    for (int i = 0; i < count; ++i) {
      group.machines.push_back(
          MachineWithNode(absl::StrCat(group.machines.size()),
                          ReadyNode(FleetWorld::At(0) - age_minutes * kFleetMinute, devices)));
    }
  };
  add(c.old_with, 15, {kFleetGpu});
  add(c.old_without, 15, {});
  add(c.young_with, 14, {kFleetGpu});
  add(c.young_without, 14, {});
  EXPECT_EQ(DevicesOfGroup(c.known, group, DefaultFleetOptions(), FleetWorld::At(0)), c.want);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, DevicesOfGroupTest,
    ::testing::ValuesIn(std::vector<DevicesCase>{
        {.name = "Nothing"},
        {.name = "Template", .from_template = {kFleetGpu}, .want = {kFleetGpu}},
        {.name = "KnownWhileThereIsNoNode", .known = {kFleetGpu}, .want = {kFleetGpu}},
        {.name = "KnownWhileAllNodesAreYoung", .known = {kFleetGpu}, .young_without = 2, .want = {kFleetGpu}},
        {.name = "KnownIsForgottenWithNodes", .known = {kFleetGpu}, .old_without = 1},
        {.name = "ANodeShowsIt", .young_with = 1, .want = {kFleetGpu}},
        {.name = "YoungNodesHaveTime", .from_template = {kFleetGpu}, .young_without = 3, .want = {kFleetGpu}},
        {.name = "OldNodesHaveHadIt", .from_template = {kFleetGpu}, .old_without = 1},
        {.name = "OneOldNodeShowsTheTemplateRight",
         .from_template = {kFleetGpu},
         .old_with = 1,
         .old_without = 5,
         .want = {kFleetGpu}},
        {.name = "HalfOfTheNodesAreNotEnough", .old_with = 2, .old_without = 2},
        {.name = "MoreThanHalfAre", .old_with = 3, .old_without = 2, .want = {kFleetGpu}},
        {.name = "YoungNodesWithoutItDoNotCount", .old_with = 1, .young_without = 5, .want = {kFleetGpu}}}),
    [](const auto& info) { return info.param.name; });

TEST(DevicesTest, ANodeLacksWhatOthersOffer) {
  std::vector<uint64_t> both = {kFleetGpu, kFleetNic};
  std::sort(both.begin(), both.end());
  EXPECT_FALSE(LacksDevices(ReadyNode(), {}));
  EXPECT_TRUE(LacksDevices(ReadyNode(), {kFleetGpu}));
  EXPECT_TRUE(LacksDevices(ReadyNode(1, {kFleetGpu}), both));
  EXPECT_FALSE(LacksDevices(ReadyNode(1, both), {kFleetGpu}));
}

TEST(DevicesTest, ANodeOfUnknownAgeIsNotYoung) {
  EXPECT_FALSE(IsYoung(0, 15 * kFleetMinute, kFleetMinute));
  EXPECT_TRUE(IsYoung(1, 15 * kFleetMinute, 15 * kFleetMinute));
  EXPECT_FALSE(IsYoung(1, 15 * kFleetMinute, 15 * kFleetMinute + 1));
}

// A client states any time: products and differences of these stay in range.
TEST(DevicesTest, TimesBeyondAllBoundsAreCut) {
  EXPECT_EQ(MillisecondsOf(7), 7'000);
  EXPECT_EQ(MillisecondsOf(std::numeric_limits<int64_t>::min()), 0);
  EXPECT_EQ(MillisecondsOf(std::numeric_limits<int64_t>::max()), (int64_t{1} << 62) / 1000 * 1000);
}

// Cluster Autoscaler's issues 1659, 3164 and 7956: a node whose GPU is not there yet is on its way.
TEST(DevicesTest, ANodeThatWaitsForItsDevicesHasNotStarted) {
  FleetWorld world;
  world.group.template_devices = {kFleetGpu};
  world.group.machines = {MachineWithNode("m", ReadyNode(FleetWorld::At(0)))};
  world.group.target = 1;
  FleetGroupView view = world.Look(14);
  EXPECT_EQ(view.starting, 1);
  EXPECT_THAT(view.not_started, ElementsAre(0));
  EXPECT_THAT(view.lacking, ElementsAre(0));
  EXPECT_THAT(view.started, IsEmpty());
  // Once it has had its time it counts as it is, whatever the cloud says.
  view = world.Look(15);
  EXPECT_EQ(view.starting, 0);
  EXPECT_THAT(view.started, ElementsAre(0));
  EXPECT_THAT(view.lacking, IsEmpty());
  world.group.machines[0].node->devices = {kFleetGpu};
  EXPECT_THAT(world.Look(16).started, ElementsAre(0));
}

TEST(DevicesTest, WhatNodesShowedIsRememberedWhileThereIsNone) {
  FleetWorld world;
  world.group.machines = {MachineWithNode("m", ReadyNode(1, {kFleetGpu}))};
  world.Look(0);
  world.group.machines = {};
  world.group.target = 0;
  world.Look(1);
  world.group.machines = {MachineWithNode("n", ReadyNode(FleetWorld::At(2)))};
  world.group.target = 1;
  EXPECT_EQ(world.Look(2).starting, 1);
}

}  // namespace
}  // namespace loadline
