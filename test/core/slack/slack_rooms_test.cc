#include "core/slack/slack_rooms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/node_kind.h"
#include "test/core/slack/slack_world.h"

namespace loadline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FitPod PodAsking(int64_t milli_cpu, int64_t memory) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}

// A node of 4,000m, 16,000 bytes and 10 pods, with an agent of 100m and 200 bytes that is on each node.
class SlackRoomsTest : public ::testing::Test {
 protected:
  SlackRoomsTest() {
    FitPod agent = PodAsking(100, 200);
    agent.traits.daemon_by_annotation = true;
    node_ = {.name = "n", .allocatable = {{"cpu", 4'000}, {"memory", 16'000}, {"pods", 10}}};
    pods_ = {agent, PodAsking(1'000, 2'000)};
  }

  bool CatchUp() {
    changed_.clear();
    return rooms_.CatchUp(cluster_.state(), {.label_keys = DefaultClassLabels()}, {}, &changed_);
  }
  const SlackClass& OnlyClass() const { return rooms_.classes().begin()->second; }

  FitCluster cluster_;
  FitNode node_;
  std::vector<FitPod> pods_;
  SlackRooms rooms_;
  std::vector<size_t> changed_;
};

TEST_F(SlackRoomsTest, WhatComesWithEachNodeIsTakenOffAnEmptyOne) {
  cluster_.Add(node_, pods_);
  EXPECT_TRUE(CatchUp());
  EXPECT_THAT(changed_, ElementsAre(0));
  const SlackRooms::Node& node = rooms_.node(0);
  EXPECT_EQ(node.allocatable, (CpuMemory{4'000, 16'000}));
  EXPECT_EQ(node.real, (CpuMemory{1'100, 2'200}));
  EXPECT_EQ(node.requested, (CpuMemory{1'000, 2'000}));
  EXPECT_EQ(node.empty, (EmptyNode{{3'900, 15'800}, 9}));
  EXPECT_EQ(node.free_slots, 8);
  EXPECT_TRUE(node.usable);
  ASSERT_THAT(rooms_.classes(), SizeIs(1));
  EXPECT_EQ(OnlyClass().requested.value(), (CpuMemory{1'000, 2'000}));
  EXPECT_EQ(OnlyClass().capacity.value(), (CpuMemory{3'900, 15'800}));
  EXPECT_EQ(OnlyClass().TypicalEmpty(), node.empty);
}

TEST_F(SlackRoomsTest, PlaceholdersTakeNoRoomAndFinishedPodsNeither) {
  FitPod placeholder = PodAsking(500, 500), finished = PodAsking(700, 700);
  placeholder.traits.placeholder = true;
  finished.traits.phase = PodPhase::kFailed;
  pods_.push_back(placeholder);
  pods_.push_back(finished);
  cluster_.Add(node_, pods_);
  CatchUp();
  EXPECT_EQ(rooms_.node(0).real, (CpuMemory{1'100, 2'200}));
  EXPECT_EQ(rooms_.node(0).requested, (CpuMemory{1'000, 2'000}));
}

// A priority below -10 is expendable. One of -10 counts.
TEST_F(SlackRoomsTest, ExpendablePodsTakeNoRoomAndWantNoSlack) {
  FitPod expendable = PodAsking(500, 500), last = PodAsking(30, 40);
  expendable.traits.priority = -11;
  expendable.rules.node_selector = MakeLabels({{"disk", "ssd"}});
  last.traits.priority = -10;
  cluster_.Add(node_, pods_);
  CatchUp();
  const int64_t free_slots = rooms_.node(0).free_slots;
  pods_.push_back(expendable);
  pods_.push_back(last);
  cluster_.Put(Slot{0}, node_, pods_);
  CatchUp();
  EXPECT_EQ(rooms_.node(0).real, (CpuMemory{1'130, 2'240}));
  EXPECT_EQ(rooms_.node(0).requested, (CpuMemory{1'030, 2'040}));
  EXPECT_EQ(rooms_.node(0).free_slots, free_slots - 1);
  EXPECT_THAT(rooms_.rules().selected, IsEmpty());
}

// Its replacement counts, so that a drain does not want slack twice for what it moves.
TEST_F(SlackRoomsTest, APodThatTerminatesHoldsItsRoomAndWantsNoSlack) {
  FitPod terminating = PodAsking(500, 500);
  terminating.traits.deleted_s = 5;
  pods_.push_back(terminating);
  cluster_.Add(node_, pods_);
  CatchUp();
  EXPECT_EQ(rooms_.node(0).real, (CpuMemory{1'600, 2'700}));
  EXPECT_EQ(rooms_.node(0).requested, (CpuMemory{1'000, 2'000}));
  EXPECT_EQ(OnlyClass().requested.value(), (CpuMemory{1'000, 2'000}));
}

TEST_F(SlackRoomsTest, PodsOfACordonedNodeWillNeedRoomButItOffersNone) {
  node_.unschedulable = true;
  cluster_.Add(node_, pods_);
  CatchUp();
  EXPECT_FALSE(rooms_.node(0).usable);
  EXPECT_EQ(OnlyClass().nodes, 1);
  EXPECT_EQ(OnlyClass().usable, 0);
  EXPECT_EQ(OnlyClass().requested.value(), (CpuMemory{1'000, 2'000}));
  EXPECT_EQ(OnlyClass().capacity.value(), CpuMemory{});
}

TEST_F(SlackRoomsTest, OnlyWhatChangedIsReadAnew) {
  cluster_.Add(node_, pods_);
  FitNode other = node_;
  other.name = "o";
  cluster_.Add(other);
  CatchUp();
  EXPECT_FALSE(CatchUp());
  EXPECT_THAT(changed_, IsEmpty());
  cluster_.Put(Slot{1}, other, {PodAsking(2'000, 1)});
  CatchUp();
  EXPECT_THAT(changed_, Contains(1));
  EXPECT_THAT(changed_, testing::Not(Contains(0)));
  EXPECT_EQ(OnlyClass().requested.value(), (CpuMemory{3'000, 2'001}));
  cluster_.Remove(Slot{0});
  CatchUp();
  EXPECT_FALSE(rooms_.node(0).present);
  EXPECT_EQ(OnlyClass().requested.value(), (CpuMemory{2'000, 1}));
  cluster_.Remove(Slot{1});
  CatchUp();
  EXPECT_THAT(rooms_.classes(), IsEmpty());
}

// A label counts as soon as a pod selects nodes by it, and no longer than that.
TEST_F(SlackRoomsTest, ALabelThatAPodSelectsByTellsClassesApart) {
  node_.labels = {{"disk", "fast"}};
  cluster_.Add(node_, pods_);
  FitNode other = node_;
  other.name = "o";
  other.labels = {{"disk", "slow"}};
  cluster_.Add(other);
  CatchUp();
  EXPECT_THAT(rooms_.classes(), SizeIs(1));
  FitPod selects = PodAsking(1, 1);
  selects.rules.node_selector = MakeLabels({{"disk", "slow"}});
  cluster_.Put(Slot{1}, other, {selects});
  EXPECT_TRUE(CatchUp());
  EXPECT_THAT(rooms_.rules().selected, ElementsAre("disk"));
  EXPECT_THAT(rooms_.classes(), SizeIs(2));
  cluster_.Put(Slot{1}, other, {});
  EXPECT_TRUE(CatchUp());
  EXPECT_THAT(rooms_.classes(), SizeIs(1));
}

void ExpectSame(const SlackRooms& a, const SlackRooms& b) {
  ASSERT_EQ(a.classes().size(), b.classes().size());
  for (const auto& [name, of_a] : a.classes()) {
    ASSERT_TRUE(b.classes().contains(name)) << name;
    const SlackClass& of_b = b.classes().at(name);
    EXPECT_EQ(of_a.nodes, of_b.nodes);
    EXPECT_EQ(of_a.usable, of_b.usable);
    EXPECT_EQ(of_a.requested.value(), of_b.requested.value());
    EXPECT_EQ(of_a.capacity.value(), of_b.capacity.value());
    EXPECT_EQ(of_a.empty, of_b.empty);
    EXPECT_EQ(of_a.pods.size(), of_b.pods.size());
  }
  EXPECT_EQ(a.with_wishes(), b.with_wishes());
  EXPECT_EQ(a.rules(), b.rules());
  for (int owner = 1; owner <= 6; ++owner) {
    EXPECT_EQ(a.PodsOf("owner-" + std::to_string(owner)), b.PodsOf("owner-" + std::to_string(owner)));
  }
}

TEST(SlackRoomsPropertyTest, FollowingAClusterIsAsGoodAsReadingItAnew) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    const std::unique_ptr<SlackWorld> world = RandomWorld(&dice);
    SlackRooms follows;
    for (int step = 0; step < 8; ++step) {
      std::vector<size_t> changed;
      follows.CatchUp(world->cluster().state(), {.label_keys = DefaultClassLabels()}, {}, &changed);
      SlackRooms anew;
      anew.CatchUp(world->cluster().state(), {.label_keys = DefaultClassLabels()}, {}, &changed);
      ExpectSame(follows, anew);
      if (testing::Test::HasFailure()) FAIL() << "seed " << seed << " step " << step;
      auto node = world->nodes.begin();
      std::advance(node, dice.Pick(0, static_cast<int64_t>(world->nodes.size()) - 1));
      node->second.pods.clear();
      FillNode(&dice, world->kinds[node->second.kind], &node->second);
      node->second.cordoned = dice.OneIn(4);
      const int32_t slot = node->first;
      if (world->nodes.size() > 1 && dice.OneIn(4)) world->nodes.erase(node);
      world->Sync(slot);
      if (dice.OneIn(4)) world->AddNode(0);
    }
  }
}

TEST_F(SlackRoomsTest, OnlyMachinesAreOfAClass) {
  cluster_.Add(node_, pods_);
  node_.name = "cp";
  node_.traits.kind = NodeKind::kControlPlane;
  cluster_.Add(node_, pods_);
  CatchUp();
  ASSERT_THAT(rooms_.classes(), SizeIs(1));
  EXPECT_EQ(OnlyClass().nodes, 1);
  EXPECT_FALSE(rooms_.node(1).usable);
  // A named group makes it a machine, and that may change without a change of the cluster.
  changed_.clear();
  const std::vector<Slot> named = {Slot{1}};
  EXPECT_TRUE(rooms_.CatchUp(cluster_.state(), {.label_keys = DefaultClassLabels()}, named, &changed_));
  EXPECT_EQ(OnlyClass().nodes, 2);
  EXPECT_TRUE(CatchUp());
  EXPECT_EQ(OnlyClass().nodes, 1);
}

}  // namespace
}  // namespace loadline
