// The bounds on the cost of growth: a pod which costs much keeps no other one waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/expand/plan.h"
#include "core/expand/plan_ranked.h"
#include "core/pack/knapsack.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::vector<size_t> FirstNumbers(size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

// 300 nodes with a pod each, no two of one shape: each term of a pod is matched with 300 shapes.
class ManyShapes {
 public:
  ManyShapes() {
    for (int i = 0; i < 300; ++i) {
      FitPod pod{.requests = {{"cpu", 1 + i}}, .labels = {{"app", "web"}}};
      cluster_.Add({.name = "node-" + std::to_string(i), .labels = {{kZone, "a"}}}, {std::move(pod)});
    }
    const FitNode node{.name = "group", .labels = {{kZone, "a"}}};
    group_ = {.name = "group", .max_nodes = 100, .model = NodeModel{cluster_.Shape(node)}, .usd_per_hour = 1};
  }

  void Pods(const FitPod& pod, int64_t count) { pods_.push_back({cluster_.Incoming(pod), count}); }

  // Work of 1,000 terms: each is read for some 10 units, and four shapes are looked at for one.
  static constexpr int64_t kWorkOfCostly = 1'000 * 10 + 300 * 1'000 / 4;
  void CostlyPod(const std::string& name) {
    FitPod pod{.namespace_name = name, .requests = {{"cpu", 100}}, .labels = {{"app", "web"}}};
    for (int i = 0; i < 1'000; ++i) {
      LabelSelector selector{false, {{name + "-" + std::to_string(i), SelectorOperator::kDoesNotExist, {}}}};
      pod.rules.anti_affinity.push_back(Term(std::move(selector), kZone, {"default", name}));
    }
    Pods(pod, 1);
  }

  ScaleUpPlan Plan(WorkBudget* budget) {
    Snapshot snapshot(cluster_.state());
    return PlanScaleUp(&snapshot, &fit_, WithNames(), {}, {group_}, {}, budget);
  }
  RankedScaleUp PlanRanked(WorkBudget* budget) {
    Snapshot snapshot(cluster_.state());
    const RankPolicy policy{.strategies = {RankStrategy::kLeastNodes}};
    const PriceModel prices;
    const std::vector<PodRequests> requests(pods_.size());
    return PlanRankedScaleUp(&snapshot, &fit_, WithNames(), requests, {}, {group_},
                             {policy, prices, NodeCapacity(), {}}, std::nullopt, budget);
  }

 private:
  std::vector<PendingPods> WithNames() const {
    std::vector<PendingPods> pods = pods_;
    for (PendingPods& entry : pods) entry.pod.names = cluster_.names();
    return pods;
  }

  FitCluster cluster_;
  FitOptions fit_;
  NodeGroup group_;
  std::vector<PendingPods> pods_;
};

// Twenty pods each of which would take more than all the work there is.
TEST(EstimateBoundsTest, PodsThatCostMuchLeaveOthersTheirWork) {
  ManyShapes question;
  for (int i = 0; i < 20; ++i) question.CostlyPod("bad-" + std::to_string(i));
  question.Pods({.requests = {{"cpu", 3'900}}}, 5);
  WorkBudget budget(ManyShapes::kWorkOfCostly / 2);
  const ScaleUpPlan plan = question.Plan(&budget);
  int64_t placed = 0;
  for (const ExistingUse& use : plan.existing) placed += use.pods.pods == 20 ? use.pods.count : 0;
  EXPECT_EQ(placed, 5);
  EXPECT_EQ(plan.unplaced[20], 0);
  EXPECT_EQ(plan.unplaced[0], 1);
  EXPECT_TRUE(plan.cut_short);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfWork);
  EXPECT_THAT(plan.cut_off, ElementsAreArray(FirstNumbers(20))) << "as they were given, whatever their names";
}

TEST(EstimateBoundsTest, ARankedPlanSaysThatAPodWasNotLookedAt) {
  ManyShapes question;
  question.CostlyPod("bad");
  question.Pods({.requests = {{"cpu", 3'900}}}, 5);
  WorkBudget little(ManyShapes::kWorkOfCostly / 2);
  const RankedScaleUp cut = question.PlanRanked(&little);
  EXPECT_EQ(cut.plan.cut_short_by, BudgetEnd::kOutOfWork);
  EXPECT_THAT(cut.plan.cut_off, ElementsAre(0));
  EXPECT_EQ(cut.plan.unplaced[1], 0);
  // Half of the budget is for the pods, and half of it for one of two that are looked at twice.
  WorkBudget enough(ManyShapes::kWorkOfCostly * 20);
  const RankedScaleUp whole = question.PlanRanked(&enough);
  EXPECT_EQ(whole.plan.cut_short_by, BudgetEnd::kNotEnded);
  EXPECT_THAT(whole.plan.cut_off, IsEmpty());
}

// The table of options by pods is not made where there is no memory for it.
TEST(EstimateBoundsTest, OptionsThatAreRankedTakeMemory) {
  ManyShapes question;
  question.Pods({.requests = {{"cpu", 3'900}}}, 5);
  WorkBudget budget(1'000'000, nullptr, 16);
  const RankedScaleUp plan = question.PlanRanked(&budget);
  EXPECT_EQ(plan.plan.cut_short_by, BudgetEnd::kOutOfMemory);
  EXPECT_TRUE(plan.plan.nodes.empty());
}

// A kind that was looked at takes 2 KiB for each of two searches.
TEST(EstimateBoundsTest, PodsThatAreLookedAtTakeMemory) {
  ManyShapes question;
  for (int i = 0; i < 100; ++i) question.Pods({.requests = {{"cpu", 10 + i}}}, 1);
  WorkBudget little(1'000'000, nullptr, 100 * 2 * 2'048);
  EXPECT_EQ(question.Plan(&little).cut_short_by, BudgetEnd::kOutOfMemory);
  WorkBudget enough(1'000'000, nullptr, 4 * 100 * 2 * 2'048);
  const ScaleUpPlan plan = question.Plan(&enough);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kNotEnded);
  EXPECT_EQ(plan.existing.size(), 100U);
}

// Entries of which no pod waits, such as those of namespaces whose turn it is not, share one place.
TEST(EstimateBoundsTest, EntriesWithoutPodsTakeNoMemory) {
  ManyShapes question;
  for (int i = 0; i < 1'000; ++i) question.Pods({.requests = {{"cpu", 10 + i}}}, 0);
  question.Pods({.requests = {{"cpu", 3'900}}}, 5);
  WorkBudget budget(1'000'000, nullptr, 100 * 2 * 2'048);
  const ScaleUpPlan plan = question.Plan(&budget);
  EXPECT_EQ(plan.cut_short_by, BudgetEnd::kNotEnded);
  EXPECT_EQ(plan.existing.size(), 5U);
}

// 300 resources are weighed each alone, and all together: 301 weighings of 1,000 items.
TEST(EstimateBoundsTest, AKnapsackOfManyResourcesIsChargedForWhatItWeighs) {
  const std::vector<int64_t> free(300, 1'000);
  std::vector<std::vector<int64_t>> requests(1'000, std::vector<int64_t>(300, 1));
  std::vector<KnapsackItem> items;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i][i % 300] = 600;
    items.push_back({requests[i], 1.0, 5});
  }
  WorkBudget enough(100'000'000);
  const double bound = SolveKnapsack(free, items, 0, 10, &enough).bound;
  EXPECT_GT(100'000'000 - enough.units(), 200 * (1'000 * 300 / 64));
  // After the end of the budget the bound is that of the first weighings, which is no lower.
  WorkBudget little(1'000);
  EXPECT_GE(SolveKnapsack(free, items, 0, 10, &little).bound, bound);
  EXPECT_TRUE(little.ended());
}

}  // namespace
}  // namespace loadline
