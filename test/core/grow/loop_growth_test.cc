// Growth by itself, without a loop around it. Nodes of these groups have 1000 milli-CPU, 1000 units of memory
// and 10 slots for pods, but where a test says otherwise.
#include "core/grow/loop_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

FitPod PodOf(int64_t milli_cpu, int64_t memory) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}

EmptyNode RoomFor(int64_t milli_cpu, int64_t memory, int64_t slots) { return {{milli_cpu, memory}, slots}; }

class LoopGrowthTest : public ::testing::Test {
 protected:
  void AddGroup(const std::string& name, int64_t target, int64_t max_nodes) {
    NodeGroup& group = problem_.groups.emplace_back();
    group.name = name;
    group.target = target;
    group.max_nodes = max_nodes;
    group.usd_per_hour = 1;
    group.model = NodeModel{cluster_.Shape(Machine(name))};
  }
  static FitNode Machine(const std::string& name) {
    return {.name = name,
            .allocatable = {{"cpu", 1000}, {"memory", 1000}, {"pods", 10}},
            .labels = {{"pool", name}}};
  }
  void AddNode(const std::string& name, std::optional<int32_t> group, const std::vector<FitPod>& pods = {}) {
    cluster_.Add(Machine(name), pods);
    const Slot slot{cluster_.state().slot_end() - 1};
    if (group.has_value()) problem_.drain.group_of.Set(slot, GroupIndex{*group});
  }
  void Wait(const FitPod& pod, int64_t count) { waiting_.push_back({cluster_.Incoming(pod), count}); }

  LoopFacts Facts() {
    problem_.drain.cluster = &cluster_.state();
    return LoopFacts(problem_);
  }
  GroupRooms Grow(WorkBudget budget = WorkBudget()) {
    problem_.names = cluster_.names();
    for (PendingPods& pods : waiting_) pods.pod.names = cluster_.names();
    for (IncomingPod& daemon : problem_.daemons) daemon.names = cluster_.names();
    Snapshot snapshot(cluster_.state());
    const LoopFacts facts = Facts();
    GrowthLedger ledger(facts);
    GroupRooms rooms = GrowForPods({problem_, waiting_, {}, &snapshot, &budget}, &ledger, &plan_);
    growth_ = ledger.growth;
    EXPECT_EQ(snapshot.depth(), 0U);
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(cluster_.state().node_count()));
    return rooms;
  }

  FitCluster cluster_;
  LoopProblem problem_;
  std::vector<PendingPods> waiting_;
  WaitingPodsPlan plan_;
  std::vector<LoopGrowth> growth_;
};

TEST_F(LoopGrowthTest, NodesOfATargetThatAreNotThereAreOnTheirWay) {
  AddGroup("a", /*target=*/5, 9);
  AddGroup("b", /*target=*/1, 9);
  AddGroup("c", /*target=*/2, 9);
  AddNode("a-0", 0);
  AddNode("b-0", 1);
  AddNode("b-1", 1);
  AddNode("other", std::nullopt);
  AddNode("a-1", 0);
  AddNode("a-2", 0);
  cluster_.Remove(Slot{5});
  const CountsOfGroups counts = Facts().counts;
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[GroupIndex{0}].registered, 2) << "the third one is gone";
  EXPECT_EQ(counts[GroupIndex{0}].upcoming, 3);
  EXPECT_EQ(counts[GroupIndex{1}].registered, 2);
  EXPECT_EQ(counts[GroupIndex{1}].upcoming, 0) << "more are there than the target says";
  EXPECT_EQ(counts[GroupIndex{2}].registered, 0);
  EXPECT_EQ(counts[GroupIndex{2}].upcoming, 2);
}

TEST_F(LoopGrowthTest, GrowthIsKeptByGroup) {
  const LoopFacts facts = Facts();
  GrowthLedger ledger(facts);
  ledger.Of(GroupIndex{2}).for_pods += 1;
  ledger.Of(GroupIndex{0}).for_slack += 2;
  ledger.Of(GroupIndex{2}).for_slack += 3;
  EXPECT_THAT(ledger.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 2}, LoopGrowth{GroupIndex{2}, 1, 3}));
}

// Two of the pods fill 800 of the first node, the third one is on the second.
TEST_F(LoopGrowthTest, PodsTakeTheirRoomOfNodesOnTheirWay) {
  AddGroup("g", /*target=*/2, 9);
  Wait(PodOf(400, 100), 3);
  const GroupRooms rooms = Grow();
  EXPECT_TRUE(rooms.complete);
  EXPECT_THAT(rooms.empty, ElementsAre(RoomFor(1000, 1000, 10)));
  ASSERT_EQ(rooms.coming.size(), 1U);
  EXPECT_THAT(rooms.coming[GroupIndex{0}], ElementsAre(RoomFor(200, 800, 8), RoomFor(600, 900, 9)));
  EXPECT_THAT(growth_, IsEmpty());
  int64_t expected = 0;
  for (const ExpectedPlace& place : plan_.expected) {
    EXPECT_EQ(place.node, NodeIndex{-1});
    EXPECT_EQ(place.group, GroupIndex{0});
    expected += place.count;
  }
  EXPECT_EQ(expected, 3);
}

// Largest first: 900 go to the node on its way, 700 need a new one, and 600 are left on the one that is
// there.
TEST_F(LoopGrowthTest, NodesThatAreThereComeBeforeThoseOnTheirWayAndNewOnes) {
  AddGroup("g", /*target=*/2, 9);
  AddNode("a", 0, {PodOf(400, 0)});
  Wait(PodOf(600, 10), 1);
  Wait(PodOf(700, 20), 1);
  Wait(PodOf(900, 30), 1);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(plan_.expected, UnorderedElementsAre(ExpectedPlace{0, 1, NodeIndex{0}},
                                                   ExpectedPlace{2, 1, NodeIndex{-1}, GroupIndex{0}}));
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
  ASSERT_EQ(rooms.coming.size(), 1U);
  EXPECT_THAT(rooms.coming[GroupIndex{0}], ElementsAre(RoomFor(100, 970, 9), RoomFor(300, 980, 9)))
      << "first the one on its way, which the largest pod takes";
}

// 3 pods of 400 need two new nodes: one with two of them, one with the third.
TEST_F(LoopGrowthTest, PodsTakeTheirRoomOfNewNodes) {
  AddGroup("g", /*target=*/0, 9);
  Wait(PodOf(400, 100), 3);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 2, 0}));
  ASSERT_EQ(rooms.coming.size(), 1U);
  EXPECT_THAT(rooms.coming[GroupIndex{0}], UnorderedElementsAre(RoomFor(200, 800, 8), RoomFor(600, 900, 9)));
}

TEST_F(LoopGrowthTest, DaemonsAreOnEveryNode) {
  AddGroup("g", /*target=*/1, 9);
  problem_.daemons = {cluster_.Incoming(PodOf(100, 200))};
  Wait(PodOf(800, 0), 2);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(rooms.empty, ElementsAre(RoomFor(900, 800, 9)));
  ASSERT_EQ(rooms.coming.size(), 1U);
  EXPECT_THAT(rooms.coming[GroupIndex{0}], ElementsAre(RoomFor(100, 800, 8), RoomFor(100, 800, 8)));
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 0}));
}

TEST_F(LoopGrowthTest, PodsBelowTheCutoffHoldNoRoom) {
  AddGroup("g", /*target=*/1, 9);
  FitPod expendable = PodOf(1000, 0);
  expendable.traits.priority = -11;
  AddNode("a", 0, {expendable});
  Wait(PodOf(600, 0), 1);
  Grow();
  EXPECT_THAT(plan_.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{0}}));
  EXPECT_THAT(growth_, IsEmpty());
}

// One is there, one is on its way: two more make four.
TEST_F(LoopGrowthTest, AGroupThatHasAllOrNoneGrowsToItsMaximum) {
  AddGroup("g", /*target=*/2, 4);
  problem_.groups[GroupIndex{0}].atomic = true;
  AddNode("a", 0, {PodOf(1000, 0)});
  Wait(PodOf(900, 50), 2);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 2, 0}));
  ASSERT_EQ(rooms.coming.size(), 1U);
  EXPECT_THAT(rooms.coming[GroupIndex{0}],
              ElementsAre(RoomFor(100, 950, 9), RoomFor(100, 950, 9), RoomFor(1000, 1000, 10)));
}

// All together may grow by 3: the cheap group would take 4, and so the other one takes the pod.
TEST_F(LoopGrowthTest, AGroupThatHasAllOrNoneWaitsWhereTheLimitOfAllDoesNotPermitIt) {
  AddGroup("whole", /*target=*/0, 4);
  problem_.groups[GroupIndex{0}].atomic = true;
  problem_.groups[GroupIndex{0}].usd_per_hour = 0.1;
  AddGroup("single", /*target=*/0, 4);
  Wait(PodOf(900, 0), 1);
  problem_.growth.max_new_nodes = 3;
  Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));
  problem_.growth.max_new_nodes = 4;
  Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 4, 0}));
}

// Each pod wants one of the groups: alone each may grow, and by 4 + 1 nodes together only where all may.
TEST_F(LoopGrowthTest, AGroupThatHasAllOrNoneTakesNothingFromOthers) {
  AddGroup("whole", /*target=*/0, 4);
  problem_.groups[GroupIndex{0}].atomic = true;
  AddGroup("single", /*target=*/0, 4);
  for (const char* const pool : {"whole", "single"}) {
    FitPod pod = PodOf(900, 0);
    pod.rules.node_selector = MakeLabels({{"pool", pool}});
    Wait(pod, 1);
  }
  problem_.growth.max_new_nodes = 4;
  Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));
  EXPECT_THAT(plan_.scale_up.unplaced, ElementsAre(1, 0));
  problem_.growth.max_new_nodes = 5;
  Grow();
  EXPECT_THAT(growth_, ElementsAre(LoopGrowth{GroupIndex{0}, 4, 0}, LoopGrowth{GroupIndex{1}, 1, 0}));
  EXPECT_THAT(plan_.scale_up.unplaced, ElementsAre(0, 0));
}

TEST_F(LoopGrowthTest, NodesOnTheirWayThatNobodyLookedAtAreSaidToLack) {
  AddGroup("g", /*target=*/2, 9);
  Wait(PodOf(400, 0), 1);
  EXPECT_FALSE(Grow(WorkBudget(0)).complete);
  EXPECT_THAT(growth_, IsEmpty());
}

// Three of 10 nodes are there and 2 on their way, and the plan adds one: 4 are left, of which all together
// leave 3.
TEST_F(LoopGrowthTest, MayAddKeepsToTheMaximumOfTheGroupAndOfAll) {
  AddGroup("g", /*target=*/5, 10);
  AddGroup("other", /*target=*/0, 10);
  for (const char* const name : {"a", "b", "c"}) AddNode(name, 0);
  LoopFacts facts = Facts();
  GrowthLedger ledger(facts);
  ledger.Of(GroupIndex{0}).for_slack = 1;
  ledger.Of(GroupIndex{1}).for_utilization = 2;
  EXPECT_EQ(ledger.NewNodesLeft(), std::nullopt);
  EXPECT_EQ(ledger.MayAdd(GroupIndex{0}), 4);
  EXPECT_EQ(ledger.MayAdd(GroupIndex{1}), 8);
  facts.max_new_nodes = 6;
  EXPECT_EQ(ledger.NewNodesLeft(), 3);
  EXPECT_EQ(ledger.MayAdd(GroupIndex{0}), 3);
  problem_.groups[GroupIndex{0}].atomic = true;
  EXPECT_EQ(ledger.MayAdd(GroupIndex{0}), 0) << "all four or none";
  facts.max_new_nodes = 7;
  EXPECT_EQ(ledger.MayAdd(GroupIndex{0}), 4);
  facts.max_new_nodes = 2;
  EXPECT_EQ(ledger.NewNodesLeft(), 0) << "more are added already";
}

TEST_F(LoopGrowthTest, MayAddIsNothingWhereAGroupMayNotGrow) {
  AddGroup("g", /*target=*/0, 10);
  problem_.drain.cluster = &cluster_.state();
  const auto after = [&](void (*change)(LoopProblem*)) {
    LoopProblem changed = problem_;
    change(&changed);
    const LoopFacts facts(changed);
    return GrowthLedger(facts).MayAdd(GroupIndex{0});
  };
  EXPECT_EQ(after([](LoopProblem*) {}), 10);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->groups[GroupIndex{0}].blocked_reason = "back-off"; }),
            0);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->groups[GroupIndex{0}].usd_per_hour.reset(); }), 0);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->groups[GroupIndex{0}].model.reset(); }), 0);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->groups[GroupIndex{0}].sized = true; }), 0);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->decisions.scale_up = false; }), 0);
  EXPECT_EQ(after([](LoopProblem* problem) { problem->groups[GroupIndex{0}].target = 10; }), 0);
}

// Slack knows the groups by other numbers: its first is our third.
TEST_F(LoopGrowthTest, SlackGetsWhatIsLeft) {
  AddGroup("a", /*target=*/0, 2);
  AddGroup("b", /*target=*/0, 9);
  AddGroup("c", /*target=*/0, 5);
  problem_.groups[GroupIndex{1}].atomic = true;
  const LoopFacts facts = Facts();
  GrowthLedger ledger(facts);
  const StrongVector<SlackGroupIndex, GroupIndex> positions = {GroupIndex{2}, GroupIndex{0}, GroupIndex{1}};
  ledger.Of(GroupIndex{0}).for_pods = 1;
  const std::vector<SlackDemand> first = {
      {.class_name = "x",
       .nodes = 9,
       .placeholders = {},
       .groups = {{SlackGroupIndex{0}, 3}, {SlackGroupIndex{1}, 4}, {SlackGroupIndex{2}, 0}}},
      {.class_name = "y", .nodes = 4, .placeholders = {}, .groups = {{SlackGroupIndex{0}, 4}}}};
  GrowForSlack(first, positions, &ledger);
  EXPECT_THAT(ledger.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 1}, LoopGrowth{GroupIndex{2}, 0, 5}));
  const std::vector<SlackDemand> second = {
      {.class_name = "z", .nodes = 1, .placeholders = {}, .groups = {{SlackGroupIndex{2}, 1}}}};
  GrowForSlack(second, positions, &ledger);
  EXPECT_THAT(ledger.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1, 1}, LoopGrowth{GroupIndex{1}, 0, 9},
                                         LoopGrowth{GroupIndex{2}, 0, 5}))
      << "one that has all or none grows as a whole";
}

TEST_F(LoopGrowthTest, PodsFindTheNodesAgainThatWereAskedForThem) {
  AddGroup("a", /*target=*/2, 9);
  // 400 + 300 + 300 on each. Largest first, both of 400 take one node, and a pod of 300 would be left.
  Wait(PodOf(400, 1), 2);
  Wait(PodOf(300, 1), 4);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(growth_, IsEmpty());
  EXPECT_THAT(plan_.scale_up.nodes, IsEmpty());
  int64_t expected = 0;
  for (const ExpectedPlace& place : plan_.expected) {
    EXPECT_EQ(place.group, GroupIndex{0});
    expected += place.count;
  }
  EXPECT_EQ(expected, 6);
  EXPECT_THAT(rooms.used, ElementsAre(2));
  EXPECT_THAT(rooms.coming[GroupIndex{0}], ElementsAre(RoomFor(0, 997, 7), RoomFor(0, 997, 7)));
}

TEST_F(LoopGrowthTest, NodesOnTheirWayThatAreNotNeededStayEmpty) {
  AddGroup("a", /*target=*/2, 9);
  AddGroup("b", /*target=*/1, 9);
  FitNode small = Machine("b");
  small.allocatable[0].second = 200;  // it takes none of the pods
  problem_.groups[GroupIndex{1}].model = NodeModel{cluster_.Shape(small)};
  Wait(PodOf(400, 1), 2);
  Wait(PodOf(300, 1), 4);
  const GroupRooms rooms = Grow();
  EXPECT_THAT(growth_, IsEmpty());
  EXPECT_THAT(rooms.used, ElementsAre(2, 0));
  EXPECT_THAT(rooms.coming[GroupIndex{0}], ElementsAre(RoomFor(0, 997, 7), RoomFor(0, 997, 7)));
  EXPECT_THAT(rooms.coming[GroupIndex{1}], ElementsAre(RoomFor(200, 1000, 10)));
}

TEST_F(LoopGrowthTest, NewNodesHaveRoomForPodsAsASchedulerSpreadsThem) {
  AddGroup("a", 0, 9);
  // Two nodes hold all: 600 + 2 * 200, and 5 * 200. Where small ones come first they take 800 and 600 of
  // them, and the large one has no place.
  Wait(PodOf(600, 1), 1);
  Wait(PodOf(200, 1), 7);
  Grow();
  ASSERT_EQ(growth_.size(), 1U);
  EXPECT_EQ(growth_[0].for_pods, 3);
}

TEST_F(LoopGrowthTest, RoomCostsNoMoreThanANodeForEachPodLeftOver) {
  AddGroup("a", 0, /*max_nodes=*/30);
  // Eleven nodes: 500 + 500, and 5 * 200. Where small ones come first they keep a large one each from five
  // nodes, and three are left over. With any reserve each large one needs a node of its own: nine nodes more.
  Wait(PodOf(500, 1), 20);
  Wait(PodOf(200, 1), 5);
  Grow();
  ASSERT_EQ(growth_.size(), 1U);
  EXPECT_EQ(growth_[0].for_pods, 11);
}

TEST_F(LoopGrowthTest, MorePodsThanThatAreNotLeftOverForRoom) {
  AddGroup("a", 0, /*max_nodes=*/2);
  Wait(PodOf(600, 1), 1);
  Wait(PodOf(200, 1), 7);
  Grow();
  ASSERT_EQ(growth_.size(), 1U);
  EXPECT_EQ(growth_[0].for_pods, 2);
  EXPECT_EQ(CountUnplaced(plan_.scale_up), 0);
}

}  // namespace
}  // namespace loadline
