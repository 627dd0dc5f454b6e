// The maxima of the cluster: --cores-total, --memory-total and --gpu-total.
#include "core/grow/resource_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ResourceRoomTest, WithoutALimitAnyNumberMayCome) {
  ResourceRoom room;
  EXPECT_TRUE(room.unlimited());
  room.Take({kMaxAmount, kMaxAmount}, 1'000);
  EXPECT_EQ(room.MostNodes({1, 1}), std::nullopt);
  EXPECT_THAT(room.ExceededBy({kMaxAmount, kMaxAmount}), IsEmpty());
}

TEST(ResourceRoomTest, TheScarcerResourceCounts) {
  ResourceRoom room(std::vector<NodeMaximum>{{.milli_cpu = 10'000, .memory_bytes = 100}});
  EXPECT_FALSE(room.unlimited());
  EXPECT_EQ(room.MostNodes({2'000, 10}), 5) << "an exact fit";
  EXPECT_EQ(room.MostNodes({2'001, 10}), 4) << "one unit short";
  EXPECT_EQ(room.MostNodes({1'000, 30}), 3);
  EXPECT_EQ(room.MostNodes({0, 50}), 2);
  EXPECT_EQ(room.MostNodes({0, 0}), std::nullopt) << "a node that offers nothing exceeds nothing";
  EXPECT_EQ(ResourceRoom(std::vector<NodeMaximum>{{.memory_bytes = 100}}).MostNodes({1, 40}), 2);
}

TEST(ResourceRoomTest, NodesTakeOfItAndNeverMoreThanThereIs) {
  ResourceRoom room(std::vector<NodeMaximum>{{.milli_cpu = 10'000, .memory_bytes = 100}});
  room.Take({3'000, 10}, 2);
  EXPECT_EQ(room.MostNodes({2'000, 10}), 2);
  EXPECT_THAT(room.ExceededBy({4'000, 80}), IsEmpty());
  EXPECT_THAT(room.ExceededBy({4'001, 80}), ElementsAre("cpu"));
  EXPECT_THAT(room.ExceededBy({4'001, 81}), ElementsAre("cpu", "memory"));
  room.Take({kMaxAmount, 1}, kMaxAmount);
  EXPECT_EQ(room.MostNodes({1, 1}), 0);
  EXPECT_THAT(room.ExceededBy({1, 0}), ElementsAre("cpu"));
}

TEST(ResourceRoomTest, ATenthIsLeft) {
  const Labels labels = MakeLabels({{"pool", "a"}});
  const Labels others = MakeLabels({{"pool", "b"}});
  const CountedNode node{{10, 0}, &labels};
  std::vector<NodeMaximum> maxima = {{.milli_cpu = 100, .memory_bytes = 100},
                                     {.selector = Select("pool", "a"), .nodes = 11}};
  ResourceRoom room(maxima);
  room.Take({{10, 100}, &others}, 1);
  EXPECT_TRUE(room.LeavesTenth(node, maxima)) << "it offers no memory";
  EXPECT_FALSE(room.LeavesTenth({{10, 1}, &labels}, maxima));
  room.Take({{8, 0}, &labels}, 9);
  EXPECT_TRUE(room.LeavesTenth(node, maxima)) << "18 of 100 and 2 of 11";
  room.Take({{8, 0}, &labels}, 1);
  EXPECT_FALSE(room.LeavesTenth(node, maxima)) << "10 of 100, and 1 of 11";
  EXPECT_TRUE(room.LeavesTenth({{10, 0}, &others}, maxima));
  room.Take({{1, 0}, &others}, 1);
  EXPECT_FALSE(room.LeavesTenth({{10, 0}, &others}, maxima)) << "9 of 100";
}

TEST(ResourceRoomTest, GPUsOfEachTypeCountByThemselves) {
  ResourceRoom room(std::vector<NodeMaximum>{{.gpus = {{"t4", 10}, {"v100", 0}}}});
  EXPECT_FALSE(room.unlimited());
  EXPECT_EQ(room.MostNodes({1, 1, "t4", 5}), 2) << "an exact fit";
  EXPECT_EQ(room.MostNodes({1, 1, "t4", 6}), 1);
  EXPECT_EQ(room.MostNodes({1, 1, "v100", 1}), 0);
  EXPECT_EQ(room.MostNodes({1, 1, "a100", 8}), std::nullopt) << "a type without a maximum";
  EXPECT_EQ(room.MostNodes({1, 1}), std::nullopt) << "a node without GPUs";
  room.Take({1, 1, "t4", 4}, 2);
  room.Take({1, 1, "a100", 8}, 100);
  EXPECT_THAT(room.ExceededBy({1, 1, "t4", 3}), ElementsAre("t4"));
  EXPECT_THAT(room.ExceededBy({1, 1, "t4", 2}), IsEmpty());
  room.Take({1, 1, "t4", kMaxAmount}, kMaxAmount);
  EXPECT_EQ(room.MostNodes({1, 1, "t4", 1}), 0);
}

LabelSelector TeamIs(const std::string& team) {
  return {.requirements = {{.key = "team", .op = SelectorOperator::kIn, .values = {team}}}};
}

TEST(ResourceRoomTest, OnlySelectedNodesCountAndEachMaximumHolds) {
  const Labels a(std::vector<Label>{{"team", "a"}});
  const Labels b(std::vector<Label>{{"team", "b"}});
  ResourceRoom room(
      {{.milli_cpu = 10'000}, {.name = "quota/a", .selector = TeamIs("a"), .nodes = 4, .milli_cpu = 6'000}});
  EXPECT_EQ(room.MostNodes({{1'000, 0}, &a}), 4);
  EXPECT_EQ(room.MostNodes({{2'000, 0}, &a}), 3);
  EXPECT_EQ(room.MostNodes({{1'000, 0}, &b}), 10);
  room.Take({{1'000, 0}, &b}, 5);
  EXPECT_EQ(room.MostNodes({{2'000, 0}, &a}), 2) << "5 of 10 cores are left for all";
  room.Take({{500, 0}, &a}, 4);
  EXPECT_THAT(room.ExceededBy({{3'001, 0}, &b}), ElementsAre("cpu"));
  EXPECT_THAT(room.ExceededBy({{4'001, 0}, &a}), ElementsAre("cpu", "cpu of quota/a", "nodes of quota/a"));
}

// Nodes of the fixture have 1,000,000 units of memory.
class MaximumTest : public LoopTest {
 protected:
  static int64_t CpuOf(const LoopPlan& plan, const StrongVector<GroupIndex, int64_t>& cpu_of_groups) {
    int64_t cpu = 0;
    for (const LoopGrowth& growth : plan.growth) {
      cpu += growth.nodes() * cpu_of_groups[growth.group];
    }
    return cpu;
  }
};

// 10 cores, less one of a node of no group, two of g and two that are on their way: five more.
TEST_F(MaximumTest, NodesThatAreThereAndOnTheirWayCount) {
  AddGroup("g", 1000, 1, /*target=*/4, /*max=*/20);
  nodes_ = {{NodeOf("other", 1000), {}, std::nullopt}, {NodeOf("a", 1000), {}}, {NodeOf("b", 1000), {}}};
  for (TestNode& node : nodes_) node.pods = {Replica(node.node.name + "-full", 1000)};
  Pending(Replica("w", 1000), 12);
  problem_.maxima = {{.milli_cpu = 10'000}};
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 5}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(5)) << "two come with the nodes on their way";
  EXPECT_THAT(plan.at_maximum, ElementsAre(GroupAtMaximum{GroupIndex{0}, {"cpu"}}));

  problem_.maxima = {{.milli_cpu = 10'999, .memory_bytes = 7'999'999}};
  plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2})) << "memory for seven nodes";
  EXPECT_THAT(plan.at_maximum, ElementsAre(GroupAtMaximum{GroupIndex{0}, {"memory"}}));

  problem_.maxima = {{.milli_cpu = 12'000}};
  plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 7}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(3));

  problem_.maxima = {};
  plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 10}));
  EXPECT_THAT(plan.at_maximum, IsEmpty());
}

// Team a has one node and may have three. Both teams have two and may have six.
TEST_F(MaximumTest, SelectedNodesCount) {
  AddGroup("a", 1000, 1, /*target=*/1, /*max=*/20);
  AddGroup("b", 1000, 2, /*target=*/1, /*max=*/20);
  nodes_ = {{NodeOf("a1", 1000), {}, GroupIndex{0}}, {NodeOf("b1", 1000), {}, GroupIndex{1}}};
  for (size_t i = 0; i < 2; ++i) {
    nodes_[i].node.labels = templates_[IndexAt<GroupIndex>(i)].labels = {{"team", i == 0 ? "a" : "b"}};
    nodes_[i].pods = {Replica(nodes_[i].node.name + "-full", 1000)};
  }
  Pending(Replica("w", 1000), 10);
  problem_.maxima = {{.name = "quota/a", .selector = TeamIs("a"), .nodes = 3}};
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2}, LoopGrowth{GroupIndex{1}, 8}));
  EXPECT_THAT(plan.at_maximum, ElementsAre(GroupAtMaximum{GroupIndex{0}, {"nodes of quota/a"}}));

  problem_.maxima.push_back({.milli_cpu = 6'000});
  plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2}, LoopGrowth{GroupIndex{1}, 2}));
  EXPECT_THAT(plan.at_maximum, ElementsAre(GroupAtMaximum{GroupIndex{0}, {"nodes of quota/a", "cpu"}},
                                           GroupAtMaximum{GroupIndex{1}, {"cpu"}}));
}

// A template often lacks the labels that kubelets add. Where most nodes have them, new ones are counted so.
TEST_F(MaximumTest, NewNodesAreSelectedAsMostNodesOfTheirGroupAre) {
  AddGroup("g", 1000, 1, /*target=*/2, /*max=*/20);
  nodes_ = {{NodeOf("g1", 1000), {Replica("a", 1000)}}, {NodeOf("g2", 1000), {Replica("b", 1000)}}};
  nodes_[0].node.labels = {{"team", "a"}};
  Pending(Replica("w", 1000), 10);
  problem_.maxima = {{.name = "quota/a", .selector = TeamIs("a"), .nodes = 3}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 10})) << "one of two is not most";
  nodes_[1].node.labels = {{"team", "a"}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}));
}

TEST_F(MaximumTest, AClusterBeyondItsMaximumDoesNotGrow) {
  AddGroup("g", 1000, 1, /*target=*/0);
  nodes_ = {{NodeOf("other", 4000), {Replica("full", 4000)}, std::nullopt}};
  Pending(Replica("w", 1000), 1);
  problem_.maxima = {{.milli_cpu = 3'000}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(1));
}

// Two groups are needed, since their pods ask for a device that the nodes of the other one do not have. Each
// alone stays within ten cores. The first one gets its eight; the second one of two, and the rest of its pods
// wait.
TEST_F(MaximumTest, GroupsShareIt) {
  AddGroup("large", 8000, 8, 0);
  AddGroup("small", 2000, 1, 0);
  templates_[GroupIndex{0}].allocatable.emplace_back("example.com/l", 1);
  templates_[GroupIndex{1}].allocatable.emplace_back("example.com/s", 1);
  FitPod large = Replica("l", 8000);
  large.requests.emplace_back("example.com/l", 1);
  FitPod small = Replica("s", 2000);
  small.requests.emplace_back("example.com/s", 1);
  small.traits.owner->uid = "uid-s";
  Pending(large, 1);
  Pending(small, 4);
  problem_.maxima = {{.milli_cpu = 10'000}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}, LoopGrowth{GroupIndex{1}, 1}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0, 3));
  EXPECT_EQ(plan.at_maximum.size(), 2u);
}

// A larger node would be cheaper for all, and is more than there may be.
TEST_F(MaximumTest, SmallerNodesComeWhereLargeOnesMayNot) {
  AddGroup("large", 8000, 1, 0);
  AddGroup("small", 2000, 1, 0);
  Pending(Replica("w", 1000), 8);
  problem_.maxima = {{.milli_cpu = 7'000}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 3}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(2));
}

TEST_F(MaximumTest, AGroupOfAllNodesOrNoneComesAsAWholeOrNotAtAll) {
  AddGroup("all", 1000, 1, 0, /*max=*/4);
  problem_.groups[GroupIndex{0}].atomic = true;
  Pending(Replica("w", 1000), 1);
  problem_.maxima = {{.milli_cpu = 4'000}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 4}));
  problem_.maxima = {{.milli_cpu = 3'999}};
  EXPECT_THAT(Plan().growth, IsEmpty());
}

// Each of the two fits alone. The first one is added, and then nothing is left for the second one.
TEST_F(MaximumTest, OfTwoGroupsOfAllNodesOrNoneOneComes) {
  for (const std::string name : {"a", "b"}) {
    AddGroup(name, 1000, 1, 0, /*max=*/3);
    problem_.groups.back().atomic = true;
  }
  Pending(Replica("w", 1000), 6);
  problem_.maxima = {{.milli_cpu = 5'000}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 3}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(3));
}

TEST_F(MaximumTest, SlackTakesOnlyWhatPodsLeave) {
  problem_.decisions.slack = true;
  problem_.slack.rate = kWholeRate;
  AddGroup("g", 1000, 1, /*target=*/1, /*max=*/20);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  Pending(Replica("w", 1000), 2);
  const StrongVector<GroupIndex, int64_t> cpu = {1000};
  const LoopPlan all = Plan();
  ASSERT_EQ(all.growth.size(), 1u);
  ASSERT_GT(all.growth[0].for_slack, 1);
  slack_ = {};
  problem_.maxima = {{.milli_cpu = 4'000}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2, 1}));
  EXPECT_EQ(CpuOf(plan, cpu), 3'000);
}

// Whatever is asked for, and in whatever mix of groups, growth stays within the maxima.
TEST_F(MaximumTest, NoMixOfGroupsExceedsIt) {
  const StrongVector<GroupIndex, int64_t> cpu = {1000, 2000, 4000, 7000};
  for (const GroupIndex group : cpu.indices()) {
    const size_t i = IndexOf(group);
    AddGroup(std::string(1, static_cast<char>('a' + i)), cpu[group], 1 + 0.1 * static_cast<double>(i), 0,
             /*max=*/5);
  }
  problem_.groups[GroupIndex{1}].atomic = true;
  for (const int64_t size : {500, 900, 3'000, 6'500}) {
    FitPod pod = Replica("w", size);
    pod.traits.owner->uid = std::to_string(size);
    Pending(pod, 4);
  }
  for (int64_t maximum = 0; maximum <= 40'000; maximum += 1'300) {
    problem_.maxima = {{.milli_cpu = maximum}};
    const LoopPlan plan = Plan();
    EXPECT_LE(CpuOf(plan, cpu), maximum);
    if (maximum >= 1'000) {
      EXPECT_FALSE(plan.growth.empty()) << maximum;
    }
  }
}

// Nodes of 4 GPUs: one that is there, one that is on its way, and one whose devices are not there yet, of at
// most 20 in all: two more.
TEST_F(MaximumTest, GPUsThatAreThereAndOnTheirWayCount) {
  AddGroup("g", 1000, 1, /*target=*/3, /*max=*/20);
  templates_[GroupIndex{0}].allocatable.push_back({"nvidia.com/gpu", 4});
  templates_[GroupIndex{0}].labels = {{"accelerator", "t4"}};
  FitNode there = templates_[GroupIndex{0}];
  there.name = "a";
  FitNode young = NodeOf("b", 1000);
  young.labels = templates_[GroupIndex{0}].labels;
  nodes_ = {{there, {}}, {young, {}}};
  for (TestNode& node : nodes_) node.pods = {Replica(node.node.name + "-full", 1000)};
  Pending(Replica("w", 1000), 12);
  problem_.maxima = {{.gpus = {{"t4", 20}}}};
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2}));
  EXPECT_THAT(plan.at_maximum, ElementsAre(GroupAtMaximum{GroupIndex{0}, {"t4"}}));
  problem_.maxima = {{.gpus = {{"v100", 0}}}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 11}));
  problem_.maxima = {{.gpus = {{"t4", 0}}}};
  EXPECT_THAT(Plan().growth, IsEmpty());
  problem_.scale_down.eligibility.utilization.gpu_labels = {"other"};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 11})) << "the label tells the type";
}

}  // namespace
}  // namespace loadline
