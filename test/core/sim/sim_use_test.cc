#include "core/sim/sim_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/sim/simulation.h"
#include "test/sim/random_scenario.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kUseGib = int64_t{1} << 30;

SimResult RunWithUse(const Scenario& scenario) {
  WorkBudget unlimited;
  return Simulate(scenario, &unlimited);
}

SimWorkload Limited(SimUse use) {
  SimWorkload workload{
      .name = "w", .replicas = 1, .request = {500, kUseGib}, .limit = {2'000, 4 * kUseGib}, .use = use};
  return workload;
}

TEST(SimUseTest, PatternsAreSharesOfTheLimit) {
  const SimHours office =
      HoursOf(Limited({.pattern = SimUsePattern::kOfficeHours, .cpu_peak_percent = 50, .phase_hours = 3}));
  EXPECT_EQ(office.cpu[12], 1'000) << "9:00, three hours later";
  EXPECT_EQ(office.cpu[19], 1'000);
  EXPECT_EQ(office.cpu[20], 600);
  EXPECT_EQ(office.cpu[0], 150);
  EXPECT_EQ(office.memory[12], 0) << "nothing is stated of it";
  const SimHours night = HoursOf(
      Limited({.pattern = SimUsePattern::kNightBatch, .cpu_peak_percent = 100, .memory_peak_percent = 100}));
  EXPECT_EQ(night.cpu[0], 2'000);
  EXPECT_EQ(night.cpu[12], 200);
  EXPECT_EQ(night.memory[0], 4 * kUseGib);
  EXPECT_EQ(night.memory[12], (4 * kUseGib * 55 + 99) / 100) << "it falls half as far";
}

TEST(SimUseTest, HoursOfAProfileEndAtTheLimit) {
  SimUse use;
  use.cpu_milli[3] = 5'000;
  use.memory_bytes[4] = kUseGib;
  const SimHours hours = HoursOf(Limited(use));
  EXPECT_EQ(hours.cpu[3], 2'000);
  EXPECT_EQ(hours.cpu[4], 0);
  EXPECT_EQ(hours.memory[4], kUseGib);
}

TEST(SimUseTest, RefusesWhatCannotBe) {
  Scenario scenario;
  scenario.groups.push_back({.name = "g", .max_nodes = 1, .allocatable = {4'000, kUseGib}});
  const auto refusal = [&](const SimUse& use) {
    scenario.workloads = {};
    scenario.workloads.push_back(Limited(use));
    scenario.workloads.front().limit.memory = 0;
    return std::string(CheckScenario(scenario).message());
  };
  EXPECT_THAT(refusal({.pattern = SimUsePattern::kFlat, .cpu_peak_percent = 50}), IsEmpty());
  EXPECT_THAT(refusal({.pattern = SimUsePattern::kFlat}), HasSubstr("workloads[0].use.pattern: needs"));
  EXPECT_THAT(refusal({.pattern = SimUsePattern::kFlat, .memory_peak_percent = 1}),
              HasSubstr("workloads[0].use.pattern: is a share"));
  EXPECT_THAT(refusal({.pattern = SimUsePattern::kFlat, .cpu_peak_percent = 101}),
              HasSubstr("workloads[0].use.cpuPeakPercent"));
  EXPECT_THAT(refusal({.phase_hours = 24}), HasSubstr("workloads[0].use.phaseHours"));
  EXPECT_THAT(refusal({.deviation_percent = -1}), HasSubstr("workloads[0].use.deviationPercent"));
  scenario.workloads = {};
  scenario.settings.expected_line.cpu = 1'000;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("maxExpectedOverAllocatable: needs"));
  scenario.settings.expected_use.on = true;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), IsEmpty());
  scenario.settings.limits_line.memory = kLowestLine - 1;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("maxLimitsOverAllocatable.memory"));
}

// Ten pods that are busy by day and ten that are busy at night, with requests of half a core, limits of two:
// by requests all of them have room on three nodes of four cores.
Scenario DayAndNight() {
  Scenario scenario;
  scenario.groups.push_back({.name = "g", .max_nodes = 20, .allocatable = {4'000, 64 * kUseGib}});
  scenario.workloads.push_back(Limited({.pattern = SimUsePattern::kOfficeHours, .cpu_peak_percent = 80}));
  scenario.workloads.push_back(Limited({.pattern = SimUsePattern::kNightBatch, .cpu_peak_percent = 80}));
  scenario.workloads.front().name = "day";
  for (SimWorkload& workload : scenario.workloads) workload.replicas = 10;
  scenario.settings.slack_percent = 0;
  scenario.days = 2;
  return scenario;
}

TEST(SimUseTest, WhatIsUsedAloneChangesNothing) {
  Scenario scenario = DayAndNight();
  scenario.settings.score = SimScore::kLimitAware;
  const SimResult with_use = RunWithUse(scenario);
  ASSERT_TRUE(with_use.load.overload.has_value());
  EXPECT_GT(with_use.load.overload->cpu_node_hours, 0);
  EXPECT_EQ(with_use.load.overload->memory_node_hours, 0);
  for (SimWorkload& workload : scenario.workloads) workload.use.reset();
  const SimResult without = RunWithUse(scenario);
  EXPECT_FALSE(without.load.overload.has_value());
  EXPECT_EQ(without.digest, with_use.digest);
  scenario.settings.expected_use.on = true;
  EXPECT_EQ(RunWithUse(scenario).digest, without.digest)
      << "nothing is known, and pods count by their limits";
}

// Two pods of each kind use at most 2 * 1600 + 2 * 240 of 4000 at night, and less by day: five nodes hold
// all, where limits allow two pods on each.
TEST(SimUseTest, ALineOfExpectedUseNeedsFewerNodesThanOneOfLimits) {
  Scenario scenario = DayAndNight();
  const SimResult none = RunWithUse(scenario);
  EXPECT_THAT(none.violations, IsEmpty());
  EXPECT_EQ(none.load.nodes_max, 3);
  EXPECT_GT(none.load.overload->cpu_node_hours, 2 * 8) << "one node at least, by day";
  scenario.settings.limits_line.cpu = 1'000;
  const SimResult limits = RunWithUse(scenario);
  EXPECT_THAT(limits.violations, IsEmpty());
  EXPECT_EQ(limits.load.nodes_max, 10);
  EXPECT_EQ(limits.load.overload->cpu_node_hours, 0);
  scenario.settings.limits_line.cpu = 0;
  scenario.settings.expected_line.cpu = 1'000;
  scenario.settings.expected_use.on = true;
  scenario.settings.score = SimScore::kLimitAware;
  const SimResult expected = RunWithUse(scenario);
  EXPECT_THAT(expected.violations, IsEmpty());
  EXPECT_LT(expected.load.nodes_max, 9) << "five, if they were packed as well as can be";
  EXPECT_EQ(expected.left_waiting, 0);
  EXPECT_EQ(expected.load.overload->cpu_node_hours, 0);
  for (SimWorkload& workload : scenario.workloads) workload.use->deviation_percent = 20;
  const SimResult deviating = RunWithUse(scenario);
  EXPECT_EQ(deviating.digest, expected.digest) << "nobody knows of it";
  EXPECT_GT(RunWithUse(DayAndNight()).load.overload->cpu_volume, 0);
  EXPECT_EQ(RunWithUse(scenario).load.overload->cpu_volume, deviating.load.overload->cpu_volume);
}

// By limits the second pod of the day joins the first one, since the pod of the night may use more. At
// night that one has its node to itself, and by day it uses little.
TEST(SimUseTest, TheScoreBringsPodsOfDifferentHoursTogether) {
  Scenario scenario = DayAndNight();
  SimGroup& group = scenario.groups.front();
  group.nodes = group.min_nodes = group.max_nodes = 2;
  group.allocatable.cpu = 3'000;
  scenario.workloads.back().limit.cpu = 3'000;
  scenario.workloads.push_back(scenario.workloads.front());
  scenario.workloads.back().name = "day-2";
  int32_t priority = 3;
  for (SimWorkload& workload : scenario.workloads) {
    workload.replicas = 1;
    workload.priority = priority--;
  }
  scenario.settings.score = SimScore::kLimitAware;
  const SimResult by_limits = RunWithUse(scenario);
  EXPECT_GE(by_limits.load.overload->cpu_node_hours, 15.9) << "eight hours of each day";
  scenario.settings.expected_use.on = true;
  EXPECT_EQ(RunWithUse(scenario).load.overload->cpu_node_hours, 0);
}

TEST(SimUseTest, LinesBreakNoInvariantOfDrawnClusters) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Scenario scenario = RandomScenario(seed);
    for (SimWorkload& workload : scenario.workloads) {
      if (workload.limit.cpu == 0) continue;
      workload.use = {.pattern = seed % 2 == 0 ? SimUsePattern::kOfficeHours : SimUsePattern::kNightBatch,
                      .cpu_peak_percent = 60,
                      .memory_peak_percent = 50,
                      .phase_hours = static_cast<int64_t>(seed)};
    }
    scenario.settings.score = SimScore::kLimitAware;
    scenario.settings.expected_use.on = true;
    scenario.settings.limits_line = {2'000, 1'500};
    scenario.settings.expected_line = {1'000, 900};
    EXPECT_THAT(RunWithUse(scenario).violations, IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loadline
