// The least saving of a move: its cost is paid back while its pods are expected to need room.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/consolidate/consolidator.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

ConsolidationOptions Surging(double surge_hours) {
  ConsolidationOptions options;
  options.least_saving_usd_per_hour = 0.001;
  options.least_saving_percent = 0;
  options.payback_hours = 1;
  options.surge_hours = surge_hours;
  return options;
}

struct TermsCase {
  std::string name;
  std::vector<std::optional<double>> ages;  // of nodes of 0.10 USD per hour
  double added = 0;
  double disturbance = 0;
  double surge_hours = 0;
  double required = 0;
};
class MoveTermsTest : public ::testing::TestWithParam<TermsCase> {};

TEST_P(MoveTermsTest, RequireWhatTheMoveCosts) {
  const TermsCase& c = GetParam();
  MoveTerms terms;
  for (const std::optional<double>& age : c.ages) terms.Remove(0.10, age);
  terms.Add(c.added);
  terms.Disturb(c.disturbance);
  EXPECT_NEAR(terms.Required(Surging(c.surge_hours)), c.required, 1e-12);
  EXPECT_NEAR(terms.saves(), 0.10 * static_cast<double>(c.ages.size()) - c.added, 1e-12);
}

// The time within which it pays is a quarter of the age.
INSTANTIATE_TEST_SUITE_P(
    Cases, MoveTermsTest,
    ::testing::ValuesIn(std::vector<TermsCase>{
        {"NothingIsKnown", {std::nullopt}, 0.05, 0.01, 0.5, 0.01},         // the disturbance within an hour
        {"OldNodes", {400.0}, 0.05, 0, 0.5, 0.001},                        // 0.5 * 0.05 / 100 is less
        {"SurgeOfAYoungNode", {1.0}, 0.05, 0, 0.5, 0.1},                   // 0.5 * 0.05 / 0.25
        {"DisturbanceOfAYoungNode", {1.0}, 0, 0.01, 0.5, 0.04},            // 0.01 / 0.25
        {"BothAndTheMeanAge", {2.0, 6.0}, 0.1, 0.02, 0.4, 0.06},           // (0.4 * 0.1 + 0.02) / 1
        {"AgesThatAreKnownCount", {std::nullopt, 2.0}, 0.1, 0, 0.5, 0.1},  // 0.5 * 0.1 / 0.5
        {"NoSurge", {0.001}, 0.05, 0, 0, 0.001}}),
    [](const auto& info) { return info.param.name; });

TEST(MoveTermsOfNewNodesTest, ANodeThatHasJustComePaysForNothing) {
  MoveTerms terms;
  terms.Remove(0.10, 0.0);
  terms.Add(0.01);
  EXPECT_GT(terms.Required(Surging(0.1)), 1e6);
}

// Three hours of rest are longer than a quarter of an hour: (0.4 * 0.1 + 0.02) / 3 = 0.02. The age counts
// again where a quarter of it is longer: 0.06 / 6.
TEST(MoveTermsOfNewNodesTest, ALoadThatStandsStillPaysForYoungNodesAsWell) {
  ConsolidationOptions options = Surging(0.4);
  options.load_rests_hours = 3;
  MoveTerms young;
  young.Remove(0.10, 1.0);
  young.Add(0.1);
  young.Disturb(0.02);
  EXPECT_NEAR(young.Required(options), 0.02, 1e-12);
  options.payback_hours = 3;
  EXPECT_NEAR(young.Required(options), 0.02, 1e-12);
  MoveTerms old;
  old.Remove(0.10, 24.0);
  old.Add(0.1);
  old.Disturb(0.02);
  EXPECT_NEAR(old.Required(options), 0.01, 1e-12);
}

// Two full small nodes for 0.20, whose pods a big one takes for 0.18.
ConsolidationPlan PlanOfAges(double hours, Consolidator* planner, int64_t now_s) {
  ModelCluster model;
  model.types = {{"small", 2000, 8000, 0.10}, {"big", 4000, 16000, 0.18}};
  model.apps = {{500, 1000}};
  for (int i = 0; i < 2; ++i) {
    ModelNode& node = model.nodes.emplace_back();
    node.name = absl::StrCat("node-", i);
    node.may_go = true;
    for (int k = 0; k < 4; ++k) node.pods.push_back({absl::StrCat(node.name, "-", k), 0});
  }
  PlannedCluster cluster(model);
  cluster.problem().now_s = now_s;
  for (ConsolidationNode& node : cluster.problem().nodes) node.age_hours = hours;
  Snapshot snapshot(*cluster.problem().cluster);
  WorkBudget unlimited;
  return planner->Plan(&snapshot, cluster.problem(), Surging(0.2), &unlimited);
}

// The new node costs 0.18 * 0.2 = 0.036 USD beside the old ones: 1.8 hours of 0.02 USD pay for that, which
// is a quarter of 7.2 hours.
TEST(MoveTermsOfNewNodesTest, NodesAreReplacedWhenTheyHaveBeenThereForLongEnough) {
  Consolidator young, old;
  EXPECT_TRUE(PlanOfAges(7.19, &young, 1'000'000).moves.empty());
  EXPECT_EQ(PlanOfAges(7.21, &old, 1'000'000).moves.size(), 1U);
}

// A move that saved too little is tried again before the usual time, as soon as its nodes are half as old
// again.
TEST(MoveTermsOfNewNodesTest, WhatSavedTooLittleIsTriedAgainWhenNodesAreOlder) {
  Consolidator planner;
  constexpr int64_t kThen = 1'000'000;
  EXPECT_TRUE(PlanOfAges(0.1, &planner, kThen).moves.empty());
  ASSERT_FALSE(planner.tried().empty());
  for (const auto& [name, tried] : planner.tried()) EXPECT_EQ(tried.until_s, kThen + 180) << name;
  EXPECT_TRUE(PlanOfAges(8, &planner, kThen + 179).moves.empty());
  EXPECT_EQ(PlanOfAges(8, &planner, kThen + 180).moves.size(), 1U);
}

}  // namespace
}  // namespace loadline
