#include "core/drain/disruption_budgets.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

FitPod Pod(const std::string& app, bool ready = true, const std::string& name = "") {
  FitPod pod;
  pod.labels = {{"app", app}};
  pod.traits.ready = ready;
  pod.name = name;
  return pod;
}

ClusterObject Object(const std::string& name, DisruptionBudget budget) {
  return {{ObjectKind::kDisruptionBudget, "default", name}, std::move(budget), 1};
}

// Selects pods with app=web and allows `allowed`.
DisruptionBudget ForWeb(int32_t allowed) {
  DisruptionBudget budget;
  budget.selector = Select("app", "web");
  budget.disruptions_allowed = allowed;
  return budget;
}

// Four pods of app web, of which three are ready, and one of another.
class DisruptionBudgetsTest : public ::testing::Test {
 protected:
  DisruptionBudgetsTest() {
    cluster_.Add({.name = "a"}, {Pod("web", true, "w0"), Pod("web", true, "w1"), Pod("other")});
    cluster_.Add({.name = "b"}, {Pod("web", true, "w2"), Pod("web", false, "w3")});
  }

  DisruptionBudgets With(DisruptionBudget budget, const std::vector<AcceptedEviction>& evictions = {}) {
    cluster_.state().objects().Set(Object("web", std::move(budget)));
    return DisruptionBudgets(cluster_.state(), evictions);
  }

  const BudgetUse& Use(const DisruptionBudgets& budgets, int32_t slot, size_t pod) {
    return budgets.UseOf(cluster_.state().pods(Slot{slot}).pods()[pod].shape);
  }

  FitCluster cluster_;
};

TEST_F(DisruptionBudgetsTest, LeavesTheSmallerOneOfStatusAndReadyPods) {
  EXPECT_EQ(With(ForWeb(2)).left(BudgetIndex{0}), 2);
  EXPECT_EQ(With(ForWeb(100)).left(BudgetIndex{0}), 3);
  DisruptionBudget keeps_two = ForWeb(2);
  keeps_two.desired_healthy = 2;
  EXPECT_EQ(With(keeps_two).left(BudgetIndex{0}), 1);
}

TEST_F(DisruptionBudgetsTest, CountsWhatItsStatusDoesNotShowYet) {
  const FitPod evicted = Pod("web");
  EXPECT_EQ(With(ForWeb(2), {{"gone", cluster_.Shape(evicted)}}).left(BudgetIndex{0}), 1);
  DisruptionBudget knows = ForWeb(2);
  knows.disrupted_pods = {{"gone", 0}};
  EXPECT_EQ(With(knows, {{"gone", cluster_.Shape(evicted)}}).left(BudgetIndex{0}), 2);
}

TEST_F(DisruptionBudgetsTest, DoesNotSeePodsThatWereDisrupted) {
  DisruptionBudget budget = ForWeb(100);
  budget.disrupted_pods = {{"w0", 0}, {"w1", 0}};
  EXPECT_EQ(With(budget).left(BudgetIndex{0}), 1);
}

TEST_F(DisruptionBudgetsTest, AllowsNothingWhileTheStatusIsStale) {
  DisruptionBudget budget = ForWeb(2);
  budget.generation = 2;
  budget.observed_generation = 1;
  const DisruptionBudgets budgets = With(budget);
  EXPECT_EQ(budgets.left(BudgetIndex{0}), 0);
  EXPECT_EQ(budgets.Refuses(Use(budgets, 0, 0)), BudgetRefusal::kStale);
}

TEST_F(DisruptionBudgetsTest, APodThatIsNotReadyTakesNothing) {
  DisruptionBudget budget = ForWeb(0);
  budget.current_healthy = budget.desired_healthy = 3;
  budget.expected_pods = 4;
  const DisruptionBudgets budgets = With(budget);
  EXPECT_EQ(budgets.Refuses(Use(budgets, 1, 0)), BudgetRefusal::kExhausted);
  EXPECT_EQ(budgets.Refuses(Use(budgets, 1, 1)), BudgetRefusal::kNone);
  EXPECT_FALSE(Use(budgets, 1, 1).takes);
}

TEST_F(DisruptionBudgetsTest, APodThatIsNotReadyIsKeptWhileTooFewAreHealthy) {
  DisruptionBudget budget = ForWeb(1);
  budget.current_healthy = 3;
  budget.desired_healthy = 4;
  const DisruptionBudgets kept = With(budget);
  EXPECT_EQ(kept.Refuses(Use(kept, 1, 1)), BudgetRefusal::kUnhealthy);
  budget.unhealthy_policy = DisruptionBudget::UnhealthyPolicy::kAlwaysAllow;
  const DisruptionBudgets allowed = With(budget);
  EXPECT_EQ(allowed.Refuses(Use(allowed, 1, 1)), BudgetRefusal::kNone);
}

TEST_F(DisruptionBudgetsTest, APodUnderSeveralBudgetsIsNotEvicted) {
  DisruptionBudget all = ForWeb(10);
  all.selector = LabelSelector();
  cluster_.state().objects().Set(Object("all", all));
  const DisruptionBudgets budgets = With(ForWeb(10));
  EXPECT_EQ(budgets.Refuses(Use(budgets, 0, 0)), BudgetRefusal::kSeveralBudgets);
  EXPECT_EQ(budgets.Refuses(Use(budgets, 0, 2)), BudgetRefusal::kNone);
}

TEST_F(DisruptionBudgetsTest, AnInvalidSelectorBlocksItsNamespace) {
  DisruptionBudget budget = ForWeb(10);
  budget.selector = LabelSelector{true, {}};
  budget.selector_error = "no such operator";
  const DisruptionBudgets budgets = With(budget);
  EXPECT_EQ(budgets.Refuses(Use(budgets, 0, 2)), BudgetRefusal::kInvalidSelector);
  FitPod elsewhere = Pod("web");
  elsewhere.namespace_name = "other";
  EXPECT_EQ(budgets.Refuses(budgets.Find(cluster_.Shape(elsewhere))), BudgetRefusal::kNone);
}

TEST_F(DisruptionBudgetsTest, CountsThatMakeNoSenseLeaveNothing) {
  for (const auto& [allowed, desired] :
       std::vector<std::pair<int32_t, int32_t>>{{-1, 0}, {INT32_MIN, INT32_MIN}, {INT32_MAX, INT32_MAX}}) {
    DisruptionBudget budget = ForWeb(allowed);
    budget.desired_healthy = desired;
    EXPECT_LE(With(budget).left(BudgetIndex{0}), 0) << allowed << " " << desired;
  }
}

TEST_F(DisruptionBudgetsTest, PodsThatGoAnywayTakeNothing) {
  const DisruptionBudgets budgets = With(ForWeb(0));
  FitPod terminating = Pod("web");
  terminating.traits.deleted_s = 5;
  FitPod placeholder = Pod("web");
  placeholder.traits.placeholder = true;
  FitPod finished = Pod("web");
  finished.traits.phase = PodPhase::kFailed;
  FitPod pending = Pod("web");
  pending.traits.phase = PodPhase::kPending;
  for (const FitPod& pod : {terminating, placeholder, finished, pending}) {
    EXPECT_EQ(budgets.Refuses(budgets.Find(cluster_.Shape(pod))), BudgetRefusal::kNone);
  }
}

// By hand: of four pods four have to be healthy, as with maxUnavailable 0, minAvailable 100 % and more
// replicas alike.
TEST_F(DisruptionBudgetsTest, ABudgetThatWantsAllOfItsPodsNeverAllows) {
  DisruptionBudget budget = ForWeb(0);
  budget.expected_pods = budget.desired_healthy = 4;
  const DisruptionBudgets never = With(budget);
  EXPECT_EQ(never.Refuses(Use(never, 0, 0)), BudgetRefusal::kNeverAllows);
  budget.desired_healthy = 3;
  const DisruptionBudgets later = With(budget);
  EXPECT_EQ(later.Refuses(Use(later, 0, 0)), BudgetRefusal::kExhausted);
}

TEST_F(DisruptionBudgetsTest, TakesAndGivesBack) {
  DisruptionBudgets budgets = With(ForWeb(1));
  const BudgetUse use = Use(budgets, 0, 0);
  const std::vector<BudgetUse> two = {use, use};
  EXPECT_EQ(budgets.Ask(two), (DisruptionBudgets::Answer{.risky = true}));
  budgets.Take(use);
  EXPECT_EQ(budgets.left(BudgetIndex{0}), 0);
  EXPECT_EQ(budgets.Ask(two),
            (DisruptionBudgets::Answer{.refused = 0, .refusal = BudgetRefusal::kExhausted}));
  budgets.GiveBack(use);
  EXPECT_EQ(budgets.Ask(std::vector<BudgetUse>{use}), DisruptionBudgets::Answer());
}

// 200 budgets of 100 requirements over 300 shapes of pods are too many for the namespace evil; nothing
// changes for others, and it takes the same work whatever is left of it.
TEST_F(DisruptionBudgetsTest, ANamespaceThatCostsTooMuchIsProtectedAlone) {
  DisruptionBudget costly;
  costly.disruptions_allowed = 10;
  for (int i = 0; i < 100; ++i) {
    costly.selector.requirements.push_back({"k" + std::to_string(i), SelectorOperator::kDoesNotExist, {}});
  }
  for (int i = 0; i < 200; ++i) {
    ClusterObject object = Object("costly-" + std::to_string(i), costly);
    object.key.namespace_name = "evil";
    cluster_.state().objects().Set(std::move(object));
  }
  std::vector<FitPod> pods;
  for (int i = 0; i < 300; ++i) {
    FitPod pod = Pod("evil");
    pod.namespace_name = "evil";
    pod.labels.push_back({"k99", std::to_string(i)});
    pods.push_back(std::move(pod));
  }
  cluster_.Add({.name = "c"}, pods);
  cluster_.state().objects().Set(Object("web", ForWeb(100)));
  WorkBudget work(100'000'000), none(0);
  const DisruptionBudgets budgets(cluster_.state(), {}, &work);
  const DisruptionBudgets again(cluster_.state(), {}, &none);
  for (const DisruptionBudgets* const of : {&budgets, &again}) {
    EXPECT_EQ(of->Refuses(Use(*of, 0, 0)), BudgetRefusal::kNone);
    EXPECT_EQ(of->left(*Use(*of, 0, 0).budget), 3);
    for (const size_t pod : {size_t{0}, size_t{299}})
      EXPECT_EQ(of->Refuses(Use(*of, 2, pod)), BudgetRefusal::kTooCostly);
    EXPECT_EQ(of->Refuses(of->Find(cluster_.Shape(pods[7]))), BudgetRefusal::kTooCostly);
    EXPECT_TRUE(of->Covers(cluster_.Shape(pods[7])));
    ASSERT_EQ(of->TooCostly().size(), 1u);
    EXPECT_EQ(of->TooCostly()[0].namespace_name, "evil");
    EXPECT_EQ(of->TooCostly()[0].name, "costly-0");
  }
  EXPECT_LT(work.units(), 100'000'000);
  EXPECT_GT(work.units(), 100'000'000 - 5'000'000);
}

}  // namespace
}  // namespace loadline
