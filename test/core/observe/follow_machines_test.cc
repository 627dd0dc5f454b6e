#include "core/observe/follow_machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::SizeIs;

// Machines `first` to `last` - 1, each with a code of its own; every third one says that there are no
// machines.
std::vector<FleetMachine> OwnCodes(const std::string& prefix, int first, int last) {
  std::vector<FleetMachine> machines;
  for (int i = first; i < last; ++i) {
    machines.push_back(Machine(absl::StrCat(prefix, i)));
    machines.back().fault = MachineFault{absl::StrCat("REQUEST-", i), absl::StrCat("text ", i), i % 3 == 0};
  }
  return machines;
}

TEST(FollowMachinesTest, FaultsCountByCodeWithTheFirstMessage) {
  FleetWorld world;
  world.Look(0);
  world.group.machines = OwnCodes("m", 1, 3);
  world.group.machines.push_back(Machine("again"));
  world.group.machines.back().fault = MachineFault{"REQUEST-1", "another text", false};
  world.group.machines.push_back(Machine("out"));
  world.group.machines.back().fault = MachineFault{"REQUEST-1", "none left", true};
  const FleetView view = world.LookAtAll(1);
  ASSERT_THAT(view.failures, SizeIs(3));
  EXPECT_EQ(view.failures[0].back_off.text, "2 machines could not be created: REQUEST-1: text 1");
  EXPECT_EQ(view.failures[1].back_off.text, "1 machine could not be created: REQUEST-2: text 2");
  EXPECT_EQ(view.failures[2].back_off.text, "1 machine could not be created: REQUEST-1: none left");
  EXPECT_EQ(view.failures[2].back_off.reason, BackOffReason::kOutOfResources);
}

// A cloud may give each of its answers a code of its own. The report, and so the work for each machine, does
// not grow with them; no machine is forgotten.
TEST(FollowMachinesTest, CodesThatAreAllDifferentAreCountedTogether) {
  FleetWorld world;
  world.Look(0);
  world.group.machines = OwnCodes("m", 0, 3'000);
  world.Grow(0, 3'000);
  const FleetView view = world.LookAtAll(1);
  ASSERT_THAT(view.failures, SizeIs(kMostFaultCodes + 2));
  // 1,000 are of resources. 64 codes are counted apart, of which 22 (0, 3, ..., 63) are.
  EXPECT_EQ(view.failures[0].back_off.text,
            "1958 machines could not be created, such as by REQUEST-64: text 64");
  EXPECT_EQ(view.failures[0].back_off.reason, BackOffReason::kCreationFailed);
  EXPECT_EQ(view.failures[1].back_off.text,
            "978 machines could not be created, such as by REQUEST-66: text 66");
  EXPECT_EQ(view.failures[1].back_off.reason, BackOffReason::kOutOfResources);
  EXPECT_EQ(view.failures[2].back_off.text, "1 machine could not be created: REQUEST-0: text 0");
  EXPECT_EQ(view.groups[0].back_off->text, "1 machine could not be created: REQUEST-63: text 63");
  int64_t machines = 0;
  for (const FailedCreations& failed : view.failed_creations) machines += failed.machines;
  EXPECT_EQ(machines, 3'000);
  EXPECT_FALSE(world.state.groups[FleetKey("g")].request.has_value());  // none of them is waited for
}

TEST(FollowMachinesTest, CodesOfAllGroupsHaveABoundToo) {
  FleetObservation observation;
  for (int i = 0; i < 100; ++i) {
    observation.groups.push_back(GroupOf(absl::StrCat("g", i), OwnCodes(absl::StrCat("g", i, "-"), 0, 70)));
  }
  FleetState state;
  const FleetView view = LookAtFleet(&observation, {}, DefaultFleetOptions(), FleetWorld::At(0), &state);
  EXPECT_THAT(view.failures, SizeIs(kMostFaultCodesOfAll + 2 * 100));
  int64_t machines = 0;
  for (const FailedCreations& failed : view.failed_creations) machines += failed.machines;
  EXPECT_EQ(machines, 7'000);
  for (const FleetGroupView& group : view.groups) EXPECT_TRUE(group.back_off.has_value());
}

}  // namespace
}  // namespace loadline
