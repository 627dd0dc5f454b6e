#include "core/slack/slack_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

GrowableNodes GroupOf(int32_t group, int64_t milli_cpu, std::optional<double> usd, int64_t may_add = 10) {
  return {.class_name = "class",
          .empty = {{milli_cpu, 10'000}, 10},
          .may_add = may_add,
          .usd_per_hour = usd,
          .group = SlackGroupIndex{group},
          .name = "group-" + std::to_string(group)};
}

AskedPlaceholders Asked(int64_t milli_cpu, int64_t count, int64_t memory = 100) {
  return {{PlaceholderKind::kStandard, "class", {milli_cpu, memory}}, count};
}

class GrowthSketchTest : public ::testing::Test {
 protected:
  // How many find no node.
  int64_t Ask(GrowthSketch* sketch, std::vector<AskedPlaceholders> asked) {
    return sketch->Ask(GrowthSketch::Allowed(sketch->growable().size(), true), std::move(asked), &budget_);
  }
  static std::vector<NewNodesOfGroup> Groups(const GrowthSketch& sketch) {
    std::vector<NewNodesOfGroup> groups;
    for (const SlackDemand& demand : sketch.demands()) {
      groups.insert(groups.end(), demand.groups.begin(), demand.groups.end());
    }
    return groups;
  }

  WorkBudget budget_;
};

// Five of 600m: five nodes of 1,000m for 5.00, or two of 2,000m for 4.40.
TEST_F(GrowthSketchTest, TheOptionThatCostsLeastIsTaken) {
  GrowthSketch sketch({GroupOf(0, 1'000, 1.0), GroupOf(1, 2'000, 2.2)});
  EXPECT_EQ(Ask(&sketch, {Asked(600, 5)}), 0);
  EXPECT_THAT(Groups(sketch), ElementsAre(NewNodesOfGroup{SlackGroupIndex{1}, 2}));
  EXPECT_THAT(sketch.demands()[0].placeholders, ElementsAre(Asked(600, 5)));
  EXPECT_EQ(sketch.demands()[0].nodes, 2);
  GrowthSketch dearer({GroupOf(0, 1'000, 1.0), GroupOf(1, 2'000, 2.6)});
  EXPECT_EQ(Ask(&dearer, {Asked(600, 5)}), 0);
  EXPECT_THAT(Groups(dearer), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 5}));
}

TEST_F(GrowthSketchTest, OptionsWithoutAPriceComeLastTheSmallestNodesFirst) {
  GrowthSketch priced({GroupOf(0, 1'000, std::nullopt), GroupOf(1, 2'000, 100)});
  EXPECT_EQ(Ask(&priced, {Asked(600, 1)}), 0);
  EXPECT_THAT(Groups(priced), ElementsAre(NewNodesOfGroup{SlackGroupIndex{1}, 1}));
  GrowthSketch unpriced({GroupOf(0, 2'000, std::nullopt), GroupOf(1, 1'000, std::nullopt)});
  EXPECT_EQ(Ask(&unpriced, {Asked(600, 1)}), 0);
  EXPECT_THAT(Groups(unpriced), ElementsAre(NewNodesOfGroup{SlackGroupIndex{1}, 1}));
}

TEST_F(GrowthSketchTest, ARankingDecidesOverThePrice) {
  const SlackRanking dearest = [](const std::vector<SlackOption>& options) {
    std::vector<size_t> order;
    for (size_t i = options.size(); i > 0; --i) order.push_back(i - 1);
    return order;
  };
  GrowthSketch sketch({GroupOf(0, 1'000, 1.0), GroupOf(1, 2'000, 2.2)}, dearest);
  EXPECT_EQ(Ask(&sketch, {Asked(600, 1)}), 0);
  EXPECT_THAT(Groups(sketch), ElementsAre(NewNodesOfGroup{SlackGroupIndex{1}, 1}));
}

TEST_F(GrowthSketchTest, LimitsOfAGroupAndOfAllHold) {
  GrowthSketch of_group({GroupOf(0, 1'000, 1.0, /*may_add=*/2), GroupOf(1, 2'000, 9.0, /*may_add=*/1)});
  EXPECT_EQ(Ask(&of_group, {Asked(600, 6)}), 1) << "two on small nodes, three on the large one";
  EXPECT_THAT(Groups(of_group),
              ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 2}, NewNodesOfGroup{SlackGroupIndex{1}, 1}));
  GrowthSketch of_all({GroupOf(0, 1'000, 1.0)}, nullptr, /*max_new_nodes=*/3);
  EXPECT_EQ(Ask(&of_all, {Asked(600, 5)}), 2);
  EXPECT_THAT(Groups(of_all), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 3}));
  EXPECT_EQ(Ask(&of_all, {Asked(400, 4)}), 1) << "beside what is there already";
}

// Pod slots as well: three per node.
TEST_F(GrowthSketchTest, SlotsAndMemoryBoundANodeToo) {
  GrowableNodes few = GroupOf(0, 1'000, 1.0);
  few.empty.slots = 3;
  GrowthSketch slots({few});
  EXPECT_EQ(Ask(&slots, {Asked(1, 7)}), 0);
  EXPECT_THAT(Groups(slots), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 3}));
  GrowthSketch memory({GroupOf(0, 1'000, 1.0)});
  EXPECT_EQ(Ask(&memory, {Asked(1, 7, /*memory=*/5'000)}), 0);
  EXPECT_THAT(Groups(memory), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 4}));
}

TEST_F(GrowthSketchTest, WhatNodesThatComeAnywayTakeIsNotAskedFor) {
  GrowthSketch sketch({GroupOf(0, 1'000, 1.0)});
  sketch.AddComing(0, {{700, 10'000}, 10});
  EXPECT_EQ(Ask(&sketch, {Asked(600, 2)}), 0);
  EXPECT_THAT(Groups(sketch), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 1}));
  EXPECT_THAT(sketch.demands()[0].placeholders, ElementsAre(Asked(600, 1)));
}

TEST_F(GrowthSketchTest, ASizeThatNoNodeTakesIsLeftAndTheOthersAreNot) {
  GrowthSketch sketch({GroupOf(0, 1'000, 1.0)});
  EXPECT_EQ(Ask(&sketch, {Asked(1'001, 2), Asked(1'000, 1)}), 2);
  EXPECT_THAT(Groups(sketch), ElementsAre(NewNodesOfGroup{SlackGroupIndex{0}, 1}));
  EXPECT_EQ(sketch.Ask({false}, {Asked(100, 1)}, &budget_), 1) << "the class may not be there";
}

TEST_F(GrowthSketchTest, WithoutWorkNothingIsAsked) {
  WorkBudget none(0);
  GrowthSketch sketch({GroupOf(0, 1'000, 1.0)});
  EXPECT_EQ(sketch.Ask({true}, {Asked(600, 2)}, &none), 2);
  EXPECT_THAT(sketch.demands(), IsEmpty());
}

}  // namespace
}  // namespace loadline
