#include "core/sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/sim/bill_bound.h"
#include "core/sim/cloud.h"
#include "core/sim/invariant_checker.h"
#include "core/sim/world.h"
#include "test/sim/random_scenario.h"
#include "test/testing/drawn_cases.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr GroupIndex kGroup{0};
constexpr SimWorkloadIndex kWorkload{0};

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

// All come at once: their nodes come by so much later, however seldom the loop runs.
TEST(SimulationTest, YoungPodsMakeNoGroupGrow) {
  Scenario scenario = SmallScenario(10);
  const SimResult at_once = SimulateAll(scenario);
  scenario.settings.new_pod_scale_up_delay_s = 900;
  const SimResult later = SimulateAll(scenario);
  EXPECT_THAT(later.violations, IsEmpty());
  EXPECT_EQ(later.nodes_added, at_once.nodes_added);
  EXPECT_GE(later.waits.p50, 900 + 60);
  EXPECT_LE(later.waits.max, 900 + 120);
  EXPECT_LT(later.loops, 30) << "none while all are too young";
  scenario.settings.new_pod_scale_up_delay_s = 1801;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()),
              HasSubstr("settings.newPodScaleUpDelaySeconds"));
}

// Ten pods have room on three nodes, and need ten: no two are on one of them.
TEST(SimulationTest, PodsThatKeepApartHaveANodeEach) {
  Scenario scenario = SmallScenario(10);
  scenario.workloads.front().apart = true;
  const SimResult result = SimulateAll(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes_added, 10);
  EXPECT_EQ(result.left_waiting, 0);
}

// 20 pods on nodes of four in three zones, each with a node at first: 7, 7 and 6 pods need two nodes in each
// zone. Free to go anywhere, they need five nodes, two new ones of the cheapest group.
TEST(SimulationTest, PodsThatSpreadOverZonesBuyNodesInEach) {
  Scenario scenario = SmallScenario(20);
  scenario.settings.slack_percent = 0;
  for (const std::string zone : {"b", "c"}) {
    SimGroup& group = scenario.groups.emplace_back(scenario.groups.front());
    group.name = group.zone = zone;
    group.usd_per_hour = 0.6;
  }
  scenario.groups.front().zone = "a";
  for (SimGroup& group : scenario.groups) group.nodes = group.min_nodes = 1;
  EXPECT_EQ(SimulateAll(scenario).nodes_added, 3 + 2) << "with those of the start";
  scenario.workloads.front().max_zone_skew = 1;
  const SimResult spread = SimulateAll(scenario);
  EXPECT_THAT(spread.violations, IsEmpty());
  EXPECT_EQ(spread.left_waiting, 0);
  EXPECT_EQ(spread.nodes_added, 3 + 3);
  EXPECT_NEAR(spread.usd, 2 * (0.5 + 0.6 + 0.6) * 24, 0.2);
}

// An expendable pod alone on a node keeps it as little as none, and finds room on the other one.
TEST(SimulationTest, ANodeWithExpendablePodsOnlyIsRemoved) {
  Scenario scenario = SmallScenario(1);
  scenario.settings.slack_percent = 0;
  scenario.groups.front().nodes = 2;
  SimWorkload& expendable = scenario.workloads.emplace_back(scenario.workloads.front());
  expendable.name = "expendable";
  expendable.priority = -11;
  const SimResult result = SimulateAll(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes_removed, 1);
  EXPECT_EQ(result.left_waiting, 0);
}

// Two of four expendable pods leave the full node to pods that arrive, wait from then on, and make no group
// grow.
TEST(SimulationTest, ExpendablePodsArePreempted) {
  Scenario scenario = SmallScenario(0);
  scenario.settings.slack_percent = 0;
  scenario.groups.front().nodes = scenario.groups.front().min_nodes = 1;
  SimWorkload& expendable = scenario.workloads.emplace_back(scenario.workloads.front());
  expendable.name = "expendable";
  expendable.priority = -11;
  expendable.replicas = 4;
  SimWorkload& others = scenario.workloads.front();
  others.kind = SimWorkloadKind::kTrace;
  others.run_s_min = others.run_s_max = 200'000;
  others.arrivals = {{3'600, 2}};
  const SimResult result = SimulateAll(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.waits.pods, 4 + 2);
  EXPECT_LT(result.waits.max, 1);
  EXPECT_EQ(result.left_waiting, 2);
  EXPECT_EQ(result.growths, 0);
}

// The cheap group cannot be read: it is left as it is, and the dear one grows.
TEST(SimulationTest, AGroupOfWhichTheCloudTellsNothingKeepsNoOtherFromGrowing) {
  Scenario scenario = SmallScenario(10);
  scenario.groups.push_back(scenario.groups.front());
  scenario.groups.back().name = "dear";
  scenario.groups.back().usd_per_hour = 1;
  EXPECT_NEAR(SimulateAll(scenario).usd, 3 * 0.5 * 24, 0.1);
  scenario.faults.unread_group = 1'000'000;
  scenario.faults.unread_group_s = 3'600;
  EXPECT_EQ(SimulateAll(scenario).left_waiting, 10) << "none can be read";
  // For some seeds that holds for the cheap group alone in the first hour, in which the pods come.
  scenario.faults.unread_group = 500'000;
  bool dear_alone = false;
  for (scenario.seed = 1; scenario.seed <= 20; ++scenario.seed) {
    const SimResult result = SimulateAll(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.left_waiting, 0);
    dear_alone = dear_alone || result.usd > 3 * 0.9 * 24;
  }
  EXPECT_TRUE(dear_alone);
}

TEST(SimulationTest, EndsAfterItsDuration) {
  Scenario scenario = SmallScenario(10);
  scenario.duration_s = 400;
  scenario.groups.front().start_s_min = scenario.groups.front().start_s_max = 100;
  const SimResult result = SimulateAll(scenario);
  // Three nodes, for what is left of 400 s after the first loops, which come within 20 s.
  EXPECT_LE(result.usd, 3 * 0.5 * 400 / 3600);
  EXPECT_GE(result.usd, 3 * 0.5 * 380 / 3600);
  EXPECT_GE(result.waits.max, 100);
  ASSERT_EQ(result.series.size(), 401u) << "one each second, from the first";
  EXPECT_EQ(result.series.back().at_s, 400);
}

TEST(SimulationTest, FollowsADailyCurve) {
  Scenario scenario = SmallScenario(40);
  scenario.days = 3;
  scenario.workloads.front().daily_percent = 80;
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
  for (int seed = 1; seed <= DrawnCases(10, 25); ++seed) {
    Scenario scenario = RandomScenario(static_cast<uint64_t>(seed));
    const SimResult some = SimulateAll(scenario);
    scenario.settings.run_every_loop = true;
    const SimResult all = SimulateAll(scenario);
    EXPECT_EQ(some.digest, all.digest) << Describe(scenario);
    EXPECT_LE(some.loops, all.loops);
  }
}

TEST(SimulationTest, DrawnScenariosBreakNoInvariant) {
  for (int seed = 1; seed <= DrawnCases(15, 40); ++seed) {
    EXPECT_THAT(SimulateAll(RandomScenario(static_cast<uint64_t>(seed))).violations, IsEmpty())
        << "seed " << seed;
  }
}

// 118 pods that come within six seconds: one plan for all of them, or two.
Scenario BurstScenario() {
  Scenario scenario = SmallScenario(0);
  scenario.groups.front().max_nodes = 100;
  scenario.settings.slack_percent = 0;
  SimWorkload& burst = scenario.workloads.front();
  burst.kind = SimWorkloadKind::kTrace;
  burst.run_s_min = burst.run_s_max = 20'000;
  for (int64_t i = 0; i < 118; ++i) burst.arrivals.push_back({3'600 + i * 6 / 118, 1});
  return scenario;
}

TEST(SimulationTest, BuysTogetherWhatComesTogetherByDefault) {
  const SimResult result = SimulateAll(BurstScenario());
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes_added, 30) << "4 to a node";
  EXPECT_LE(result.growths, 2);
  Scenario at_once = BurstScenario();
  at_once.settings.batch_idle_ms = at_once.settings.batch_max_ms = 0;
  at_once.settings.scan_interval_s = 1;
  EXPECT_GT(SimulateAll(at_once).growths, 2);
}

TEST(SimulationTest, NoNodeGoesForSomeTimeAfterGrowth) {
  Scenario scenario = BurstScenario();
  scenario.workloads.front().run_s_min = scenario.workloads.front().run_s_max = 60;
  scenario.workloads.front().arrivals.push_back({4'500, 99});
  scenario.workloads.push_back({.name = "steady", .replicas = 1, .request = {1'000, int64_t{1} << 30}});
  scenario.settings.unneeded_time_s = 0;
  const SimResult soon = SimulateAll(scenario);
  EXPECT_THAT(soon.violations, IsEmpty());
  EXPECT_EQ(soon.nodes_added, 54) << "ten minutes after the first growth its nodes had gone";
  scenario.settings.after_add_s = 1'200;
  EXPECT_EQ(SimulateAll(scenario).nodes_added, 30) << "twenty minutes after it they were still there";
}

// A phantom is late after so long, whoever leads meanwhile, and its group backs off.
TEST(SimulationTest, ANewLeaderGoesOnFromTheStateThatWasKept) {
  Scenario scenario = SmallScenario(1);
  scenario.faults.phantom = 1'000'000;
  scenario.settings.max_node_provision_s = 5'400;
  scenario.groups.front().max_nodes = 1;
  const SimResult steady = SimulateAll(scenario);
  EXPECT_GE(steady.growths, 10) << "each phantom is given up, and another one comes";
  scenario.faults.leader_ends = 1'000'000;  // each hour: none of them leads for that long
  const SimResult changing = SimulateAll(scenario);
  EXPECT_THAT(changing.violations, IsEmpty());
  EXPECT_GE(changing.growths, 10);
  scenario.faults.failed_state_write = 1'000'000;
  EXPECT_EQ(SimulateAll(scenario).growths, 1) << "nothing is remembered, and no machine is ever late";
}

// Load that falls once, and nobody leads for long enough to see a node out: each new one leads from fifteen
// seconds after the hour to the next.
TEST(SimulationTest, ANewLeaderGoesOnWithTheTimersOfNodes) {
  Scenario scenario = SmallScenario(4);
  scenario.settings.slack_percent = 0;
  scenario.settings.unneeded_time_s = 3'590;
  scenario.settings.unready_time_s = 3'590;
  scenario.settings.utilization_threshold = 1;
  scenario.workloads.front().bursts.push_back({600, 3'600, 36});
  scenario.faults.leader_ends = 1'000'000;
  const SimResult result = SimulateAll(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes_added, 10);
  EXPECT_GE(result.nodes_removed, 5);
  scenario.faults.failed_state_write = 1'000'000;
  EXPECT_GE(SimulateAll(scenario).nodes_removed, 5) << "nothing is remembered, and soft taints tell it";
}

TEST(SimulationTest, ANodeWhoseRemovalIsLeftBehindIsGivenBackOrGoes) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario scenario = SmallScenario(40);
    scenario.seed = seed;
    scenario.workloads.front().daily_percent = 90;
    scenario.faults.leader_ends = 300'000;
    scenario.faults.leader_ends_acting = 300'000;
    const SimResult result = SimulateAll(scenario);
    EXPECT_THAT(result.violations, IsEmpty()) << "seed " << seed;
    EXPECT_GT(result.nodes_removed, 2) << "seed " << seed;
  }
}

TEST(SimulationTest, EndsWithItsBudget) {
  WorkBudget budget(1'000);
  const SimResult result = Simulate(LargeScenario(1), &budget);
  EXPECT_EQ(result.cut_short_by, "work");
}

// --- what operators and platforms put on nodes

// Ten pods on three nodes. In each hour somebody marks one of them; a mark that keeps it keeps it.
TEST(SimulationTest, MarksOfOperatorsBreakNothingAtConstantLoad) {
  Scenario scenario = SmallScenario(10);
  scenario.faults.hand_mark = 1'000'000;
  scenario.faults.hand_mark_s = 1'800;
  for (scenario.seed = 1; scenario.seed <= 5; ++scenario.seed) {
    const SimResult result = SimulateAll(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.left_waiting, 0);
  }
}

// Ten pods need three nodes, however long these start, and whatever taint says that they do.
TEST(SimulationTest, NodesThatStartWithATaintAreWaitedFor) {
  Scenario scenario = SmallScenario(10);
  scenario.settings.slack_percent = 0;
  scenario.faults.startup_taint = 1'000'000;
  scenario.faults.startup_taint_s = 600;
  for (scenario.seed = 1; scenario.seed <= 10; ++scenario.seed) {
    const SimResult result = SimulateAll(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.nodes_added, 3);
    EXPECT_EQ(result.left_waiting, 0);
  }
}

// A pod that names a label which an operator puts on single nodes has no room there: nodes bought for it
// would not have the label.
TEST(SimulationTest, ALabelOfOneNodeMakesNoGroupBuyForEver) {
  Scenario scenario = SmallScenario(10);
  scenario.settings.slack_percent = 0;
  scenario.settings.scale_down = false;
  scenario.workloads.push_back({.name = "x", .replicas = 1, .request = {3'000, int64_t{1} << 30}});
  scenario.workloads.back().labelled_nodes_only = true;
  scenario.faults.hand_mark = 1'000'000;
  scenario.faults.hand_mark_s = 86'400;
  for (scenario.seed = 1; scenario.seed <= 10; ++scenario.seed) {
    const SimResult result = SimulateAll(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_LE(result.nodes_added, 3 + 1) << "one may show that it does not help";
  }
}

// Pods that go to labelled nodes only wait until there is one.
TEST(SimulationTest, LabelsOfOperatorsLetPodsCome) {
  Scenario scenario = SmallScenario(2);
  scenario.groups.front().nodes = scenario.groups.front().min_nodes = 1;
  scenario.workloads.front().labelled_nodes_only = true;
  EXPECT_EQ(SimulateAll(scenario).left_waiting, 2);
  scenario.faults.hand_mark = 1'000'000;
  const SimResult result = SimulateAll(scenario);
  EXPECT_EQ(result.left_waiting, 0);
  EXPECT_GE(result.waits.max, 3'600) << "the first mark comes after an hour";
}

TEST(ScenarioTest, NamesTheFieldThatIsWrong) {
  Scenario scenario = SmallScenario(10);
  EXPECT_TRUE(CheckScenario(scenario).ok());
  scenario.groups.front().nodes = 21;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("groups[0].nodes: 21"));
  scenario = SmallScenario(10);
  scenario.workloads.push_back(scenario.workloads.front());
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("workloads[1].name"));
  scenario = SmallScenario(kMostSimPods);
  scenario.workloads.front().bursts.push_back({0, 1, 1});
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("replicas of all"));
}

TEST(ScenarioTest, CurvesFallToTheirLowestPointTwelveHoursFromThePeak) {
  SimWorkload workload{.replicas = 100, .daily_percent = 60, .weekend_percent = 50};
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s), 100);
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s - 12 * 3600), 40);
  EXPECT_EQ(WantedReplicas(workload, workload.peak_s + 5 * 86'400), 50);
}

// By hand: a node of 8 cores and 32 GiB costs 0.4, one of 4 and 64 costs 0.6. Corners of the dual: all by
// memory (0.6 / 64 per GiB), all by cpu (0.05 per core), and both tight: 8 u + 32 v = 0.4, 4 u + 64 v = 0.6
// gives u = 1 / 60, v = 1 / 120.
TEST(BillBoundTest, IsTheLinearProgramOverPartsOfNodes) {
  constexpr int64_t kGib = int64_t{1} << 30;
  const BillBound bound({{.name = "a", .allocatable = {8'000, 32 * kGib}, .usd_per_hour = 0.4},
                         {.name = "b", .allocatable = {4'000, 64 * kGib}, .usd_per_hour = 0.6}});
  EXPECT_NEAR(bound.UsdPerHour({8'000, kGib}), 0.4, 1e-6) << "one node of the first group, by its cores";
  EXPECT_NEAR(bound.UsdPerHour({0, 128 * kGib}), 1.2, 1e-6) << "two of the second, by memory";
  EXPECT_NEAR(bound.UsdPerHour({12'000, 96 * kGib}), 1.0, 1e-6) << "one of each";
  EXPECT_EQ(bound.UsdPerHour({}), 0);
}

TEST(BillBoundTest, NoBillIsBelowIt) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const SimResult result = SimulateAll(RandomScenario(seed));
    EXPECT_LE(result.bound_usd, result.usd) << "seed " << seed;
    for (const SimSample& sample : result.series) {
      EXPECT_LE(sample.bound_usd_per_hour, sample.usd_per_hour) << "seed " << seed << " at " << sample.at_s;
    }
  }
}

TEST(SimulationTest, SlackIsPaidForAndShortensWaits) {
  Scenario scenario = SmallScenario(40);
  scenario.workloads.front().daily_percent = 60;
  scenario.days = 2;
  scenario.settings.slack_percent = 0;
  const SimResult without = SimulateAll(scenario);
  scenario.settings.slack_percent = 30;
  const SimResult with = SimulateAll(scenario);
  EXPECT_THAT(with.violations, IsEmpty());
  EXPECT_GT(with.usd, without.usd);
  EXPECT_LT(with.waits.mean, without.waits.mean);
}

TEST(SimulationTest, SamplesTellHowLongPodsWaited) {
  const SimResult result = SimulateAll(SmallScenario(10));
  double longest = 0;
  for (const SimSample& sample : result.series) {
    EXPECT_LE(sample.wait_p50, sample.wait_p95);
    EXPECT_LE(sample.wait_p95, sample.wait_max);
    longest = std::max(longest, sample.wait_max);
  }
  EXPECT_EQ(longest, result.waits.max);
}

// Each breaks one invariant by hand: a checker that sees nothing would pass all of the above.
class InvariantTest : public ::testing::Test {
 protected:
  explicit InvariantTest(Scenario scenario = SmallScenario(1)) : scenario_(std::move(scenario)) {
    world_.AddObserver(&checker_);
  }
  SimNodeIndex NodeThere() {
    cloud_.Grow(kGroup, 1);
    const SimMachineIndex machine = cloud_.machines(kGroup).back();
    cloud_.MachineUp(machine);
    const SimNodeIndex node = *world_.machine(machine).node;
    world_.SetReady(node, true);
    return node;
  }
  // Buys a node for all pods that wait, as the loop under test does.
  SimNodeIndex Buy(int8_t startup_taint = kNoStartupTaint) {
    checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
    checker_.Grew(kGroup, cloud_.Grow(kGroup, 1));
    const SimNodeIndex node = world_.AddNode(cloud_.machines(kGroup).back(), /*devices=*/true, startup_taint);
    world_.SetReady(node, true);
    return node;
  }
  std::string First() const { return checker_.violations().empty() ? "" : checker_.violations().front(); }

  const Scenario scenario_;
  World world_{scenario_};
  Cloud cloud_{&world_};
  InvariantChecker checker_{&world_, &cloud_};
};

TEST_F(InvariantTest, SeesGrowthBeyondTheMaximumAndWithoutNeed) {
  checker_.Grows({.group = kGroup, .machines = 21});
  EXPECT_THAT(checker_.violations(), ::testing::ElementsAre(HasSubstr("C1"), HasSubstr("C2")));
}

TEST_F(InvariantTest, SeesGrowthOfAGroupThatHasJustFailedTo) {
  world_.CreatePod(kWorkload);
  checker_.Grows({.group = kGroup, .machines = 1});
  checker_.Grew(kGroup, CloudAnswer::kNoCapacity);
  world_.set_now_ms(299'000);
  checker_.Grows({.group = kGroup, .machines = 1});
  EXPECT_THAT(First(), HasSubstr("C4"));
}

// A node that came for pods is ready and does not take them: another one of its group would not either.
TEST_F(InvariantTest, SeesGrowthForPodsThatTheLastNodeDidNotTake) {
  world_.CreatePod(kWorkload);
  const SimNodeIndex node = Buy();
  world_.set_now_ms(3'000);
  checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
  EXPECT_THAT(First(),
              HasSubstr("C5 at 3000 ms: group g grows for w, and node 0, which came for it, has room"));
  EXPECT_TRUE(world_.node(node).Offers());
}

TEST_F(InvariantTest, GrowthIsFineWhereTheLastNodeIsFullOrMarkedOrLongThere) {
  for (int i = 0; i < 9; ++i) world_.CreatePod(kWorkload);
  const SimNodeIndex node = Buy();
  const auto grow_at = [&](int64_t at_ms) {
    world_.set_now_ms(at_ms);
    checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
  };
  grow_at(1'000);  // the scheduler may not have seen it
  world_.SetMark(node, SimMark::kCordon, true);
  grow_at(3'000);
  world_.SetMark(node, SimMark::kCordon, false);
  grow_at(4'000);
  for (int32_t pod = 0; pod < 4; ++pod) world_.Bind(SimPodIndex{pod}, node);
  grow_at(6'000);
  world_.Terminate(SimPodIndex{0});
  world_.Vanish(SimPodIndex{0});
  grow_at(303'000);  // the back-off is over
  EXPECT_THAT(checker_.violations(), IsEmpty());
}

TEST_F(InvariantTest, SeesGrowthForPodsWhileANodeStartsForThem) {
  for (int i = 0; i < 4; ++i) world_.CreatePod(kWorkload);
  const SimNodeIndex node = Buy(/*startup_taint=*/0);
  world_.set_now_ms(60'000);
  checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
  EXPECT_THAT(First(), HasSubstr("C5 at 60000 ms"));
  EXPECT_THAT(First(), HasSubstr("has room and starts since 60000 ms"));
  world_.CreatePod(kWorkload);  // a fifth one has no room on four cores
  checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
  world_.TakeStartupTaint(node);
  checker_.Grows({.group = kGroup, .machines = 1, .workloads = {kWorkload}});
  EXPECT_EQ(checker_.violations().size(), 1u);
}

TEST_F(InvariantTest, SeesANodeThatGoesThoughAnOperatorKeepsIt) {
  const SimNodeIndex node = NodeThere();
  world_.SetMark(node, SimMark::kKeep, true);
  world_.set_now_ms(3'600'000);
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_THAT(First(), HasSubstr("D14"));
}

TEST_F(InvariantTest, SeesNodesThatGoWhileGroupsHaveJustGrown) {
  const SimNodeIndex node = NodeThere();
  world_.set_now_ms(3'600'000);
  checker_.Grew(kGroup, CloudAnswer::kDone);
  world_.set_now_ms(4'199'000);
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_THAT(First(), HasSubstr("D11"));
}

TEST_F(InvariantTest, SeesAnEmptyNodeThatHasPods) {
  const SimNodeIndex node = NodeThere();
  world_.Bind(world_.CreatePod(kWorkload), node);
  world_.set_now_ms(7'200'000);
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_THAT(First(), HasSubstr("D8"));
}

TEST_F(InvariantTest, SeesAMarkThatStays) {
  const SimNodeIndex node = NodeThere();
  for (int i = 0; i < 3; ++i) world_.Bind(world_.CreatePod(kWorkload), node);
  world_.SetTainted(node, true);
  world_.set_now_ms(10'800'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), HasSubstr("G3"));
}

TEST_F(InvariantTest, SeesAPodThatWaitsThoughItsGroupCouldGrow) {
  world_.CreatePod(kWorkload);
  world_.set_now_ms(3'599'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), IsEmpty()) << "within the hour";
  world_.set_now_ms(3'601'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), HasSubstr("E3"));
}

TEST_F(InvariantTest, CountsTheWaitFromWhenTheGroupCouldGrow) {
  cloud_.Grow(kGroup, scenario_.groups.front().max_nodes);
  checker_.Grew(kGroup, CloudAnswer::kDone);
  world_.CreatePod(kWorkload);
  world_.set_now_ms(3'601'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), IsEmpty()) << "it has its maximum";
  cloud_.MachineUp(SimMachineIndex{0});
  cloud_.Delete(SimMachineIndex{0});
  cloud_.MachineGone(SimMachineIndex{0});
  world_.set_now_ms(7'200'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), IsEmpty()) << "for less than an hour";
  world_.set_now_ms(7'202'000);
  checker_.CheckProgress();
  EXPECT_THAT(First(), HasSubstr("E3"));
}

TEST_F(InvariantTest, SeesASumThatIsNotThatOfThePods) {
  const SimNodeIndex node = NodeThere();
  world_.Bind(world_.CreatePod(kWorkload), node);
  checker_.CheckSums(node, {1'000, int64_t{1} << 30});
  EXPECT_THAT(First(), IsEmpty());
  checker_.CheckSums(node, {0, 0});
  EXPECT_THAT(First(), HasSubstr("F5"));
}

TEST_F(InvariantTest, SeesAPodThatGoesWithItsNode) {
  const SimNodeIndex node = NodeThere();
  world_.Bind(world_.CreatePod(kWorkload), node);
  checker_.Deletes(world_.node(node).machine, /*late=*/false);
  EXPECT_THAT(First(), HasSubstr("D3"));
}

// The same with pods that plans treat as if they were not there.
class ExpendableInvariantTest : public InvariantTest {
 protected:
  ExpendableInvariantTest() : InvariantTest(Expendable()) {}

 private:
  static Scenario Expendable() {
    Scenario scenario = SmallScenario(1);
    scenario.workloads.front().priority = -11;
    scenario.workloads.front().not_evictable = true;
    return scenario;
  }
};

TEST_F(ExpendableInvariantTest, ItsPodsMayGoWithTheirNodeAndWaitForNone) {
  const SimNodeIndex node = NodeThere();
  const SimPodIndex evicted = world_.CreatePod(kWorkload);
  world_.Bind(evicted, node);
  world_.SetRunning(evicted);
  world_.Bind(world_.CreatePod(kWorkload), node);
  world_.CreatePod(kWorkload);
  world_.set_now_ms(7'200'000);
  checker_.CheckProgress();
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_EQ(world_.Evict(evicted), SimEviction::kDone);
  checker_.Deletes(world_.node(node).machine, /*late=*/false);
  EXPECT_THAT(checker_.violations(), IsEmpty());
}

TEST_F(InvariantTest, SeesAMachineWithANodeGivenUpAsLate) {
  world_.set_now_ms(3'600'000);
  const SimNodeIndex node = NodeThere();
  world_.set_now_ms(7'200'000);
  checker_.Deletes(world_.node(node).machine, /*late=*/true);
  EXPECT_THAT(First(), HasSubstr("D9"));
}

TEST_F(InvariantTest, SeesANodeThatGoesTwiceOrTooEarly) {
  const SimNodeIndex node = NodeThere();
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_THAT(First(), HasSubstr("D7"));
  checker_.StartsToGo(node, /*empty=*/true, /*of_move=*/false);
  EXPECT_THAT(checker_.violations(), ::testing::Contains(HasSubstr("D10")));
}

TEST_F(InvariantTest, SeesANodeGivenBackThatTheCloudDeletes) {
  const SimNodeIndex node = NodeThere();
  ASSERT_EQ(cloud_.Delete(world_.node(node).machine), CloudAnswer::kDone);
  checker_.GivesBack(node);
  EXPECT_THAT(First(), HasSubstr("D10"));
}

TEST_F(InvariantTest, SeesANodeWithMoreThanItOffers) {
  const SimNodeIndex node = NodeThere();
  for (int i = 0; i < 5; ++i) world_.Bind(world_.CreatePod(kWorkload), node);
  EXPECT_THAT(First(), HasSubstr("A7"));
}

}  // namespace
}  // namespace loadline
