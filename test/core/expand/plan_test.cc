#include "core/expand/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "test/core/expand/growth_question.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

FitPod Sized(int64_t milli_cpu, int64_t memory = 0) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}

FitPod OfApp(int64_t milli_cpu, const std::string& app) {
  FitPod pod = Sized(milli_cpu);
  pod.labels = {{"app", app}};
  return pod;
}

TEST(PlanTest, AMixOfGroups) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 10);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 8});
  question.Add({.name = "small", .milli_cpu = 2000, .usd = 2.5});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"large", 1}, {"small", 1}}));
  EXPECT_DOUBLE_EQ(plan.cost, 10.5);
  EXPECT_DOUBLE_EQ(plan.best_single.cost, 12.5);
  EXPECT_EQ(plan.best_single.nodes, 5);
  EXPECT_LE(plan.lower_bound, plan.cost);
  EXPECT_GE(plan.lower_bound, 9.9);
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  EXPECT_FALSE(plan.cut_short);
}

TEST(PlanTest, FurtherTypesCostAPenalty) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 10);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 8});
  question.Add({.name = "small", .milli_cpu = 2000, .usd = 2.5});
  question.options.usd_per_further_type = 1.9;
  EXPECT_DOUBLE_EQ(question.Ask().type_penalty, 1.9);
  question.options.usd_per_further_type = 2.1;
  const ScaleUpPlan plan = question.Ask();
  EXPECT_DOUBLE_EQ(plan.cost, 12.5);
  EXPECT_DOUBLE_EQ(plan.type_penalty, 0);
}

TEST(PlanTest, GroupsThatAreAlikeGrowEvenly) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 7);
  question.Add({.name = "c", .zone = "c"});
  question.Add({.name = "a", .current = 2, .zone = "a"});
  question.Add({.name = "b", .max = 1, .zone = "b"});
  EXPECT_EQ(NodesOf(question.Ask(), question),
            (std::map<std::string, int64_t>{{"a", 2}, {"b", 1}, {"c", 4}}));
}

TEST(PlanTest, LimitsOfGroupsAndOfAll) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 7);
  question.Add({.name = "cheap", .usd = 1, .max = 5, .current = 3});
  question.Add({.name = "dear", .usd = 2});
  ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"cheap", 2}, {"dear", 5}}));
  question.options.max_new_nodes = 4;
  plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
  EXPECT_DOUBLE_EQ(plan.cost, 2 * 1 + 2 * 2);
}

FitPod OfPool(const std::string& pool, int32_t priority) {
  FitPod pod = Sized(500);
  pod.rules.node_selector = Labels(std::vector<Label>{{"pool", pool}});
  pod.traits.priority = priority;
  return pod;
}

// One node may come: three pods of a low priority and less cost against one of a higher priority.
TEST(PlanTest, NoPodIsLeftOverForOneOfALowerPriority) {
  PlanningQuestion question;
  question.Pods(OfPool("low", 0), 3);
  question.Pods(OfPool("high", 1000), 1);
  question.Add({.name = "low", .usd = 0.2, .pool = "low"});
  question.Add({.name = "high", .usd = 0.3, .pool = "high"});
  EXPECT_EQ(NodesOf(question.Ask(), question), (std::map<std::string, int64_t>{{"high", 1}, {"low", 2}}))
      << "where there is room for both, both come";
  question.options.max_new_nodes = 1;
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"high", 1}}));
  EXPECT_THAT(plan.unplaced, ElementsAre(3, 0));
}

// A pod that fits no new node keeps nobody back, whatever its priority.
TEST(PlanTest, APodThatFitsNowhereDoesNotKeepOthersBack) {
  PlanningQuestion question;
  question.Pods(OfPool("low", 0), 3);
  question.Pods(OfPool("nowhere", 1000), 1);
  question.Add({.name = "low", .usd = 0.2, .pool = "low"});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"low", 2}}));
  EXPECT_THAT(plan.unplaced, ElementsAre(0, 1));
}

// Dear nodes that are preferred come first, as many as there may be; a joint plan chooses among equals.
TEST(PlanTest, GroupsOfAHigherPriorityGrowFirst) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 10);
  question.Add({.name = "cheap", .usd = 0.1});
  question.Add({.name = "first", .milli_cpu = 2000, .usd = 5, .max = 2, .priority = 100});
  question.Add({.name = "second", .milli_cpu = 2000, .usd = 3, .max = 2, .priority = -1});
  question.Add({.name = "equal", .usd = 1, .max = 1, .priority = -1});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question),
            (std::map<std::string, int64_t>{{"first", 2}, {"equal", 1}, {"second", 2}, {"cheap", 1}}));
  EXPECT_DOUBLE_EQ(plan.cost, 2 * 5 + 1 + 2 * 3 + 0.1);
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  question.options.max_new_nodes = 3;
  EXPECT_EQ(NodesOf(question.Ask(), question), (std::map<std::string, int64_t>{{"first", 2}, {"second", 1}}));
}

// Pods of one app keep apart by host: those beyond the preferred nodes need nodes of the other group.
TEST(PlanTest, PodsThatDependOnOthersSeeNodesOfHigherPriorities) {
  PlanningQuestion question;
  FitPod apart = OfApp(100, "web");
  apart.rules.anti_affinity = {Term(Select("app", "web"), kHostnameLabel)};
  question.Pods(apart, 5);
  question.Add({.name = "cheap", .usd = 0.1});
  question.Add({.name = "first", .usd = 5, .max = 2, .priority = 1});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"cheap", 3}, {"first", 2}}));
  const CheckedGrowth check = GrowthChecker(question, plan).Run();
  EXPECT_TRUE(check.adds_up);
  EXPECT_EQ(check.stuck, 0);
}

TEST(PlanTest, ExistingRoomComesFirst) {
  PlanningQuestion question;
  question.AddOld({.name = "old", .allocatable = {{"cpu", 2000}, {"memory", 10}, {"pods", 10}}});
  question.Pods(Sized(1000), 3);
  question.Add({.name = "new"});
  const ScaleUpPlan plan = question.Ask();
  ASSERT_EQ(plan.existing.size(), 1U);
  EXPECT_EQ(plan.existing[0].pods, (PodCount{0, 2}));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"new", 1}}));
}

TEST(PlanTest, ExistingRoomIsForTheHighestPriority) {
  PlanningQuestion question;
  question.AddOld({.name = "old", .allocatable = {{"cpu", 1000}, {"memory", 10}, {"pods", 10}}});
  question.Pods(Sized(1000), 1);
  FitPod high = Sized(900);
  high.traits.priority = 1000;
  question.Pods(high, 1);
  question.Add({.name = "new"});
  const ScaleUpPlan plan = question.Ask();
  ASSERT_EQ(plan.existing.size(), 1U);
  EXPECT_EQ(plan.existing[0].pods, (PodCount{1, 1}));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"new", 1}}));
}

TEST(PlanTest, PodsThatFitNowhereAreLeftOver) {
  PlanningQuestion question;
  question.Pods(Sized(5000), 3);
  question.Add({.name = "new"});
  ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
  EXPECT_EQ(plan.best_single.group, std::nullopt);
  EXPECT_TRUE(plan.nodes.empty());
  question.groups.clear();
  plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(3));
}

TEST(PlanTest, EachPoolTakesItsOwn) {
  PlanningQuestion question;
  for (const std::string pool : {"red", "blue"}) {
    FitPod pod = Sized(500);
    pod.rules.node_selector = Labels(std::vector<Label>{{"pool", pool}});
    question.Pods(pod, 3);
    question.Add({.name = pool, .pool = pool});
  }
  const ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(0, 0));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"blue", 2}, {"red", 2}}));
  EXPECT_EQ(plan.best_single.pods, 3);
}

TEST(PlanTest, OnePerHostTakesCheapNodes) {
  PlanningQuestion question;
  FitPod pod = OfApp(100, "db");
  pod.rules.anti_affinity = {Term(Select("app", "db"), kHostnameLabel)};
  question.Pods(pod, 5);
  question.Add({.name = "large", .milli_cpu = 8000, .usd = 4});
  question.Add({.name = "small", .milli_cpu = 1000, .usd = 1});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"small", 5}}));
  EXPECT_EQ(CheckGrowth(question, plan).stuck, 0);
}

// No group alone can take them: the zones have to grow together.
TEST(PlanTest, SpreadingOverZonesNeedsAllOfThem) {
  PlanningQuestion question;
  FitPod pod = OfApp(500, "web");
  pod.rules.has_spread = true;
  pod.rules.spread = {
      {.max_skew = 1, .topology_key = kZone, .selector = Select("app", "web"), .min_domains = 3}};
  question.Pods(pod, 12);
  for (const std::string zone : {"a", "b", "c"}) question.Add({.name = "group-" + zone, .zone = zone});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  EXPECT_EQ(NodesOf(plan, question),
            (std::map<std::string, int64_t>{{"group-a", 2}, {"group-b", 2}, {"group-c", 2}}));
  EXPECT_EQ(plan.best_single.pods, 1);
  const CheckedGrowth check = CheckGrowth(question, plan);
  EXPECT_TRUE(check.adds_up);
  EXPECT_EQ(check.stuck, 0);
}

// Two pods fit on a node: 4, 2 and 2 in the zones take four nodes, where 3, 3 and 2 would take five.
TEST(PlanTest, SpreadingOverZonesFillsWholeNodes) {
  PlanningQuestion question;
  FitPod pod = OfApp(500, "web");
  pod.rules.has_spread = true;
  pod.rules.spread = {{.max_skew = 2, .topology_key = kZone, .selector = Select("app", "web")}};
  question.Pods(pod, 8);
  for (const std::string zone : {"a", "b", "c"}) question.Add({.name = "group-" + zone, .zone = zone});
  const ScaleUpPlan plan = question.Ask();
  EXPECT_THAT(plan.unplaced, ElementsAre(0));
  EXPECT_EQ(NodesOf(plan, question),
            (std::map<std::string, int64_t>{{"group-a", 2}, {"group-b", 1}, {"group-c", 1}}));
  const CheckedGrowth check = CheckGrowth(question, plan);
  EXPECT_TRUE(check.adds_up);
  EXPECT_EQ(check.stuck, 0);
}

TEST(PlanTest, WithoutWorkTheAnswerSaysSo) {
  PlanningQuestion question;
  for (int64_t i = 1; i < 20; ++i) question.Pods(Sized(100 + i), 20);
  question.Add({.name = "new"});
  EXPECT_TRUE(question.Ask(WorkBudget(0)).cut_short);
}

// Nodes that are equal are one entry, however many there are.
TEST(PlanTest, AHundredMillionNodesAreOneEntry) {
  PlanningQuestion question;
  question.Pods(Sized(1000), 100'000'000);
  question.Add({.name = "a", .max = 2'000'000'000});
  question.Add({.name = "b", .max = 2'000'000'000});
  const ScaleUpPlan plan = question.Ask(WorkBudget(1'000'000, nullptr, int64_t{1} << 20));
  EXPECT_EQ(NodesOf(plan, question), (std::map<std::string, int64_t>{{"a", 50'000'000}, {"b", 50'000'000}}));
  EXPECT_EQ(plan.nodes.size(), 2U);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kNotEnded);
}

// Nodes for pods that depend on others are tried out one by one: as many as there is memory for.
TEST(PlanTest, NodesThatAreTriedOutEndWithTheMemory) {
  PlanningQuestion question;
  FitPod pod = OfApp(100, "db");
  pod.rules.anti_affinity = {Term(Select("app", "db"), kHostnameLabel)};
  question.Pods(pod, 100'000'000);
  question.Add({.name = "a", .max = 2'000'000'000});
  const int64_t bytes = int64_t{1} << 20;
  const ScaleUpPlan plan = question.Ask(WorkBudget(1'000'000'000, nullptr, bytes));
  EXPECT_TRUE(plan.cut_short);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfMemory);
  int64_t nodes = 0;
  for (const PlannedNodes& run : plan.nodes) nodes += run.nodes;
  EXPECT_LE(nodes, bytes / 2'048);
}

}  // namespace
}  // namespace loadline
