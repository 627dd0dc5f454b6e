#include "core/sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/sim/cloud.h"
#include "core/sim/invariant_checker.h"
#include "core/sim/world.h"
#include "test/sim/random_scenario.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

SimResult SimulateAll(const Scenario& scenario) {
  WorkBudget unlimited;
  return Simulate(scenario, &unlimited);
}

// One group of nodes with 4 cores, and one Deployment of pods with 1.
Scenario SmallScenario(int64_t replicas) {
  Scenario scenario;
  scenario.groups.push_back(
      {.name = "g", .max_nodes = 20, .allocatable = {4'000, int64_t{16} << 30}, .usd_per_hour = 0.5});
  scenario.workloads.push_back({.name = "w", .replicas = replicas, .request = {1'000, int64_t{1} << 30}});
  return scenario;
}

TEST(SimulationTest, BuysWhatConstantLoadNeedsAndNoMore) {
  const SimResult result = SimulateAll(SmallScenario(10));
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes_added, 3);
  EXPECT_EQ(result.nodes_removed, 0);
  EXPECT_EQ(result.left_waiting, 0);
  EXPECT_EQ(result.evictions, 0);
  EXPECT_EQ(result.waits.pods, 10);
  EXPECT_GE(result.waits.p50, 60) << "no machine starts in less";
  EXPECT_LE(result.waits.max, 120);
  EXPECT_NEAR(result.usd, 3 * 0.5 * 24, 0.1) << "but for the time before the first loop";
  EXPECT_LT(result.loops, 30) << "constant load needs no loops";
}

TEST(SimulationTest, FollowsADailyCurve) {
  Scenario scenario = SmallScenario(40);
  scenario.days = 3;
  scenario.workloads[0].daily_percent = 80;
  const SimResult result = SimulateAll(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_GT(result.nodes_removed, 10);
  EXPECT_LT(result.usd, 10 * 0.5 * 72 * 0.85);
}

TEST(SimulationTest, EqualSeedsHaveEqualDigestsAndOtherSeedsOtherOnes) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    EXPECT_EQ(SimulateAll(scenario).digest, SimulateAll(scenario).digest) << "seed " << seed;
  }
  Scenario other = SmallScenario(10);
  const uint64_t digest = SimulateAll(other).digest;
  other.seed = 2;
  EXPECT_NE(SimulateAll(other).digest, digest);
}

TEST(SimulationTest, LoopsThatAreNotRunWouldDoNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario scenario = RandomScenario(seed);
    const SimResult some = SimulateAll(scenario);
    scenario.settings.run_every_loop = true;
    const SimResult all = SimulateAll(scenario);
    EXPECT_EQ(some.digest, all.digest) << Describe(scenario);
    EXPECT_LE(some.loops, all.loops);
  }
}

TEST(SimulationTest, DrawnScenariosBreakNoInvariant) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    EXPECT_THAT(SimulateAll(RandomScenario(seed)).violations, IsEmpty()) << "seed " << seed;
  }
}

TEST(SimulationTest, EndsWithItsBudget) {
  WorkBudget budget(1'000);
  const SimResult result = Simulate(LargeScenario(1), &budget);
  EXPECT_EQ(result.cut_short_by, "work");
}

TEST(ScenarioTest, NamesTheFieldThatIsWrong) {
  Scenario scenario = SmallScenario(10);
  EXPECT_TRUE(CheckScenario(scenario).ok());
  scenario.groups[0].nodes = 21;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("groups[0].nodes: 21"));
  scenario = SmallScenario(10);
  scenario.workloads.push_back(scenario.workloads[0]);
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("workloads[1].name"));
  scenario = SmallScenario(kMostSimPods);
  scenario.workloads[0].bursts.push_back({0, 1, 1});
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("replicas of all"));
}

TEST(ScenarioTest, CurvesFallToTheirLowestPointTwelveHoursFromThePeak) {
  SimWorkload workload{.replicas = 100, .daily_percent = 60, .weekend_percent = 50};
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s), 100);
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s - 12 * 3600), 40);
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s + 5 * 86'400), 50);
}

// Each breaks one invariant by hand: a checker that sees nothing would pass all of the above.
class InvariantTest : public ::testing::Test {
 protected:
  InvariantTest() { world_.AddObserver(&checker_); }
  int32_t NodeThere() {
    cloud_.Grow(0, 1);
    cloud_.MachineUp(world_.machine_end() - 1);
    world_.SetReady(world_.node_end() - 1, true);
    return world_.node_end() - 1;
  }
  std::string First() const { return checker_.violations().empty() ? "" : checker_.violations().front(); }

  const Scenario scenario_ = SmallScenario(1);
  World world_{scenario_};
  Cloud cloud_{&world_};
  InvariantChecker checker_{&world_, &cloud_};
};

TEST_F(InvariantTest, SeesGrowthBeyondTheMaximumAndWithoutNeed) {
  checker_.Grows(0, 21);
  EXPECT_THAT(checker_.violations(), ::testing::ElementsAre(HasSubstr("C1"), HasSubstr("C2")));
}

TEST_F(InvariantTest, SeesAPodThatGoesWithItsNode) {
  const int32_t node = NodeThere();
  world_.Bind(world_.CreatePod(0), node);
  checker_.Deletes(world_.node(node).machine, /*late=*/false);
  EXPECT_THAT(First(), HasSubstr("D3"));
}

TEST_F(InvariantTest, SeesAMachineWithANodeGivenUpAsLate) {
  world_.set_now_ms(3'600'000);
  const int32_t node = NodeThere();
  world_.set_now_ms(7'200'000);
  checker_.Deletes(world_.node(node).machine, /*late=*/true);
  EXPECT_THAT(First(), HasSubstr("D9"));
}

TEST_F(InvariantTest, SeesANodeThatGoesTwiceOrTooEarly) {
  const int32_t node = NodeThere();
  checker_.StartsToGo(node, /*empty=*/true);
  EXPECT_THAT(First(), HasSubstr("D7"));
  checker_.StartsToGo(node, /*empty=*/true);
  EXPECT_THAT(checker_.violations(), ::testing::Contains(HasSubstr("D10")));
}

TEST_F(InvariantTest, SeesANodeGivenBackThatTheCloudDeletes) {
  const int32_t node = NodeThere();
  ASSERT_EQ(cloud_.Delete(world_.node(node).machine), CloudAnswer::kDone);
  checker_.GivesBack(node);
  EXPECT_THAT(First(), HasSubstr("D10"));
}

TEST_F(InvariantTest, SeesANodeWithMoreThanItOffers) {
  const int32_t node = NodeThere();
  for (int i = 0; i < 5; ++i) world_.Bind(world_.CreatePod(0), node);
  EXPECT_THAT(First(), HasSubstr("A7"));
}

}  // namespace
}  // namespace loadline
