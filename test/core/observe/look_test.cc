// Many looks at random fleets: what holds at each of them, and that a restart forgets nothing.
#include "core/observe/look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/observe/state_bytes.h"
#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

class RandomFleet {
 public:
  explicit RandomFleet(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) observation_.groups.push_back(GroupOf(absl::StrCat("g", i), {}));
  }

  // The cloud and the cluster go on by a minute.
  const FleetObservation& Next(int64_t minute) {
    for (FleetGroup& group : observation_.groups) {
      if (Draw(4) == 0 && group.machines.size() < 12) {
        group.machines.push_back(Draw(5) == 0 ? FaultyMachine(NewId(), Draw(2) == 0) : Machine(NewId()));
        ++group.target;
      }
      for (FleetMachine& machine : group.machines) Step(minute, &machine);
      std::erase_if(group.machines, [&](const FleetMachine& machine) {
        return machine.state == MachineState::kDeleting && Draw(2) == 0;
      });
      group.target = std::max<int64_t>(0, group.target + Draw(3) / 2 - Draw(3) / 2);
      group.min_nodes = Draw(3);
      group.readable = Draw(8) > 0;
    }
    return observation_;
  }

  // The machines that are given up are deleted, or not, and the client says so.
  FleetOutcomes Act(const FleetView& view) {
    FleetOutcomes outcomes;
    for (size_t i = 0; i < view.groups.size(); ++i) {
      FleetGroup& group = observation_.groups[i];
      for (const std::vector<int32_t>* list : {&view.groups[i].delete_failed, &view.groups[i].delete_late}) {
        for (const int32_t position : *list) {
          outcomes.given_up.push_back(group.machines[static_cast<size_t>(position)].id);
          if (Draw(2) == 0) group.machines[static_cast<size_t>(position)].state = MachineState::kDeleting;
          --group.target;
        }
      }
      group.target -= view.groups[i].take_back;
      if (Draw(6) == 0 && !view.groups[i].back_off.has_value()) {
        outcomes.increases.push_back(
            {.group = group.name,
             .result = Draw(3) == 0 ? IncreaseOutcome::Result::kFailed : IncreaseOutcome::Result::kGranted,
             .from = group.target,
             .nodes = 2,
             .error = "no"});
        if (outcomes.increases.back().result == IncreaseOutcome::Result::kGranted) group.target += 2;
      }
    }
    return outcomes;
  }

  const std::set<std::string>& had_node() const { return had_node_; }

 private:
  int64_t Draw(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }
  std::string NewId() { return absl::StrCat("m", ++machines_); }

  void Step(int64_t minute, FleetMachine* machine) {
    if (machine->state == MachineState::kCreating && !machine->fault.has_value() && Draw(6) == 0) {
      machine->state = Draw(4) == 0 ? MachineState::kUnknown : MachineState::kRunning;
    } else if (machine->state == MachineState::kRunning && Draw(5) == 0) {
      machine->node = FleetNode{.created_ms = FleetWorld::At(minute), .ready = Draw(2) == 0};
      had_node_.insert(machine->id);
    } else if (machine->node.has_value() && Draw(12) == 0) {
      machine->node.reset();
    } else if (Draw(40) == 0) {
      machine->state = MachineState::kDeleting;
    }
  }

  std::mt19937_64 random_;
  FleetObservation observation_;
  std::set<std::string> had_node_;
  int machines_ = 0;
};

// The invariants that hold whatever the cloud does.
void CheckView(const FleetObservation& observation, const FleetOptions& options, const FleetView& view,
               const std::set<std::string>& had_node) {
  int64_t deletions = 0;
  for (size_t i = 0; i < view.groups.size(); ++i) {
    const FleetGroup& group = observation.groups[i];
    const FleetGroupView& of = view.groups[i];
    for (const std::vector<int32_t>* list : {&of.delete_failed, &of.delete_late}) {
      deletions += static_cast<int64_t>(list->size());
      for (const int32_t position : *list) {
        const FleetMachine& machine = group.machines[static_cast<size_t>(position)];
        EXPECT_FALSE(machine.node.has_value());
        EXPECT_FALSE(had_node.contains(machine.id)) << "a machine that once had a node is deleted";
      }
    }
    const int64_t fewer =
        static_cast<int64_t>(of.delete_failed.size() + of.delete_late.size()) + of.take_back;
    EXPECT_TRUE(fewer == 0 || group.target - fewer >= group.min_nodes);
    EXPECT_TRUE(fewer == 0 || group.readable);
    int64_t leaving = 0;
    for (const FleetMachine& machine : group.machines) {
      leaving += machine.node.has_value() && machine.node->leaving ? 1 : 0;
    }
    EXPECT_LE(static_cast<int64_t>(of.started.size()) + of.starting + leaving, of.live);
  }
  EXPECT_LE(deletions, options.max_deletions);
}

// A client that keeps the bytes only continues like one that never ended.
TEST(LookTest, ARestartForgetsNothing) {
  FleetOptions options = DefaultFleetOptions();
  options.max_deletions = 3;
  int64_t given_up = 0, failures = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomFleet fleet(seed);
    FleetState state;
    FleetOutcomes outcomes;
    for (int64_t minute = 0; minute < 60; ++minute) {
      const FleetObservation& observation = fleet.Next(minute);
      absl::StatusOr<FleetState> restarted = DecodeFleetState(EncodeFleetState(state));
      ASSERT_TRUE(restarted.ok()) << restarted.status();
      const FleetView again =
          LookAtFleet(&observation, outcomes, options, FleetWorld::At(minute), &*restarted);
      const FleetView view = LookAtFleet(&observation, outcomes, options, FleetWorld::At(minute), &state);
      ASSERT_TRUE(*restarted == state);
      ASSERT_EQ(again.failures.size(), view.failures.size());
      CheckView(observation, options, view, fleet.had_node());
      failures += static_cast<int64_t>(view.failures.size());
      outcomes = fleet.Act(view);
      given_up += static_cast<int64_t>(outcomes.given_up.size());
    }
  }
  EXPECT_GT(given_up, 100);
  EXPECT_GT(failures, 100);
}

TEST(LookTest, OutcomesAloneNameTheirGroupsOnly) {
  FleetWorld world;
  world.LookAtAll(0);
  FleetOutcomes outcomes;
  outcomes.increases.push_back({.group = "z", .nodes = 1});
  outcomes.increases.push_back(
      {.group = "g", .result = IncreaseOutcome::Result::kFailed, .nodes = 1, .error = "quota"});
  const FleetView view = LookAtFleet(nullptr, outcomes, world.options, FleetWorld::At(0), &world.state);
  ASSERT_EQ(view.groups.size(), 2);
  EXPECT_EQ(view.groups[0].name, "g");
  EXPECT_EQ(view.groups[0].held, "backs off for 5 min: quota");
  EXPECT_EQ(view.groups[1].name, "z");
  EXPECT_EQ(view.groups[1].held, "");
  EXPECT_TRUE(view.cools_down);
  EXPECT_TRUE(view.backs_off);
}

TEST(LookTest, AGroupThatIsLeftOutForAMomentStillBacksOff) {
  FleetWorld world;
  FleetOutcomes outcomes;
  outcomes.increases.push_back({.group = "g", .result = IncreaseOutcome::Result::kFailed, .nodes = 1});
  world.LookAtAll(0, outcomes);
  const FleetObservation nothing;
  EXPECT_TRUE(LookAtFleet(&nothing, {}, world.options, FleetWorld::At(1), &world.state).backs_off);
  EXPECT_TRUE(world.Look(2).back_off.has_value());
  LookAtFleet(&nothing, {}, world.options, FleetWorld::At(181), &world.state);
  EXPECT_TRUE(world.state.groups.empty());
}

// A clock that is set back, or a state that somebody made up, holds nothing for long.
TEST(LookTest, NoTimeLiesInTheFuture) {
  FleetWorld world;
  FleetOutcomes outcomes;
  outcomes.increases.push_back({.group = "g", .result = IncreaseOutcome::Result::kFailed, .nodes = 1});
  outcomes.tainting_failed = true;
  world.LookAtAll(1'000, outcomes);
  EXPECT_FALSE(world.LookAtAll(0).cools_down);
  EXPECT_EQ(world.Look(0).back_off->until_ms, FleetWorld::At(30));
  EXPECT_FALSE(world.Look(30).back_off.has_value());
  world.group = GroupOf("g", Machines("m", 1));
  world.Look(1'000);
  EXPECT_THAT(world.Look(0).late, ElementsAre());
  EXPECT_THAT(world.Look(15).late, ElementsAre(0));
}

}  // namespace
}  // namespace loadline
