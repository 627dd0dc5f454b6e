// Namespaces take turns where growth is cut short.
#include "core/grow/growth_turn.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

std::vector<PendingPods> OnePodEach(int namespaces) {
  std::vector<PendingPods> waiting;
  for (int i = 0; i < namespaces; ++i) {
    PendingPods& pods = waiting.emplace_back();
    pods.pod.shape.namespace_name = "ns-" + std::to_string(i);
    pods.count = 1;
  }
  return waiting;
}

TEST(GrowthTurnTest, AllTakePartWhereNothingWasCutShort) {
  std::vector<PendingPods> waiting = OnePodEach(3);
  EXPECT_TRUE(TakeOutOfTurn({}, &waiting).empty());
  ScaleUpPlan plan;
  plan.unplaced = {1, 1, 1};
  EXPECT_EQ(NextTurn({}, waiting, plan), GrowthTurn()) << "what fits nowhere has had its turn";
  plan.cut_short_by = BudgetEnd::kOutOfWork;
  plan.unplaced = {0, 0, 0};
  EXPECT_EQ(NextTurn({}, waiting, plan), GrowthTurn()) << "all have a place, if not the cheapest one";
  plan.unplaced = {0, 1, 0};
  EXPECT_EQ(NextTurn({}, waiting, plan), (GrowthTurn{2, 1, BudgetEnd::kOutOfWork}));
  EXPECT_EQ(NextTurn({}, OnePodEach(1), plan).parts, 1) << "one alone has nobody to take turns with";
}

TEST(GrowthTurnTest, OneThatTookMoreThanItsPortionMakesNobodyWait) {
  std::vector<PendingPods> waiting = OnePodEach(3);
  waiting.push_back(waiting.front());
  ScaleUpPlan plan;
  plan.cut_short_by = BudgetEnd::kOutOfWork;
  plan.unplaced = {1, 0, 1, 1};
  plan.cut_off = {0, 3};
  EXPECT_EQ(NextTurn({}, waiting, plan), GrowthTurn()) << "both pods are of one namespace";
  EXPECT_EQ(NextTurn({4, 9, BudgetEnd::kOutOfWork}, waiting, plan).parts, 2);
  plan.cut_off = {0, 2};
  EXPECT_EQ(NextTurn({}, waiting, plan).parts, 2) << "two namespaces lack something";
}

TEST(GrowthTurnTest, EachNamespaceHasItsTurn) {
  constexpr int kRounds = 64;
  for (const int32_t parts : {2, 8, 1'024}) {
    std::vector<int> turns(20);
    for (int64_t round = 0; round < kRounds; ++round) {
      const GrowthTurn turn{parts, round, BudgetEnd::kOutOfWork};
      std::vector<PendingPods> waiting = OnePodEach(20);
      ScaleUpPlan plan;
      DeferredPods held = TakeOutOfTurn(turn, &waiting);
      EXPECT_LT(held.size(), 20U) << "one has it at least";
      std::set<size_t> out;
      for (const auto& [position, pods] : held) {
        EXPECT_EQ(waiting[position].count, 0);
        out.insert(position);
      }
      for (size_t i = 0; i < turns.size(); ++i) turns[i] += out.contains(i) ? 0 : 1;
      PutBack(turn, std::move(held), &waiting, &plan);
      plan.unplaced.resize(20, 0);
      for (size_t i = 0; i < turns.size(); ++i) {
        EXPECT_EQ(waiting[i].count, 1);
        EXPECT_EQ(waiting[i].pod.shape.namespace_name, "ns-" + std::to_string(i));
        EXPECT_EQ(plan.unplaced[i], out.contains(i) ? 1 : 0);
      }
      if (!out.empty()) {
        EXPECT_EQ(plan.cut_short_by, BudgetEnd::kOutOfWork);
      }
    }
    if (parts == 1'024) continue;
    for (const int count : turns) EXPECT_GE(count, kRounds / parts / 4);
  }
}

class TakingTurnsTest : public LoopTest {};

// The namespace "bad" has pods that would each take a node of their own, more than there is work for, and
// they are larger than that of "good", so that they come first in each loop.
TEST_F(TakingTurnsTest, ANamespaceThatTakesAllWorkKeepsNoOtherWaitingForEver) {
  AddGroup("g", 1000, 1, 1, /*max=*/2'000);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  FitPod bad = Replica("bad", 900);
  bad.namespace_name = "bad";
  bad.labels = {{"app", "bad"}};
  bad.rules.anti_affinity = {Term(Select("app", "bad"), kHostnameLabel, {"bad"})};
  FitPod good = Replica("good", 800);
  good.namespace_name = "good";
  good.labels = {{"app", "good"}};
  good.rules.anti_affinity = {Term(Select("app", "good"), kHostnameLabel, {"good"})};
  Pending(bad, 1'000);
  Pending(good, 1);
  budget_ = WorkBudget(2'000);
  int placed = 0;
  for (int loop = 0; loop < 20; ++loop) {
    const LoopPlan plan = Plan();
    ASSERT_EQ(plan.scale_up.unplaced.size(), 2U);
    EXPECT_EQ(plan.scale_up.cut_short_by, BudgetEnd::kOutOfWork) << "and says so in each loop";
    EXPECT_GT(plan.scale_up.unplaced[0], 0);
    EXPECT_EQ(plan.waiting[0].count, 1'000);
    EXPECT_EQ(plan.waiting[1].count, 1);
    placed += plan.scale_up.unplaced[1] == 0 ? 1 : 0;
    problem_.turn = plan.next_turn;
  }
  EXPECT_GE(placed, 4);
  // The larger pods of both are first: "good" has no place whenever all take part.
  problem_.turn = {};
  EXPECT_EQ(Plan().scale_up.unplaced[1], 1);
}

// The namespace "bad" has more kinds of pods than there is memory for, all of which fit nowhere.
TEST_F(TakingTurnsTest, ANamespaceThatTakesAllMemoryKeepsNoOtherWaitingForEver) {
  AddGroup("g", 1000, 1, 1, /*max=*/2'000);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  constexpr size_t kKinds = 1'000;
  for (size_t i = 0; i < kKinds; ++i) {
    FitPod bad = Replica("bad", 10'000 + static_cast<int64_t>(i));
    bad.namespace_name = "bad";
    Pending(bad, 1);
  }
  FitPod good = Replica("good", 800);
  good.namespace_name = "good";
  Pending(good, 1);
  budget_ = WorkBudget(100'000'000, nullptr, kKinds * 2 * 2'048);
  int placed = 0;
  for (int loop = 0; loop < 20; ++loop) {
    const LoopPlan plan = Plan();
    ASSERT_EQ(plan.scale_up.unplaced.size(), kKinds + 1);
    placed += plan.scale_up.unplaced[kKinds] == 0 ? 1 : 0;
    problem_.turn = plan.next_turn;
  }
  EXPECT_GE(placed, 4);
}

// The namespace "good" has one kind of pods, and three have more kinds together than there is memory for.
TEST_F(TakingTurnsTest, WhoHasLittleDoesNotWaitForThoseWhoTakeAll) {
  AddGroup("g", 1000, 1, 1, /*max=*/2'000);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  constexpr size_t kKinds = 500;
  for (size_t i = 0; i < 3 * kKinds; ++i) {
    FitPod bad = Replica("bad", 10'000 + static_cast<int64_t>(i));
    bad.namespace_name = absl::StrCat("bad-", i % 3);
    Pending(bad, 1);
  }
  FitPod good = Replica("good", 800);
  good.namespace_name = "good";
  Pending(good, 1);
  // About two thirds of one of the three.
  budget_ = WorkBudget(100'000'000, nullptr, kKinds * 2 * 2'048 / 3 * 2);
  for (int loop = 0; loop < 40; ++loop) {
    const LoopPlan plan = Plan();
    EXPECT_EQ(plan.scale_up.unplaced.back(), 0) << "loop " << loop;
    problem_.turn = plan.next_turn;
  }
}

}  // namespace
}  // namespace loadline
