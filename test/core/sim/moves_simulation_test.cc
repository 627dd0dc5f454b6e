// Nodes that are replaced, in the simulator: it rests in the end, costs no more then, and ends where plans
// say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sim/invariant_checker.h"
#include "core/sim/random_stream.h"
#include "core/sim/simulation.h"
#include "test/sim/random_scenario.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMovesGiB = int64_t{1} << 30;
constexpr int64_t kMovesHourMs = 3'600'000;

SimResult SimulateMoves(const Scenario& scenario) {
  WorkBudget unlimited;
  return Simulate(scenario, &unlimited);
}

// Eight nodes with 4 cores for 0.50 each, filled by 30 pods; two with 16 cores hold them for 0.80 each.
Scenario EightSmallNodes() {
  Scenario scenario;
  scenario.groups.push_back({.name = "small",
                             .max_nodes = 20,
                             .nodes = 8,
                             .allocatable = {4'000, 16 * kMovesGiB},
                             .usd_per_hour = 0.5});
  scenario.groups.push_back(
      {.name = "big", .max_nodes = 20, .allocatable = {16'000, 64 * kMovesGiB}, .usd_per_hour = 0.8});
  scenario.workloads.push_back({.name = "w", .replicas = 30, .request = {1'000, kMovesGiB}});
  scenario.settings.slack_percent = 0;
  scenario.settings.replace = true;
  scenario.settings.replacement.prices.usd_per_pod = 0.0005;
  return scenario;
}

TEST(MovesSimulationTest, ReplacesSmallNodesByBigOnes) {
  const SimResult result = SimulateMoves(EightSmallNodes());
  EXPECT_THAT(result.violations, IsEmpty());
  ASSERT_FALSE(result.moves.bills.empty());
  EXPECT_NEAR(result.moves.bills.front().now, 4.0, 1e-9);
  EXPECT_NEAR(result.moves.bills.back().now, 1.6, 1e-9);
  EXPECT_EQ(result.moves.done, result.moves.begun);
  EXPECT_GE(result.nodes_removed, 8);
  // A pod that moved into room on a node that is removed later moves again.
  EXPECT_GE(result.evictions, 30);
  EXPECT_LE(result.evictions, 40);
}

TEST(MovesSimulationTest, ReplacesNothingUnlessItIsSet) {
  Scenario scenario = EightSmallNodes();
  scenario.settings.replace = false;
  const SimResult result = SimulateMoves(scenario);
  EXPECT_EQ(result.moves.begun, 0);
  EXPECT_EQ(result.evictions, 0);
  EXPECT_THAT(result.moves.bills, IsEmpty());
}

TEST(MovesSimulationTest, MovesBeginInWindows) {
  Scenario scenario = EightSmallNodes();
  constexpr int64_t kFromS = 7'200;
  constexpr int64_t kForS = 600;
  ASSERT_LT(SimulateMoves(scenario).moves.log.front().at_ms, kFromS * 1'000) << "at any time";
  scenario.settings.replacement.windows.emplace(1,
                                                TimeWindow{kSimEpochS + kFromS, kSimEpochS + kFromS + kForS});
  const SimResult result = SimulateMoves(scenario);
  ASSERT_FALSE(result.moves.log.empty());
  for (const SimMove& move : result.moves.log) {
    EXPECT_GE(move.at_ms, kFromS * 1'000);
    EXPECT_LT(move.at_ms, (kFromS + kForS) * 1'000);
  }
  EXPECT_LE(result.moves.log.front().at_ms, (kFromS + scenario.settings.scan_interval_s) * 1'000);
  EXPECT_EQ(result.moves.done, result.moves.begun) << "what has begun goes on after the window";
  EXPECT_GT(result.nodes_removed, 0);
}

// Eight small nodes beside a group for other pods only. One of these pods arrives every 15 minutes and stays,
// and its machine takes 20 minutes, so that one is always upcoming; another pod is larger than any node.
Scenario SmallNodesInABusyCluster() {
  Scenario scenario = EightSmallNodes();
  const SimGroup small = scenario.groups[GroupIndex{0}];
  SimGroup& batch = scenario.groups.emplace_back(small);
  batch.name = "batch";
  batch.max_nodes = 100;
  batch.nodes = 0;
  batch.tainted = true;
  batch.start_s_min = batch.start_s_max = 1'200;
  scenario.settings.max_node_provision_s = 3'600;
  SimWorkload& jobs = scenario.workloads.emplace_back();
  jobs.name = "jobs";
  jobs.kind = SimWorkloadKind::kTrace;
  jobs.request = {3'000, kMovesGiB};
  jobs.group = "batch";
  jobs.run_s_min = jobs.run_s_max = 200'000;
  for (int64_t at_s = 60; at_s < 86'400; at_s += 900) jobs.arrivals.push_back({at_s, 1});
  scenario.workloads.push_back({.name = "huge", .replicas = 1, .request = {100'000, kMovesGiB}});
  return scenario;
}

TEST(MovesSimulationTest, GrowthOfOtherGroupsKeepsNoMoveBack) {
  const SimResult result = SimulateMoves(SmallNodesInABusyCluster());
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_GE(result.moves.done, 1);
  EXPECT_EQ(result.moves.given_up, 0) << ::testing::PrintToString(result.moves.why_given_up);
  EXPECT_EQ(result.nodes_removed, 8);
  EXPECT_EQ(result.nodes_added, 8 + 2 + 95)
      << "eight at the start, two big ones, and one for each pod but the last, whose node is coming";
}

// Two dear nodes with 16 cores in each of three zones, over which 18 pods spread evenly, and one of which may
// be disrupted at a time; seven pods are beside them. Nodes with 4 cores cost a fifth.
Scenario DearNodesInZones() {
  Scenario scenario;
  for (const std::string zone : {"a", "b", "c"}) {
    SimGroup& big = scenario.groups.emplace_back();
    big = {.name = "big-" + zone, .max_nodes = 20, .nodes = 2, .allocatable = {16'000, 64 * kMovesGiB}};
    big.usd_per_hour = 1;
    big.zone = zone;
    SimGroup& small = scenario.groups.emplace_back();
    small = {.name = "small-" + zone, .max_nodes = 20, .allocatable = {4'000, 16 * kMovesGiB}};
    small.usd_per_hour = 0.2;
    small.zone = zone;
  }
  scenario.workloads.push_back({.name = "web", .replicas = 18, .request = {1'000, kMovesGiB}});
  scenario.workloads.back().max_zone_skew = 1;
  scenario.workloads.back().max_unavailable = 1;
  scenario.workloads.push_back({.name = "plain", .replicas = 7, .request = {700, 900 << 20}});
  scenario.settings.slack_percent = 0;
  scenario.settings.replace = true;
  return scenario;
}

// The drains of a move last for long where a budget lets one pod go at a time: pods that return meanwhile
// stay in their zone, and the others must leave them the room there. In the end no dear node is left. Six
// pods of each zone take two of the small nodes, and the seventh pod beside them takes one more, or two if
// the scheduler shares them out badly: 8 * 0.20 USD, while a dear one in a zone costs 1.00 + 4 * 0.20.
TEST(MovesSimulationTest, NoMoveIsGivenUpUnderConstantLoad) {
  for (const uint64_t seed : {1, 4, 6}) {
    Scenario scenario = DearNodesInZones();
    scenario.seed = seed;
    scenario.days = 3;
    const SimResult result = SimulateMoves(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_GE(result.moves.done, 1);
    EXPECT_LE(result.moves.bills.back().now, 1.6 + 1e-9);
    EXPECT_EQ(result.moves.given_up, 0) << ::testing::PrintToString(result.moves.why_given_up);
    EXPECT_EQ(result.moves.done, result.moves.begun);
  }
}

// Machines that never become nodes: the move is given up, and tried again when its nodes have rested.
TEST(MovesSimulationTest, GivesUpWhereMachinesDoNotCome) {
  Scenario scenario = EightSmallNodes();
  scenario.faults.phantom = 1'000'000;
  const SimResult result = SimulateMoves(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.moves.done, 0);
  EXPECT_GE(result.moves.given_up, 2);
  ASSERT_FALSE(result.moves.why_given_up.empty());
  EXPECT_THAT(result.moves.why_given_up[0], HasSubstr("not come in time"));
  EXPECT_EQ(result.evictions, 0);
}

TEST(MovesSimulationTest, APolicyOutOfItsRangeIsRefused) {
  Scenario scenario = EightSmallNodes();
  scenario.settings.replacement.options.payback_hours = 0;
  EXPECT_THAT(CheckScenario(scenario).message(), HasSubstr("settings.consolidation.paybackHours"));
  scenario = EightSmallNodes();
  scenario.settings.replacement.options.max_nodes_at_once = 0;
  EXPECT_THAT(CheckScenario(scenario).message(), HasSubstr("settings.consolidation.maxNodesAtOnce"));
  scenario = EightSmallNodes();
  scenario.settings.replacement.prices.usd_per_pod = -1;
  EXPECT_THAT(CheckScenario(scenario).message(), HasSubstr("settings.consolidation: US dollars"));
}

// Growth for a move while a node of another group is removed, and of its own; beside other growth; while a
// machine is on its way, and while a pod waits; and more nodes that are replaced at once than may be.
TEST(MovesSimulationTest, MovesThatBreakTheirLimitsAreSeen) {
  Scenario scenario = EightSmallNodes();
  scenario.settings.replacement.options.max_nodes_at_once = 1;
  World world(scenario);
  Cloud cloud(&world);
  InvariantChecker checker(&world, &cloud);
  world.AddObserver(&checker);
  cloud.Start();
  const auto violates = [&](size_t count, const std::string& text) {
    ASSERT_EQ(checker.violations().size(), count) << ::testing::PrintToString(checker.violations());
    EXPECT_THAT(checker.violations().back(), HasSubstr("D13 at 0 ms: " + text));
  };
  checker.StartsToGo(SimNodeIndex{0}, /*empty=*/false, /*of_move=*/true);
  EXPECT_THAT(checker.violations(), IsEmpty()) << "it needs no timer";
  checker.StartsToGo(SimNodeIndex{1}, /*empty=*/false, /*of_move=*/true);
  violates(1, "2 nodes are replaced at once");
  checker.Grows({.group = GroupIndex{1}, .machines = 1, .for_moves = 1});
  EXPECT_EQ(checker.violations().size(), 1U) << "these nodes are of another group";
  checker.Grows({.group = GroupIndex{0}, .machines = 1, .for_moves = 1});
  violates(2, "group small grows for a move while one of its nodes goes");
  checker.Grows({.group = GroupIndex{1}, .machines = 2, .for_slack = 1, .for_moves = 1});
  violates(3, "group big grows for a move and for something else");
  cloud.Grow(GroupIndex{1}, 1);
  world.CreatePod(SimWorkloadIndex{0});
  world.set_now_ms(90'000);
  checker.Grows({.group = GroupIndex{1}, .machines = 1, .for_moves = 1});
  ASSERT_EQ(checker.violations().size(), 5U);
  EXPECT_THAT(checker.violations()[3], HasSubstr("group big grows for a move while machines of it are on"));
  EXPECT_THAT(checker.violations()[4], HasSubstr("group big grows for a move while a pod of w waits"));
}

// Load of two hours that appears, grows and ends, and is constant from then on.
constexpr int64_t kLoadStopsMs = 2 * kMovesHourMs;

Scenario LoadThatStops(uint64_t seed) {
  RandomStream random(seed, SimPurpose{2'000});
  Scenario scenario;
  scenario.seed = seed;
  scenario.days = 1;
  scenario.load_step_s = 60;
  double usd_per_core = 0.05;
  for (int i = 0; i < 3; ++i) {
    SimGroup& group = scenario.groups.emplace_back();
    group.name = absl::StrCat("g", i);
    group.allocatable.cpu = 2'000 << i;
    group.allocatable.memory = group.allocatable.cpu / 1'000 * kMovesGiB * random.Between(2, 6);
    group.usd_per_hour =
        usd_per_core * static_cast<double>(group.allocatable.cpu) / 1'000 + 0.001 * static_cast<double>(i);
    usd_per_core *= static_cast<double>(random.Between(75, 110)) / 100;
    group.max_nodes = 30;
    group.nodes = random.Between(0, 4);
  }
  const int64_t workloads = random.Between(3, 6);
  for (int64_t i = 0; i < workloads; ++i) {
    SimWorkload& workload = scenario.workloads.emplace_back();
    workload.name = absl::StrCat("w", i);
    workload.replicas = random.Between(1, 12);
    workload.request = {random.Between(1, 7) * 200, random.Between(1, 12) * (kMovesGiB / 4)};
    workload.bursts.push_back({random.Between(0, 3'000), random.Between(600, 4'000), random.Between(1, 12)});
    if (random.Chance(500'000)) workload.max_unavailable = random.Between(1, 3);
    workload.apart = random.Chance(150'000);
  }
  SimSettings& settings = scenario.settings;
  settings.slack_percent = 0;
  settings.after_add_s = settings.unneeded_time_s = 60;
  settings.replace = true;
  settings.replacement.rest_ms = 600'000;
  settings.run_every_loop = seed % 8 == 1;  // the others leave out loops that would do nothing
  return scenario;
}

class MovesAtRestTest : public ::testing::TestWithParam<int> {
 protected:
  MovesAtRestTest()
      : scenario_(LoadThatStops(static_cast<uint64_t>(GetParam()))),
        result_(ResultOf(GetParam(), scenario_)) {
    for (const SimBill& bill : result_.moves.bills) {
      if (bill.at_ms >= kLoadStopsMs) bills_.push_back(bill);
    }
  }

  // Each is simulated once.
  static const SimResult& ResultOf(int seed, const Scenario& scenario) {
    static std::map<int, SimResult> results;
    const auto found = results.find(seed);
    return found != results.end() ? found->second
                                  : results.emplace(seed, SimulateMoves(scenario)).first->second;
  }

  const Scenario scenario_;
  const SimResult& result_;
  std::vector<SimBill> bills_;  // since the load has stopped
};

TEST_P(MovesAtRestTest, NoMoveBeginsForAThousandLoops) {
  EXPECT_THAT(result_.violations, IsEmpty());
  if (scenario_.settings.run_every_loop) {
    EXPECT_GE(result_.loops, 8'600);
  }
  ASSERT_LT(result_.moves.log.size(), kMostSimMoves);
  const int64_t quiet_ms = 1'000 * scenario_.settings.scan_interval_s * 1'000;
  const int64_t last_ms = result_.moves.log.empty() ? 0 : result_.moves.log.back().at_ms;
  EXPECT_LE(last_ms, 24 * kMovesHourMs - quiet_ms);
}

TEST_P(MovesAtRestTest, CostNeverRises) {
  for (size_t i = 1; i < bills_.size(); ++i) {
    EXPECT_LE(bills_[i].now, bills_[i - 1].now + 1e-9) << "at " << bills_[i].at_ms << " ms";
  }
}

// Each wave has saved at least what it was to save, and in the end nothing is left to be reached.
TEST_P(MovesAtRestTest, MovesEndWhereThePlanSaid) {
  for (size_t i = 0; i + 1 < bills_.size(); ++i) {
    double saves = 0;
    for (const SimMove& move : result_.moves.log) saves += move.at_ms == bills_[i].at_ms ? move.saves : 0;
    if (saves > 0) {
      EXPECT_LE(bills_[i + 1].now, bills_[i].now - saves + 1e-9)
          << "at " << bills_[i].at_ms
          << " ms; given up: " << ::testing::PrintToString(result_.moves.why_given_up);
    }
  }
  ASSERT_FALSE(result_.moves.bills.empty());
  EXPECT_NEAR(result_.moves.bills.back().now, result_.moves.bills.back().reachable, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MovesAtRestTest, ::testing::Range(1, 25));
// Here drains that wait used up the room or the budgets that the drains of a move needed.
INSTANTIATE_TEST_SUITE_P(SeedsThatStoodStill, MovesAtRestTest, ::testing::Values(29, 31, 49, 60, 62, 75, 81));

}  // namespace
}  // namespace loadline
