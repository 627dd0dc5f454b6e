// Moves that are carried out over several loops.
#include "core/replace/replacement.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "core/cluster/node_annotations.h"
#include "core/drain/node_reason.h"
#include "core/observe/action_outcomes.h"
#include "test/core/replace/replacement_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Phase = MoveUnderWay::Phase;

TEST_F(ReplacementTest, NewNodesComeFirstThenOldOnesGo) {
  TwoSmallNodes();
  const LoopPlan ordered = Loop();
  ASSERT_THAT(ordered.growth, SizeIs(1));
  EXPECT_EQ(ordered.growth[0].group, GroupIndex{1});
  EXPECT_EQ(ordered.growth[0].for_replacement, 1);
  EXPECT_EQ(ordered.growth[0].nodes(), 1);
  EXPECT_THAT(Started(ordered), IsEmpty());
  ASSERT_THAT(memory_.moves, SizeIs(1));
  EXPECT_EQ(memory_.moves[0].phase, Phase::kOrdered);

  const LoopPlan waits = Loop();
  EXPECT_THAT(waits.growth, IsEmpty());
  EXPECT_THAT(Started(waits), IsEmpty());

  Arrive("big-1", GroupIndex{1});
  const LoopPlan ready = Loop();
  EXPECT_EQ(memory_.moves[0].phase, Phase::kDraining);
  EXPECT_THAT(Started(ready), ElementsAre("small-1", "small-2"));
  Drain(ready);

  const LoopPlan done = Loop();
  EXPECT_THAT(memory_.moves, IsEmpty());
  ASSERT_THAT(done.replacement.ended, SizeIs(1));
  EXPECT_EQ(done.replacement.ended[0].why, "");
  ASSERT_THAT(nodes_, SizeIs(1));
  EXPECT_THAT(nodes_[0].pods, SizeIs(8));
  EXPECT_NEAR(Cost(), 0.18, 1e-12);
}

struct PriorityCase {
  std::string name;
  // The priorities of the groups small (2 cpu, 0.10), big (4 cpu, 0.18) and dear (4 cpu, 0.19).
  std::vector<std::optional<int64_t>> priorities;
  std::optional<int> grows = std::nullopt;  // the group of the node that replaces the old ones
  int64_t most_dear = 10;
  std::optional<RankStrategy> ranked_by = std::nullopt;
  bool large_pod = false;  // one of 3 cpu on a dear node, and not 8 of 0.5 cpu on two small ones
};

class ReplacementPriorityTest : public ReplacementTest, public testing::WithParamInterface<PriorityCase> {};

TEST_P(ReplacementPriorityTest, NewNodesAreOfTheGroupsThatGrowthPrefers) {
  const PriorityCase& c = GetParam();
  AddGroup("dear", 4000, 0.19, 0, c.most_dear);
  for (size_t i = 0; i < 3; ++i) problem_.groups[IndexAt<GroupIndex>(i)].priority = c.priorities[i];
  if (c.ranked_by.has_value()) problem_.ranking.emplace().policy.strategies = {*c.ranked_by};
  if (c.large_pod) {
    AddNode("dear-1", GroupIndex{2}, 1, 3000);
  } else {
    TwoSmallNodes();
  }
  std::optional<int> grows;
  for (const LoopGrowth& growth : Loop().growth) grows = static_cast<int>(growth.group);
  EXPECT_EQ(grows, c.grows);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReplacementPriorityTest,
                         testing::ValuesIn(std::vector<PriorityCase>{
                             {"ByPriceAlone", {{}, {}, {}}, 1},
                             {"TheCheaperOneIsOfALowerPriority", {{}, {}, 5}, 2},
                             {"NegativeIsAboveNone", {{}, {}, -5}, 2},
                             {"OldNodesAreOfTheHighest", {5, 1, {}}},
                             {"TheHighestIsFull", {{}, {}, 5}, 1, 0},
                             {"TheHighestIsFullOfOldNodes", {{}, 1, 5}, std::nullopt, 1, std::nullopt, true},
                             {"RankedByPrice", {{}, {}, 5}, 1, 10, RankStrategy::kPrice},
                             {"RankedByPriority", {{}, {}, 5}, 2, 10, RankStrategy::kPriority},
                             {"TheHighestTakesNoSuchPod", {5, 1, {}}, 1, 10, std::nullopt, true}}),
                         [](const auto& info) { return info.param.name; });

// Its group makes nodes of another kind than its template. The move would cost 0.30 USD per hour.
TEST_F(ReplacementTest, ANodeThatCameDearerThanItsTemplateEndsTheMove) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  const auto others = std::make_shared<NodesOfOtherPrices>();
  others->kinds.emplace_back().price.price = 0.5;
  others->kind_of[Slot{2}] = 0;
  problem_.groups[GroupIndex{1}].other_prices = others;
  const LoopPlan plan = Loop();
  EXPECT_THAT(Started(plan), ElementsAre("big-1")) << "it is empty";
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_THAT(plan.replacement.ended[0].why, testing::HasSubstr("it would save -0.3"));
}

TEST_F(ReplacementTest, NothingMovesUnlessItIsDecided) {
  TwoSmallNodes();
  problem_.decisions.replace = false;
  EXPECT_THAT(Loop().growth, IsEmpty());
  problem_.decisions.replace = true;
  problem_.replacement.options.mode = ConsolidationMode::kRemove;
  EXPECT_THAT(Loop().growth, IsEmpty());
}

// Nothing that would go without replacement stays because of it, whatever its pods cost.
TEST_F(ReplacementTest, OrdinaryDrainsGoAsWithoutIt) {
  AddNode("small-1", GroupIndex{0}, 1);
  AddNode("small-2", GroupIndex{0}, 1);
  problem_.replacement.prices.usd_per_pod = 1;  // ten hours of a small node
  Loop();
  EXPECT_THAT(Started(Loop(700'000)), SizeIs(1));
}

// Two small nodes that big ones could take over save 0.02 USD per hour, and their eight pods cost 0.4: 20
// hours. So a move begins once the load has stood still for 24, the next step of 1.5 hours that double.
TEST_F(ReplacementTest, ASavingLastsForAsLongAsTheLoadHasStoodStill) {
  TwoSmallNodes();
  problem_.replacement.prices.usd_per_pod = 0.05;
  EXPECT_THAT(Loop().growth, IsEmpty());
  ASSERT_TRUE(memory_.load.has_value());
  EXPECT_EQ(memory_.load->load.cpu, 8 * 500);
  EXPECT_THAT(Loop(23 * 3'600'000).growth, IsEmpty());
  EXPECT_THAT(Loop(3'600'000).growth, SizeIs(1));
}

TEST_F(ReplacementTest, ALoadThatChangesBeginsAnew) {
  TwoSmallNodes();
  problem_.replacement.prices.usd_per_pod = 0.05;
  Loop();
  Loop(23 * 3'600'000);
  nodes_[0].pods.pop_back();  // an eighth of the load, for nine minutes
  Loop(60'000);
  nodes_[0].pods.push_back(Replica("small-1-9", 500));
  EXPECT_THAT(Loop(8 * 60'000).growth, IsEmpty());
  EXPECT_EQ(memory_.load->since_ms, now_ms_ - (23 * 60 + 9) * kMinuteMs);
  nodes_[0].pods.pop_back();
  Loop(60'000);
  Loop(9 * 60'000);
  nodes_[0].pods.push_back(Replica("small-1-9", 500));
  EXPECT_THAT(Loop(3'600'000).growth, IsEmpty());
}

TEST_F(ReplacementTest, MovesBeginInWindowsOnly) {
  TwoSmallNodes();
  const int64_t next_s = kLoopNow + 10;
  problem_.replacement.windows = {{next_s - 9, next_s}, {next_s + 1, next_s + 100}};
  EXPECT_THAT(Loop().growth, IsEmpty());
  problem_.replacement.windows = {{next_s + 10, next_s + 11}};
  EXPECT_THAT(Loop().growth, SizeIs(1));
}

// The move takes both nodes of the group or none, and its drains keep to budgets as others do.
TEST_F(ReplacementTest, BudgetsOfGroupsHold) {
  TwoSmallNodes();
  std::vector<NodeBudget>& budgets = problem_.scale_down.deletion.budgets;
  budgets = {{.reasons = {RemovalReason::kReplaced}, .nodes = 1}};
  EXPECT_THAT(Loop().growth, IsEmpty());
  budgets = {{.groups = {"small"}, .nodes = 0}};
  EXPECT_THAT(Loop().growth, IsEmpty());
  budgets = {{.reasons = {RemovalReason::kEmpty}, .nodes = 0}, {.groups = {"big"}, .nodes = 0}, {.nodes = 2}};
  EXPECT_THAT(Loop().growth, SizeIs(1));
  Arrive("big-1", GroupIndex{1});
  budgets = {{.groups = {"small"}, .nodes = 50, .percent = true}};
  EXPECT_THAT(Started(Loop()), ElementsAre("small-1"));
}

// A node of the group that was there before is none that was added for the move.
TEST_F(ReplacementTest, OnlyNodesCreatedSinceTheOrderComeForIt) {
  TwoSmallNodes();
  AddNode("big-0", GroupIndex{1}, 8);
  nodes_.back().node.traits.created_s = now_ms_ / 1000 + 9;
  Loop();
  ASSERT_THAT(memory_.moves, SizeIs(1));
  Loop();
  EXPECT_THAT(memory_.moves[0].came, ElementsAre(0));
  Arrive("big-1", GroupIndex{1});
  Loop();
  EXPECT_THAT(memory_.moves[0].came, ElementsAre(FleetKey("big-1")));
}

// Nobody has to remember the nodes that are there.
TEST_F(ReplacementTest, AMoveBeginsHoweverManyNodesTheGroupHas) {
  TwoSmallNodes();
  problem_.groups[GroupIndex{1}].max_nodes = 20'000;
  for (int i = 0; i < 10'001; ++i) {
    AddNode("big-" + std::to_string(i), GroupIndex{1}, 1, 4000);
    nodes_.back().node.traits.annotations = BitOf(NodeAnnotation::kScaleDownDisabled);
  }
  EXPECT_THAT(Loop().replacement.begun, SizeIs(1));
}

TEST_F(ReplacementTest, PodsThatWaitGetNoneOfItsNodes) {
  TwoSmallNodes();
  Loop();
  Pending(Replica("new", 500), 1);
  const LoopPlan plan = Loop();
  ASSERT_THAT(plan.growth, SizeIs(1));
  EXPECT_EQ(plan.growth[0].for_pods, 1);
  EXPECT_THAT(plan.expected, IsEmpty());
}

TEST_F(ReplacementTest, MachinesThatDoNotComeEndIt) {
  TwoSmallNodes();
  Loop();
  EXPECT_THAT(Loop(15 * kMinuteMs - 1).replacement.ended, IsEmpty());
  problem_.groups[GroupIndex{1}].not_begun = 1;
  const LoopPlan plan = Loop(1);
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_THAT(plan.replacement.ended[0].why, HasSubstr("1 of its 1 new node has not come in time"));
  EXPECT_THAT(plan.take_back, ElementsAre(TakeBack{GroupIndex{1}, 1}));
  // One that arrives all the same is removed, and its old nodes are left alone.
  Arrive("big-1", GroupIndex{1});
  const LoopPlan late = Loop();
  EXPECT_THAT(Started(late), ElementsAre("big-1"));
  Drain(late);
  EXPECT_THAT(Loop().growth, IsEmpty());
  EXPECT_THAT(memory_.moves, IsEmpty());
  EXPECT_THAT(Loop(30 * kMinuteMs).growth, SizeIs(1)) << "it is tried again";
}

TEST_F(ReplacementTest, ARefusalOfTheCloudEndsIt) {
  TwoSmallNodes();
  Loop();
  OpenAction other{.group = "big", .at_ms = now_ms_ - 1};
  NoteRefusedGrowth(other, &memory_);
  EXPECT_THAT(Loop().replacement.ended, IsEmpty());
  OpenAction action{.group = "big", .at_ms = memory_.moves[0].at_ms};
  NoteRefusedGrowth(action, &memory_);
  EXPECT_THAT(Loop().replacement.ended, SizeIs(1));
}

TEST_F(ReplacementTest, ASavingThatIsGoneEndsItAndTheNewNodeGoes) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  problem_.groups[GroupIndex{1}].usd_per_hour = 0.20;
  const LoopPlan plan = Loop();
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_THAT(plan.replacement.ended[0].why, HasSubstr("not enough"));
  EXPECT_THAT(Started(plan), ElementsAre("big-1"));
}

TEST_F(ReplacementTest, APodWithoutAPlaceEndsIt) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  nodes_[2].pods.push_back(Replica("stranger", 500));
  const LoopPlan plan = Loop();
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_THAT(plan.replacement.ended[0].why, HasSubstr("has no place any more"));
  EXPECT_THAT(Started(plan), IsEmpty());
}

// Otherwise nothing else would begin until its drains have taken too long.
TEST_F(ReplacementTest, ATargetThatGoesEndsIt) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  EXPECT_THAT(Started(Loop()), SizeIs(2));
  ASSERT_EQ(memory_.moves[0].phase, Phase::kDraining);
  nodes_[2].pods.push_back(nodes_[0].pods.back());  // one pod has moved
  nodes_[0].pods.pop_back();
  EXPECT_THAT(Loop().replacement.ended, IsEmpty());
  nodes_.pop_back();
  const LoopPlan plan = Loop();
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_EQ(plan.replacement.ended[0].why, "a node that its pods move to is gone");
}

// A node that was added empty is removed by a move without pods and new nodes; then pods are placed on it
// after all.
TEST_F(ReplacementTest, AMoveThatStandsStillEnds) {
  AddNode("small-1", GroupIndex{0}, 0);
  Loop();
  ASSERT_THAT(memory_.moves, SizeIs(1));
  EXPECT_EQ(memory_.moves[0].phase, Phase::kDraining);
  nodes_[0].pods.push_back(Replica("late", 500));
  EXPECT_THAT(Loop(kMinuteMs - 1).replacement.ended, IsEmpty());
  const LoopPlan plan = Loop(1);
  ASSERT_THAT(plan.replacement.ended, SizeIs(1));
  EXPECT_THAT(plan.replacement.ended[0].why,
              HasSubstr("node small-1 cannot be removed: a pod of it fits nowhere else"));
  Loop();
  EXPECT_THAT(memory_.moves, IsEmpty());
}

// One node is about to go, and may have to wait for a delay after growth; the other one follows.
TEST_F(ReplacementTest, AMoveOfWhichOneNodeIsAboutToGoDoesNotStandStill) {
  TwoSmallNodes();
  Loop();
  Arrive("big-1", GroupIndex{1});
  Loop();
  ASSERT_EQ(memory_.moves[0].phase, Phase::kDraining);
  nodes_[1].pods.push_back(Replica("late", 100'000));
  const LoopPlan plan = Loop(kMinuteMs);
  EXPECT_THAT(Started(plan), ElementsAre("small-1"));
  EXPECT_THAT(plan.replacement.ended, IsEmpty());
}

// A budget that is used up has something left again later, and one that wants all of its pods never has.
TEST_F(ReplacementTest, AMoveWaitsForABudgetUnlessItLetsNoneGo) {
  for (const int32_t desired : {7, 8}) {
    nodes_.clear();
    memory_ = {};
    budget_of_all_.reset();
    for (NodeGroup& group : problem_.groups) group.target = 0;
    TwoSmallNodes();
    Loop();
    Arrive("big-1", GroupIndex{1});
    Loop();
    ASSERT_EQ(memory_.moves[0].phase, Phase::kDraining);
    DisruptionBudget& budget = budget_of_all_.emplace();
    budget.expected_pods = 8;
    budget.current_healthy = 7;
    budget.desired_healthy = desired;
    const LoopPlan plan = Loop(kMinuteMs);
    EXPECT_THAT(Started(plan), IsEmpty());
    EXPECT_THAT(plan.replacement.ended, SizeIs(desired == 7 ? 0 : 1)) << desired;
  }
}

TEST_F(ReplacementTest, ANewNodeIsNotDrainedWhileOthersAreOnTheirWay) {
  TwoSmallNodes();
  MoveUnderWay& move = memory_.moves.emplace_back();
  move.at_ms = move.step_ms = now_ms_;
  move.orders = {{"big", 2}};
  move.came = {0, 0};
  move.remove = {FleetKey("small-1"), FleetKey("small-2")};
  problem_.groups[GroupIndex{1}].target = 2;
  Arrive("big-1", GroupIndex{1});
  const LoopPlan plan = Loop();
  EXPECT_THAT(Started(plan), IsEmpty());
  const auto kept =
      std::find_if(plan.scale_down.keep.begin(), plan.scale_down.keep.end(),
                   [&](const DrainKeep& keep) { return nodes_[IndexOf(keep.slot)].node.name == "big-1"; });
  ASSERT_NE(kept, plan.scale_down.keep.end());
  EXPECT_EQ(kept->reason, NodeReason::kPartOfReplacement);
}

// The invariants at all times, by a plain count.
class RandomReplacementTest : public ReplacementTest, public ::testing::WithParamInterface<int> {
 protected:
  RandomReplacementTest() : random_(static_cast<uint32_t>(GetParam())) {
    problem_.groups.clear();
    templates_.clear();
    AddGroup("small", 2000, 0.10, 0, 40);
    AddGroup("big", 4000, 0.18, 0, 40);
    AddGroup("huge", 8000, 0.35, 0, 40);
    for (int i = 0; i < 8; ++i) {
      const GroupIndex group{Draw(3)};
      const int64_t cpu = Cpu(templates_[group].allocatable);
      AddNode("node-" + std::to_string(i), group, 0);
      for (int64_t left = cpu - 250 * Draw(static_cast<int>(cpu / 250)); left >= 250;) {
        const int64_t pod = std::min<int64_t>(left, 250 * (1 + Draw(6)));
        nodes_.back().pods.push_back(Replica("pod-" + std::to_string(pods_++), pod));
        left -= pod;
      }
    }
  }

  int Draw(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }

  void Check() const {
    size_t pods = 0;
    for (const TestNode& node : nodes_) {
      int64_t cpu = 0;
      for (const FitPod& pod : node.pods) cpu += Cpu(pod.requests);
      EXPECT_LE(cpu, Cpu(node.node.allocatable)) << node.node.name;
      pods += node.pods.size();
    }
    EXPECT_EQ(pods, static_cast<size_t>(pods_));
  }

  // Machines come after a loop or two; some never do.
  void ArriveSome(bool faults) {
    for (const GroupIndex group : problem_.groups.indices()) {
      const auto there = std::count_if(nodes_.begin(), nodes_.end(),
                                       [&](const TestNode& node) { return node.group == group; });
      for (int64_t i = there; i < problem_.groups[group].target; ++i) {
        if (faults ? Draw(20) == 0 : Draw(2) == 0) Arrive("new-" + std::to_string(arrived_++), group);
      }
    }
  }

  std::mt19937 random_;
  int pods_ = 0;
  int arrived_ = 0;
};

TEST_P(RandomReplacementTest, ComesToRestAndCostsNoMore) {
  double cost = Cost();
  int quiet = 0;
  for (int loop = 0; loop < 2'000 && quiet < 1'000; ++loop) {
    const LoopPlan plan = Loop(kMinuteMs);
    quiet = plan.replacement.begun.empty() && memory_.moves.empty() && Started(plan).empty() ? quiet + 1 : 0;
    Drain(plan);
    if (memory_.moves.empty()) {
      EXPECT_LE(Cost(), cost + 1e-9) << "loop " << loop;
      cost = Cost();
    }
    ArriveSome(/*faults=*/false);
    Check();
  }
  EXPECT_GE(quiet, 1'000);
}

TEST_P(RandomReplacementTest, HoldsWhenMachinesComeLateOrNever) {
  for (int loop = 0; loop < 200; ++loop) {
    for (NodeGroup& group : problem_.groups) group.not_begun = Draw(10) == 0 ? 1 + Draw(3) : 0;
    const LoopPlan plan = Loop(2 * kMinuteMs);
    Drain(plan);
    ArriveSome(/*faults=*/true);
    StrongVector<GroupIndex, int64_t> taken_back(problem_.groups.size());
    for (const TakeBack& back : plan.take_back) taken_back[back.group] += back.nodes;
    for (const GroupIndex group : taken_back.indices()) {
      EXPECT_LE(taken_back[group], problem_.groups[group].not_begun);
      problem_.groups[group].target -= taken_back[group];
    }
    Check();
  }
  EXPECT_LE(memory_.moves.size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomReplacementTest, ::testing::Range(1, 5));

}  // namespace
}  // namespace loadline
