#include "core/cluster/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

constexpr ViewLimits kSmall{.nodes = 8, .pods = 20, .pod_shapes = 6, .resources = 5};

// A shape that may use this much cpu.
PodShape Limited(int64_t cpu) {
  PodShape shape;
  shape.limits[kCpu] = cpu;
  shape.fingerprint = static_cast<uint64_t>(cpu) * 0x9e3779b97f4a7c15;
  return shape;
}

NodeShape Offering(int64_t cpu) {
  NodeShape shape;
  shape.allocatable[kCpu] = cpu;
  shape.fingerprint = static_cast<uint64_t>(cpu);
  return shape;
}

NodeRecord Node(int32_t slot, absl::string_view name, std::vector<PodRecord> pods = {}) {
  return {Slot{slot}, name, Offering(8000), std::move(pods)};
}

Batch Delta(int64_t base, int64_t revision) {
  Batch batch;
  batch.epoch = 1;
  batch.base_revision = base;
  batch.revision = revision;
  return batch;
}

Batch FullList(int64_t epoch, int64_t revision, int32_t index = 0, bool last = true) {
  Batch batch;
  batch.epoch = epoch;
  batch.revision = revision;
  batch.full_list = FullListChunk{index, last};
  return batch;
}

// A view at epoch 1 revision 1: node "a" in slot 0 with two pods of shape 0, which may use 500m each.
class ViewTest : public ::testing::Test {
 protected:
  ViewTest() {
    Batch batch = FullList(1, 1);
    batch.pod_shapes = {{0, Limited(500)}};
    batch.nodes = {Node(0, "a", {{0, "p", "1"}, {0, "q", "2"}})};
    EXPECT_TRUE(view_.Apply(batch).ok());
  }

  int64_t Limits(int32_t slot) const {
    return view_.cluster().columns(kCpu)->limits[static_cast<size_t>(slot)];
  }

  // Refused with this code and text, and nothing has changed.
  void ExpectRefused(const Batch& batch, absl::StatusCode code, const std::string& text) {
    const uint64_t fingerprint = view_.cluster().fingerprint();
    const Revision revision = view_.revision();
    const absl::Status status = view_.Apply(batch);
    view_.CheckConsistent();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_EQ(view_.cluster().fingerprint(), fingerprint);
    EXPECT_EQ(view_.revision(), revision);
  }

  View view_{kSmall};
};

// A node is shown as another one until its next record, with its pods; put back, all is as it was.
TEST_F(ViewTest, ShowsANodeAsAnother) {
  const uint64_t fingerprint = view_.cluster().fingerprint();
  const int64_t version = view_.version();
  const NodeShape before = view_.cluster().node_shape(Slot{0});
  view_.ShowNode(Slot{0}, Offering(1));
  view_.CheckConsistent();
  EXPECT_EQ(view_.cluster().node_shape(Slot{0}), Offering(1));
  EXPECT_EQ(view_.cluster().name(Slot{0}), "a");
  EXPECT_EQ(view_.cluster().pods(Slot{0}).name(1), "q");
  EXPECT_EQ(view_.cluster().pods(Slot{0}).uid(1), "2");
  EXPECT_EQ(Limits(0), 1000);
  EXPECT_NE(view_.cluster().fingerprint(), fingerprint);
  EXPECT_NE(view_.version(), version);
  view_.ShowNode(Slot{0}, before);
  view_.CheckConsistent();
  EXPECT_EQ(view_.cluster().fingerprint(), fingerprint);
  EXPECT_EQ(view_.cluster().node_shape(Slot{0}), before);
}

TEST_F(ViewTest, HoldsWhatTheFullListSaid) {
  EXPECT_EQ(view_.revision(), (Revision{1, 1}));
  EXPECT_EQ(view_.cluster().node_count(), 1);
  EXPECT_EQ(view_.cluster().total_pods(), 2);
  EXPECT_EQ(view_.cluster().name(Slot{0}), "a");
  EXPECT_EQ(view_.cluster().pods(Slot{0}).name(1), "q");
  EXPECT_EQ(view_.cluster().pods(Slot{0}).uid(1), "2");
  EXPECT_EQ(Limits(0), 1000);
}

TEST_F(ViewTest, ARecordReplacesTheWholeNode) {
  Batch batch = Delta(1, 2);
  batch.nodes = {Node(0, "a", {{0, "r", "3"}})};
  ASSERT_TRUE(view_.Apply(batch).ok());
  EXPECT_EQ(Limits(0), 500);
  EXPECT_EQ(view_.cluster().total_pods(), 1);
}

// Changes of the former state while the list was staged play no part in the new one's journal.
TEST_F(ViewTest, WhoReadTheFormerJournalFindsAllSlotsChanged) {
  Batch first = FullList(2, 1, 0, false);
  first.nodes = {Node(0, "x")};
  ASSERT_TRUE(view_.Apply(first).ok());
  for (int64_t revision = 1; revision < 8; ++revision) {
    Batch delta = Delta(revision, revision + 1);
    delta.nodes = {Node(0, "a")};
    ASSERT_TRUE(view_.Apply(delta).ok());
  }
  const int64_t read = view_.cluster().change_count();
  ASSERT_TRUE(view_.Apply(FullList(2, 1, 1, true)).ok());
  for (int64_t since = 0; since <= read; ++since) {
    EXPECT_FALSE(view_.cluster().changes(since).has_value()) << since;
  }
  EXPECT_TRUE(view_.cluster().changes(view_.cluster().change_count())->empty());
  EXPECT_FALSE(view_.cluster().changes(view_.cluster().change_count() + 1).has_value());
}

TEST_F(ViewTest, RepeatsDoNoHarmAndOldBatchesAreRefused) {
  Batch second = Delta(1, 2);
  second.nodes = {Node(0, "a", {{0, "r", "3"}})};
  Batch third = Delta(2, 3);
  third.nodes = {Node(1, "b")};
  ASSERT_TRUE(view_.Apply(second).ok());
  ASSERT_TRUE(view_.Apply(second).ok());
  ASSERT_TRUE(view_.Apply(third).ok());
  ExpectRefused(second, absl::StatusCode::kFailedPrecondition, "is older than the view");
  EXPECT_TRUE(view_.cluster().Occupied(Slot{1}));
}

TEST_F(ViewTest, ALargerBatchOnTheSameBaseIsAccepted) {
  Batch lost = Delta(1, 2);
  lost.nodes = {Node(0, "a")};
  ASSERT_TRUE(view_.Apply(lost).ok());
  Batch larger = Delta(1, 3);
  larger.nodes = {Node(0, "a"), Node(1, "b")};
  ASSERT_TRUE(view_.Apply(larger).ok());
  EXPECT_EQ(view_.revision().revision, 3);
  EXPECT_EQ(view_.cluster().node_count(), 2);
}

TEST_F(ViewTest, AGapOrAnotherEpochIsRefused) {
  ExpectRefused(Delta(2, 3), absl::StatusCode::kFailedPrecondition, "builds on a later state");
  Batch other = Delta(1, 2);
  other.epoch = 2;
  ExpectRefused(other, absl::StatusCode::kFailedPrecondition, "at epoch 1 revision 1; send a full list");
  ExpectRefused(FullList(0, 9), absl::StatusCode::kFailedPrecondition, "is a full list older");
  View fresh(kSmall);
  EXPECT_EQ(fresh.Apply(Delta(1, 2)).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ViewTest, AnotherResizeRuleTakesAFullList) {
  Batch batch = Delta(1, 2);
  batch.resize_rule = ResizeRule::kPerPod;
  const std::string text = "counts resized pods by another rule than the view";
  ExpectRefused(batch, absl::StatusCode::kFailedPrecondition, text);
  batch = FullList(2, 1, 0, /*last=*/false);
  batch.resize_rule = ResizeRule::kPerPod;
  EXPECT_TRUE(view_.Apply(batch).ok());
  EXPECT_EQ(view_.resize_rule(), ResizeRule::kPerContainer);
  ExpectRefused(FullList(2, 1, 1), absl::StatusCode::kFailedPrecondition, text);
  batch.full_list = FullListChunk{1, true};
  EXPECT_TRUE(view_.Apply(batch).ok());
  EXPECT_EQ(view_.resize_rule(), ResizeRule::kPerPod);
}

TEST_F(ViewTest, AFullListTakesEffectWhenItIsComplete) {
  Batch first = FullList(2, 1, 0, false);
  first.pod_shapes = {{0, Limited(700)}};
  first.nodes = {Node(0, "x", {{0, "p", ""}})};
  Batch second = FullList(2, 1, 1, true);
  second.nodes = {Node(1, "y", {{0, "q", ""}})};
  ASSERT_TRUE(view_.Apply(first).ok());
  ASSERT_TRUE(view_.Apply(first).ok()) << "a repeated chunk";
  EXPECT_EQ(view_.cluster().name(Slot{0}), "a");
  EXPECT_EQ(view_.revision(), (Revision{1, 1}));
  ASSERT_TRUE(view_.Apply(second).ok());
  EXPECT_EQ(view_.revision(), (Revision{2, 1}));
  EXPECT_EQ(view_.cluster().name(Slot{0}), "x");
  EXPECT_EQ(Limits(1), 700);
  ASSERT_TRUE(view_.Apply(second).ok()) << "a repeated last chunk";
}

TEST_F(ViewTest, ChunksOutOfOrderAreRefused) {
  ExpectRefused(FullList(2, 1, 1), absl::StatusCode::kFailedPrecondition, "has not been started");
  ASSERT_TRUE(view_.Apply(FullList(2, 1, 0, false)).ok());
  ExpectRefused(FullList(2, 1, 2), absl::StatusCode::kFailedPrecondition, "arrived where chunk 1 was due");
}

TEST_F(ViewTest, NodesMayChangePlaces) {
  Batch batch = Delta(1, 2);
  batch.nodes = {Node(1, "b")};
  ASSERT_TRUE(view_.Apply(batch).ok());
  Batch swap = Delta(2, 3);
  swap.nodes = {Node(0, "b"), Node(1, "a", {{0, "p", "1"}})};
  ASSERT_TRUE(view_.Apply(swap).ok());
  EXPECT_EQ(view_.cluster().Find("a"), Slot{1});
  EXPECT_EQ(view_.cluster().Find("b"), Slot{0});
  EXPECT_EQ(view_.cluster().node_count(), 2);
  EXPECT_EQ(Limits(1), 500);
}

TEST_F(ViewTest, BadBatchesAreRefusedByName) {
  Batch batch = Delta(1, 2);
  batch.nodes = {Node(1, "a")};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument,
                "node \"a\" (slot 1): slot 0 has a node of the same name");
  batch.nodes = {Node(1, "b"), Node(2, "b")};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument,
                "node \"b\" (slot 2): slot 1 has a node of the same name");
  batch.nodes = {Node(1, "b"), Node(1, "c")};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument, "node \"c\" (slot 1): the slot is sent twice");
  batch.nodes = {Node(-1, "b\x1b[31m")};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument,
                "node \"b\\x1b[31m\" (slot -1): slot -1 is negative");
  batch.nodes = {Node(8, "b")};
  ExpectRefused(batch, absl::StatusCode::kResourceExhausted, "slot 8 is beyond the limit of 8 nodes");
  batch.nodes = {Node(1, "b", {{0, "ok", ""}, {3, "bad", ""}})};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument,
                "pod 1 \"bad\" refers to pod shape 3, which was never sent");
  batch.nodes = {Node(1, "b", std::vector<PodRecord>(19, {0, "p", ""}))};
  ExpectRefused(batch, absl::StatusCode::kResourceExhausted, "would hold 21 pods, the limit is 20");
  batch.nodes = {};
  batch.removed_slots = {Slot{-2}};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument, "removed slots: slot -2 is negative");
}

// A column has a cell for each slot: few bytes must not ask for much memory.
TEST_F(ViewTest, SlotsTimesResourcesAreBounded) {
  View view({.nodes = 1000, .resources = 10, .amounts = 1000});
  Batch batch = FullList(1, 1);
  batch.resource_names.Intern("a.com/x");  // beside cpu, memory and ephemeral-storage
  batch.nodes = {Node(249, "a")};
  EXPECT_TRUE(view.Apply(batch).ok());
  batch = Delta(1, 2);
  batch.resource_names = view.cluster().resource_names();
  batch.nodes = {Node(250, "b")};
  const absl::Status status = view.Apply(batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "251 slots and 4 distinct resource names make 1004 amounts, the limit is 1000");
  EXPECT_EQ(view.cluster().node_count(), 1);
}

TEST_F(ViewTest, BadPodShapesAreRefusedById) {
  Batch batch = Delta(1, 2);
  batch.pod_shapes = {{0, Limited(501)}};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument,
                "pod shape 0 is given another content while 2 pods refer to it");
  batch.pod_shapes = {{1, Limited(1)}, {1, Limited(2)}};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument, "pod shape 1 is sent twice");
  batch.pod_shapes = {{-1, Limited(1)}};
  ExpectRefused(batch, absl::StatusCode::kInvalidArgument, "pod shape id -1 is negative");
  batch.pod_shapes = {{6, Limited(1)}};
  ExpectRefused(batch, absl::StatusCode::kResourceExhausted, "id 6 is beyond the limit of 6 pod shapes");
  batch.pod_shapes = {};
  for (int i = 0; i < 3; ++i) batch.resource_names.Intern(absl::StrCat("r", i));
  ExpectRefused(batch, absl::StatusCode::kResourceExhausted, "6 distinct resource names, the limit is 5");
}

TEST_F(ViewTest, AnIdMayBeReusedOnceNoPodRefersToIt) {
  Batch leave = Delta(1, 2);
  leave.removed_slots = {Slot{0}};
  ASSERT_TRUE(view_.Apply(leave).ok());
  Batch reuse = Delta(2, 3);
  reuse.pod_shapes = {{0, Limited(900)}};
  reuse.nodes = {Node(0, "a", {{0, "p", ""}})};
  ASSERT_TRUE(view_.Apply(reuse).ok());
  EXPECT_EQ(Limits(0), 900);
  EXPECT_EQ(view_.cluster().pod_shapes().size(), 1u);
}

// Any sequence of changes leads to the sums and fingerprints of a full list of the same content.
TEST(ViewPropertyTest, DeltasEqualAFullList) {
  std::mt19937_64 random(20);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(absl::StrCat("node-", i));
  for (int round = 0; round < 50; ++round) {
    View view{ViewLimits{}};
    std::map<int32_t, NodeRecord> content;
    int64_t revision = 1;
    Batch first = FullList(1, 1);
    for (int32_t id = 0; id < 10; ++id) first.pod_shapes.push_back({id, Limited(100 * (id + 1))});
    ASSERT_TRUE(view.Apply(first).ok());
    for (int step = 0; step < 60; ++step) {
      Batch batch = Delta(revision, revision + 1);
      const int32_t slot = static_cast<int32_t>(pick(0, 39));
      if (pick(0, 3) == 0) {
        batch.removed_slots = {Slot{slot}};
        content.erase(slot);
      } else {
        NodeRecord node = Node(slot, names[static_cast<size_t>(slot)]);
        node.shape = Offering(1000 * pick(1, 4));
        for (int64_t pods = pick(0, 5); pods > 0; --pods)
          node.pods.push_back({static_cast<int32_t>(pick(0, 9)), "p", "u"});
        content.insert_or_assign(slot, node);
        batch.nodes = {node};
      }
      ASSERT_TRUE(view.Apply(batch).ok());
      view.CheckConsistent();
      ++revision;
    }
    // The same content in other slots and with other shape ids.
    View full{ViewLimits{}};
    Batch list = FullList(7, 1);
    for (int32_t id = 0; id < 10; ++id) list.pod_shapes.push_back({9 - id, Limited(100 * (id + 1))});
    for (auto& [slot, node] : content) {
      NodeRecord moved = node;
      moved.slot = Slot{39 - slot};
      for (PodRecord& pod : moved.pods) pod.shape = 9 - pod.shape;
      std::reverse(moved.pods.begin(), moved.pods.end());
      list.nodes.push_back(std::move(moved));
    }
    ASSERT_TRUE(full.Apply(list).ok());
    full.CheckConsistent();
    ASSERT_EQ(view.cluster().fingerprint(), full.cluster().fingerprint());
    for (const auto& [slot, node] : content) {
      const Slot moved{39 - slot};
      ASSERT_EQ(view.cluster().fingerprint(Slot{slot}), full.cluster().fingerprint(moved));
      int64_t limits = 0;
      for (const PodRecord& pod : node.pods) limits += 100 * (pod.shape + 1);
      ASSERT_EQ(view.cluster().columns(kCpu)->limits[static_cast<size_t>(slot)], limits);
      ASSERT_EQ(full.cluster().columns(kCpu)->limits[IndexOf(moved)], limits);
      ASSERT_EQ(view.cluster().columns(kCpu)->allocatable[static_cast<size_t>(slot)],
                node.shape.allocatable.Get(kCpu));
    }
  }
}

// The journal loses nothing: who reads it now and then knows every slot that changed.
TEST(ClusterStateTest, JournalNamesEveryChangedSlot) {
  std::mt19937_64 random(4);
  ClusterState cluster;
  cluster.RestartJournal(100);
  std::vector<bool> changed(30, false);
  int64_t read = cluster.change_count();
  EXPECT_FALSE(cluster.changes(99).has_value());
  int read_in_full = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int32_t slot = static_cast<int32_t>(random() % 30);
    cluster.SetNode(Slot{slot}, absl::StrCat("n", slot), Offering(1), {});
    changed[static_cast<size_t>(slot)] = true;
    if (random() % 400 != 0) continue;
    const auto changes = cluster.changes(read);
    read = cluster.change_count();
    if (changes.has_value()) {
      for (const Slot s : *changes) changed[IndexOf(s)] = false;
      EXPECT_EQ(std::count(changed.begin(), changed.end(), true), 0);
    } else {
      changed.assign(30, false);
      ++read_in_full;
    }
  }
  EXPECT_GT(read_in_full, 0);
}

}  // namespace
}  // namespace loadline
