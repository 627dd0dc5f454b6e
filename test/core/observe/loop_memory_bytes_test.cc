#include "core/observe/loop_memory_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/observe/state_coder.h"
#include "core/slack/slack_options.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNowMs = 1'700'000'000'000;

LoopMemory EverythingRemembered() {
  LoopMemory memory;
  memory.fleet.looked = true;
  memory.fleet.groups[FleetKey("g")].target = 3;
  memory.next_action = 18;
  memory.open.push_back({.id = 15,
                         .group = "g",
                         .at_ms = kNowMs,
                         .from = 3,
                         .nodes = 2,
                         .for_pods = true,
                         .provision_ms = 60'000});
  memory.open.push_back({.id = 16,
                         .kind = OpenAction::Kind::kDeleteMachines,
                         .group = "h",
                         .at_ms = kNowMs,
                         .machines = {1, UINT64_MAX}});
  memory.open.push_back({.id = 17, .kind = OpenAction::Kind::kSwap, .group = "i", .from = 4, .nodes = 1});
  memory.grown_for_pods_ms = kNowMs - 1;
  memory.batch_since_ms = kNowMs - 2;
  memory.acknowledged = {3, UINT64_MAX};
  memory.abandoned_since_ms = {{4, kNowMs - 3}};
  memory.unneeded_since_s = {{5, kNowMs / 1000 - 60}, {6, 0}};
  memory.swap_refused_ms = {{7, kNowMs - 4}};
  memory.moves.push_back({.phase = MoveUnderWay::Phase::kDraining,
                          .at_ms = kNowMs - 5,
                          .step_ms = kNowMs - 6,
                          .orders = {{"g", 2}},
                          .came = {3, 0},
                          .onto = {UINT64_MAX},
                          .remove = {1},
                          .places = {{10, 0}, {11, 2}}});
  memory.resting_since_ms = {{8, kNowMs - 6}};
  memory.given_up = {{8, {.count = 3, .last_ms = kNowMs - 7}}};
  memory.load = {
      .load = {.cpu = 7, .memory = int64_t{1} << 62}, .since_ms = kNowMs - 8, .away_since_ms = kNowMs - 9};
  memory.nodes_took_ms = 90'000;
  memory.downscale_order = {{7, 1}, {3, 2}};
  memory.drains_took_ms = 600'000;
  memory.sizes["g"] = {.cached_node = CpuMemory{4'000, int64_t{1} << 62},
                       .locked_ms = kNowMs - 7,
                       .requested = 3,
                       .expected = 12,
                       .asked = GroupState::Asked{.ms = kNowMs - 8, .target = 9}};
  memory.sizes["h"] = {};
  memory.slack = KeptSlack{.groups = {{{PlaceholderKind::kStandard, "zone=a", {500, 1 << 30}}, 30},
                                      {{PlaceholderKind::kMirrored, "ns/pod", {0, 1}}, 1}},
                           .class_labels = {"zone"},
                           .selected_labels = {"disk", "gpu"},
                           .excesses = {{"zone=a", kNowMs / 1000 - 9}}};
  memory.soft_taint_tried_ms = {{9, kNowMs - 10}};
  memory.purchases[{1, 7, 2}] = {.asked_ms = kNowMs - 11};
  memory.purchases[{1, 7, 3}] = {.failures = 4,
                                 .until_ms = kNowMs + 12,
                                 .model_asked = 4,
                                 .model_judged = 5,
                                 .node = 6,
                                 .node_shape = uint64_t{1} << 63};
  return memory;
}

// Bytes of another version, or with other content.
std::string WithVersion(int version, const std::string& payload) {
  StateWriter sum;
  sum.Key(FleetKey(payload));
  return std::string("LLLM") + static_cast<char>(version) + sum.bytes() + payload;
}

// Returns what follows the version and the sum.
std::string PayloadOf(const LoopMemory& memory) { return EncodeLoopMemory(memory).substr(4 + 1 + 8); }

TEST(LoopMemoryBytesTest, WhatIsWrittenIsRead) {
  for (const LoopMemory& memory : {EverythingRemembered(), LoopMemory()}) {
    const absl::StatusOr<LoopMemory> read = DecodeLoopMemory(EncodeLoopMemory(memory));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == memory);
  }
}

TEST(LoopMemoryBytesTest, WhatIsDamagedIsRefused) {
  const std::string bytes = EncodeLoopMemory(EverythingRemembered());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_FALSE(DecodeLoopMemory(damaged).ok()) << "byte " << i;
    EXPECT_FALSE(DecodeLoopMemory(bytes.substr(0, i)).ok()) << "the first " << i;
  }
  EXPECT_FALSE(DecodeLoopMemory(bytes + '\0').ok());
  std::string later = bytes;
  later[4] = 9;
  EXPECT_THAT(DecodeLoopMemory(later).status().message(), HasSubstr("has version 9, and 4 to 8 are read"));
  EXPECT_THAT(DecodeLoopMemory("LLFS").status().message(), HasSubstr("is no state of a loop"));
}

// The moves of EverythingRemembered(), as versions before 7 wrote them: with the nodes that were there in
// place of the time of the order.
std::string MovesBeforeVersion7(const MoveUnderWay& move) {
  StateWriter out;
  for (const uint64_t number :
       {uint64_t{1}, static_cast<uint64_t>(move.phase), uint64_t(move.at_ms), uint64_t{1}})
    out.Number(number);
  out.Text(move.orders[0].group);
  out.Number(static_cast<uint64_t>(move.orders[0].nodes));
  const std::vector<uint64_t> known = {1, 2};
  for (const auto* keys : {&known, &move.came, &move.onto, &move.remove}) {
    out.Number(keys->size());
    for (const uint64_t key : *keys) out.Key(key);
  }
  out.Number(move.places.size());
  for (const MoveUnderWay::Place& place : move.places) {
    out.Key(place.pod);
    out.Number(static_cast<uint64_t>(place.target));
  }
  return out.bytes();
}

std::string PayloadBeforeVersion7(const LoopMemory& memory) {
  LoopMemory without = memory;
  without.moves.clear();
  const std::string payload = PayloadOf(without);
  const std::string other = PayloadOf(memory);
  // They differ from the number of moves on.
  const auto at = std::mismatch(payload.begin(), payload.end(), other.begin()).first - payload.begin();
  return payload.substr(0, static_cast<size_t>(at)) + MovesBeforeVersion7(memory.moves[0]) +
         payload.substr(static_cast<size_t>(at) + 1);
}

// A program that is renewed starts from the memory of the one before. Version 7 knew nothing of the constant
// load, version 6 nothing of purchases, of moves that were given up and of times of orders, version 5
// nothing of soft taints, version 4 nothing of sizes and slack either. Behind them is only what is not needed
// any more: a 0 for none.
TEST(LoopMemoryBytesTest, VersionsBeforeAreRead) {
  LoopMemory memory = EverythingRemembered();
  memory.unneeded_since_s.clear();
  memory.load.reset();
  const std::string seventh = PayloadOf(memory);
  const absl::StatusOr<LoopMemory> read =
      DecodeLoopMemory(WithVersion(7, seventh.substr(0, seventh.size() - 1)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == memory);
  memory.moves[0].step_ms = memory.moves[0].at_ms;
  memory.purchases.clear();
  memory.given_up.clear();
  for (const auto& [version, zeros] : {std::pair(6, 3), std::pair(5, 4), std::pair(4, 6)}) {
    if (version == 5) memory.soft_taint_tried_ms.clear();
    if (version == 4) {
      memory.sizes.clear();
      memory.slack.reset();
    }
    std::string payload = PayloadBeforeVersion7(memory);
    payload.resize(payload.size() - static_cast<size_t>(zeros));
    const absl::StatusOr<LoopMemory> read = DecodeLoopMemory(WithVersion(version, payload));
    ASSERT_TRUE(read.ok()) << "version " << version << ": " << read.status();
    EXPECT_TRUE(*read == memory);
    EXPECT_FALSE(DecodeLoopMemory(WithVersion(version + 1, payload)).ok());
    EXPECT_FALSE(DecodeLoopMemory(WithVersion(3, payload)).ok());
  }
}

// The last ones of the groups that are sized are left out, and all slack: half of it would say that there was
// less.
TEST(LoopMemoryBytesTest, SizesAndSlackHaveBounds) {
  LoopMemory memory;
  for (int i = 0; i < 1'000; ++i) memory.sizes[absl::StrFormat("%0500d", i)].requested = i;
  KeptSlack& slack = memory.slack.emplace();
  for (int i = 0; i < 10'000; ++i) {
    slack.groups.push_back({{PlaceholderKind::kStandard, absl::StrFormat("class %d", i), {1, 1}}, 1});
  }
  const absl::StatusOr<LoopMemory> read = DecodeLoopMemory(EncodeLoopMemory(memory));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->slack.has_value());
  EXPECT_GT(read->sizes.size(), 150u);
  EXPECT_LT(read->sizes.size(), 200u);
  EXPECT_EQ(read->sizes.rbegin()->second.requested, static_cast<int64_t>(read->sizes.size()) - 1);
}

// The loop would refuse them each time.
TEST(LoopMemoryBytesTest, SizesThatCannotBeAreRefused) {
  LoopMemory memory;
  for (int i = 0; i < 1'000; ++i) memory.sizes[absl::StrCat(i)] = {};
  EXPECT_TRUE(DecodeLoopMemory(EncodeLoopMemory(memory)).ok());
  memory.sizes["one more"] = {};
  EXPECT_FALSE(DecodeLoopMemory(EncodeLoopMemory(memory)).ok());
  memory.sizes.clear();
  memory.sizes["g"].expected = kMostNodes + 1;
  const absl::StatusOr<LoopMemory> read = DecodeLoopMemory(EncodeLoopMemory(memory));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sizes.at("g").expected, kMostNodes);
}

// Somebody who may write the ConfigMap must not have the next leader run out of memory.
TEST(LoopMemoryBytesTest, MorePlaceholdersThanThereMayBeAreRefused) {
  LoopMemory memory;
  memory.slack = KeptSlack{.groups = {{{PlaceholderKind::kStandard, "a", {1, 1}}, kMostPlaceholders},
                                      {{PlaceholderKind::kStandard, "b", {1, 1}}, 1}}};
  EXPECT_FALSE(DecodeLoopMemory(EncodeLoopMemory(memory)).ok());
  memory.slack->groups.pop_back();
  EXPECT_TRUE(DecodeLoopMemory(EncodeLoopMemory(memory)).ok());
}

// A ConfigMap holds it, whatever there is to remember; what is read is what there was room for.
TEST(LoopMemoryBytesTest, ItHasABound) {
  LoopMemory memory;
  for (uint64_t i = 0; i < 100'000; ++i) {
    memory.fleet.machines[i << 20].missing_since_ms = kNowMs;
    memory.fleet.machines[(i << 20) + 1].had_node = true;
    memory.unneeded_since_s[i << 20] = kNowMs / 1000;
    memory.acknowledged.insert(i << 20);
    memory.abandoned_since_ms[i << 20] = kNowMs;
    memory.soft_taint_tried_ms[i << 20] = kNowMs;
    memory.purchases[{i << 20, i << 20, i << 20}] = {.failures = 1, .until_ms = kNowMs};
    memory.open.push_back({.id = static_cast<int64_t>(i), .group = "a group", .at_ms = kNowMs});
  }
  const std::string bytes = EncodeLoopMemory(memory);
  EXPECT_LE(bytes.size(), kMostLoopMemoryBytes);
  const absl::StatusOr<LoopMemory> read = DecodeLoopMemory(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->open.size(), kMostOpenActions);
  EXPECT_EQ(read->open.back().id, 99'999);
  EXPECT_EQ(read->acknowledged.size(), kMostDeletions);
  EXPECT_EQ(read->soft_taint_tried_ms.size(), kMostSoftTaintsTried);
  EXPECT_EQ(read->purchases.size(), kMostPurchases);
  EXPECT_GT(read->unneeded_since_s.size(), 1'000u);
}

// 1,000 groups that grow, and 1,000 machines and timers: what a large cluster has at most.
TEST(LoopMemoryBytesTest, ALargeClusterTakesLessThanAQuarterOfIt) {
  LoopMemory memory;
  for (uint64_t i = 0; i < 1'000; ++i) {
    memory.fleet.machines[i << 20].missing_since_ms = kNowMs;
    memory.fleet.groups[i << 20].target = 10;
    memory.unneeded_since_s[i << 20] = kNowMs / 1000;
    memory.open.push_back({.id = static_cast<int64_t>(i),
                           .group = "a-node-group-of-an-ordinary-name-us-east-1a",
                           .at_ms = kNowMs,
                           .from = 10,
                           .nodes = 3});
  }
  EXPECT_LE(EncodeLoopMemory(memory).size(), size_t{256} << 10);
}

TEST(LoopMemoryTest, NoTimeLiesInTheFuture) {
  LoopMemory memory = EverythingRemembered();
  ForgetFutureTimes(kNowMs - 10'000, &memory);
  EXPECT_FALSE(memory.grown_for_pods_ms.has_value());
  EXPECT_FALSE(memory.batch_since_ms.has_value());
  EXPECT_EQ(memory.open[0].at_ms, kNowMs - 10'000);
  EXPECT_EQ(memory.abandoned_since_ms[4], kNowMs - 10'000);
  EXPECT_EQ(memory.unneeded_since_s[5], kNowMs / 1000 - 60);
  EXPECT_EQ(memory.swap_refused_ms[7], kNowMs - 10'000);
  EXPECT_EQ(memory.soft_taint_tried_ms[9], kNowMs - 10'000);
  EXPECT_EQ((memory.purchases[{1, 7, 2}].asked_ms), kNowMs - 10'000);
  EXPECT_EQ(memory.moves[0].at_ms, kNowMs - 10'000);
  EXPECT_EQ(memory.moves[0].step_ms, kNowMs - 10'000);
  EXPECT_EQ(memory.resting_since_ms[8], kNowMs - 10'000);
  EXPECT_EQ(memory.given_up[8].last_ms, kNowMs - 10'000);
  EXPECT_EQ(memory.sizes["g"].locked_ms, kNowMs - 10'000);
  EXPECT_EQ(memory.sizes["g"].asked->ms, kNowMs - 10'000);
  EXPECT_EQ(memory.slack->excesses[0].since_s, kNowMs / 1000 - 10);
}

// Else groups that come and go would fill the list, and no refusal would be remembered any more.
TEST(LoopMemoryTest, ARefusalToTakeNodesBackCountsForAnHour) {
  LoopMemory memory;
  memory.swap_refused_ms = {{7, kNowMs}, {8, kNowMs + 1}};
  ForgetFutureTimes(kNowMs + 3'600'000, &memory);
  EXPECT_FALSE(memory.swap_refused_ms.contains(7));
  EXPECT_TRUE(memory.swap_refused_ms.contains(8));
}

}  // namespace
}  // namespace loadline
