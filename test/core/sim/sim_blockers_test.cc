#include "core/sim/sim_blockers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/sim/simulation.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ten nodes, and four pods that stay where they are: each has room on any of them.
Scenario PodsThatStay(int64_t blockers_together) {
  Scenario scenario;
  scenario.groups.push_back({.name = "g",
                             .max_nodes = 20,
                             .nodes = 10,
                             .allocatable = {4'000, int64_t{16} << 30},
                             .usd_per_hour = 0.5});
  scenario.workloads.push_back(
      {.name = "stays", .replicas = 4, .request = {500, int64_t{1} << 30}, .not_evictable = true});
  scenario.settings.score = SimScore::kLimitAware;
  scenario.settings.blockers_together = blockers_together;
  scenario.settings.slack_percent = 0;
  return scenario;
}

int64_t NodesInTheEnd(const Scenario& scenario) {
  WorkBudget unlimited;
  const SimResult result = Simulate(scenario, &unlimited);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.left_waiting, 0);
  return result.series.back().nodes;
}

TEST(SimBlockersTest, PodsThatStayTogetherLetMoreNodesGo) {
  EXPECT_GT(NodesInTheEnd(PodsThatStay(0)), 1);
  EXPECT_EQ(NodesInTheEnd(PodsThatStay(20)), 1);
}

TEST(SimBlockersTest, KnowsTheWorkloadsThatBlock) {
  Scenario scenario = PodsThatStay(1);
  const SimWorkload movable = {.name = "movable", .replicas = 1, .max_unavailable = 1};
  for (const std::string name : {"movable", "kept", "twice", "daemon"}) {
    scenario.workloads.push_back(movable);
    scenario.workloads.back().name = name;
  }
  scenario.workloads[SimWorkloadIndex{2}].max_unavailable = 0;
  scenario.workloads[SimWorkloadIndex{3}].two_budgets = true;
  scenario.workloads[SimWorkloadIndex{4}].kind = SimWorkloadKind::kDaemon;
  scenario.workloads[SimWorkloadIndex{4}].max_unavailable = 0;
  const auto blocking = BlockingWorkloads(scenario, ShapesOf(scenario));
  std::string blocks;
  for (const SimWorkloadIndex workload : scenario.workloads.indices()) {
    if (blocking[workload]) absl::StrAppend(&blocks, scenario.workloads[workload].name, " ");
  }
  EXPECT_EQ(blocks, "stays kept twice ");
  scenario.settings.blockers_together = 0;
  for (const bool any : BlockingWorkloads(scenario, ShapesOf(scenario))) EXPECT_FALSE(any);
}

TEST(SimBlockersTest, TakesTheScoreThatKnowsThem) {
  Scenario scenario = PodsThatStay(51);
  EXPECT_THAT(std::string(CheckScenario(scenario).message()),
              HasSubstr("settings.blockersTogether: 51 is not in [0, 50]"));
  scenario.settings.blockers_together = 1;
  scenario.settings.score = SimScore::kLeastAllocated;
  EXPECT_THAT(std::string(CheckScenario(scenario).message()), HasSubstr("needs score LIMIT_AWARE"));
}

}  // namespace
}  // namespace loadline
