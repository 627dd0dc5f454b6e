#include "core/observe/state_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

FleetState EverythingState() {
  FleetState state;
  state.looked = true;
  state.grown_ms = kFleetStart;
  state.taint_failed_ms = kFleetStart - 5;
  GroupMemory& group = state.groups[FleetKey("g")];
  group.target = 0;
  group.short_since_ms = kFleetStart;
  group.request = OpenRequest{-3, 7, kFleetStart + 900'000};
  group.back_off =
      BackOff{BackOffReason::kOutOfResources, "none \xe2\x82\xac", kFleetStart, kFleetStart + 1, 1};
  group.devices = {1, UINT64_MAX};
  state.groups[FleetKey("grown")].grown_ms = kFleetStart - 1;
  state.groups[FleetKey("shrunk")].deleted_ms = kFleetStart - 2;
  state.groups[FleetKey("empty")];
  state.machines[1] = {.had_node = true};
  state.machines[UINT64_MAX] = {.inherited = true, .missing_since_ms = kFleetStart};
  state.machines[7] = {.had_node = true, .faulty = true, .given_up_ms = 0};
  return state;
}

// 1,000 groups that back off, and 1,000 machines on their way beside 1,000 with nodes.
FleetState LargeState() {
  FleetState state;
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    GroupMemory& group = state.groups[random()];
    group = EverythingState().groups[FleetKey("g")];
    group.back_off->text = std::string(kMostBackOffText, 'x');
    group.request->until_ms = group.back_off->until_ms = kFleetStart + 900'000;
    group.devices = {1, 2, 3, 4};
    state.machines[random()] = {
        .inherited = true, .missing_since_ms = kFleetStart, .given_up_ms = kFleetStart};
    state.machines[random()] = {.had_node = true};
  }
  return state;
}

TEST(StateBytesTest, WhatIsWrittenIsRead) {
  const FleetState state = EverythingState();
  const absl::StatusOr<FleetState> read = DecodeFleetState(EncodeFleetState(state));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == state);
  const absl::StatusOr<FleetState> empty = DecodeFleetState(EncodeFleetState({}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(*empty == FleetState());
}

// The first bytes tell what it is and must never change; the rest belongs to version 1.
TEST(StateBytesTest, BytesOfVersion1) {
  FleetState state;
  state.looked = true;
  state.deleted_ms = 299;
  state.machines[0x0102] = {.had_node = true};
  const std::string payload =
      std::string("\x01\x00\xac\x02\x00\x00\x00\x01", 8) + std::string("\x02\x01\0\0\0\0\0\0", 8);
  std::string header = "LLFS\x01";
  for (int i = 0; i < 8; ++i) header.push_back(static_cast<char>(FleetKey(payload) >> (8 * i) & 0xff));
  EXPECT_EQ(EncodeFleetState(state), header + payload);
}

TEST(StateBytesTest, HasABound) {
  const std::string bytes = EncodeFleetState(LargeState());
  EXPECT_LE(bytes.size(), size_t{256} << 10);
  const absl::StatusOr<FleetState> read = DecodeFleetState(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->groups.size(), 1000);
  EXPECT_EQ(read->groups.begin()->second.back_off->text, std::string(kMostBackOffTexts / 1000, 'x'));
}

TEST(StateBytesTest, OfTooManyMachinesTheEarliestAreKept) {
  FleetState state;
  for (uint64_t i = 0; i < 50'000; ++i) {
    state.machines[2 * i] = {.had_node = true};
    state.machines[2 * i + 1] = {.missing_since_ms = static_cast<int64_t>(100'000 - i)};
  }
  const std::string bytes = EncodeFleetState(state);
  EXPECT_LE(bytes.size(), kMostFleetStateBytes);
  const absl::StatusOr<FleetState> read = DecodeFleetState(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->machines.size(), kMostMachinesUnderWay + kMostMachinesWithNodes);
  EXPECT_FALSE(read->machines.contains(1));
  EXPECT_TRUE(read->machines.contains(2 * 49'999 + 1));
}

// The most groups, with all that is remembered of one, beside the most machines.
TEST(StateBytesTest, TheLargestStateCanBeRead) {
  FleetState state;
  GroupMemory group = EverythingState().groups[FleetKey("g")];
  group.grown_ms = group.deleted_ms = kFleetStart;
  group.back_off->text = std::string(kMostBackOffText, 'x');
  for (uint64_t i = 0; i < kMostStateGroups; ++i) state.groups[i << 48] = group;
  for (uint64_t i = 0; i < 50'000; ++i) {
    state.machines[i << 40] = {.had_node = true};
    state.machines[(i << 40) + 1] = {
        .inherited = true, .missing_since_ms = kFleetStart, .given_up_ms = kFleetStart};
  }
  const std::string bytes = EncodeFleetState(state);
  EXPECT_LE(bytes.size(), kMostFleetStateBytes);
  EXPECT_TRUE(DecodeFleetState(bytes).ok());
}

TEST(StateBytesTest, ForeignNewerAndDamagedBytesAreRefused) {
  const std::string good = EncodeFleetState(EverythingState());
  const auto why = [](absl::string_view bytes) {
    const absl::StatusOr<FleetState> state = DecodeFleetState(bytes);
    return state.ok() ? "it is read" : std::string(state.status().message());
  };
  EXPECT_EQ(why(""), "is no state of a fleet");
  EXPECT_EQ(why("LLFS"), "is no state of a fleet");
  EXPECT_EQ(why("{\"kind\": \"Status\"}"), "is no state of a fleet");
  std::string newer = good;
  newer[4] = 2;
  EXPECT_EQ(why(newer), "has version 2, and version 1 is read");
  EXPECT_EQ(why(std::string(kMostFleetStateBytes + 1, 'x')), "is larger than any state");
  for (size_t i = 5; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] ^= 0x10;
    EXPECT_THAT(why(damaged), HasSubstr("checksum")) << i;
    EXPECT_THAT(why(good.substr(0, i)), ::testing::AnyOf(HasSubstr("checksum"), HasSubstr("no state"))) << i;
  }
}

// Somebody may make up a state with a right checksum: no number of it gets far.
TEST(StateBytesTest, BytesThatAreMadeUpAreRefusedOrHarmless) {
  std::mt19937_64 random(8);
  const std::string good = EncodeFleetState(EverythingState());
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string payload = good.substr(13);
    for (uint64_t flips = random() % 4; flips < 4; ++flips) {
      payload[random() % payload.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) payload.resize(random() % payload.size());
    std::string bytes = good.substr(0, 5);
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(FleetKey(payload) >> (8 * i) & 0xff));
    absl::StatusOr<FleetState> state = DecodeFleetState(bytes + payload);
    if (!state.ok()) continue;
    ++read;
    FleetWorld world;
    world.state = *std::move(state);
    world.group = GroupOf("g", Machines("m", 3));
    world.LookAtAll(0);
    for (const auto& [key, group] : world.state.groups) {
      EXPECT_FALSE(BacksOff(group.back_off, FleetWorld::At(30)));
    }
    EXPECT_FALSE(world.LookAtAll(31).cools_down);
    ASSERT_TRUE(DecodeFleetState(EncodeFleetState(world.state)).ok());
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace loadline
