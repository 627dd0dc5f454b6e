// A node that leaves counts in its zone until it is gone: a rule over zones does not loosen with
// the move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/consolidate/consolidator.h"
#include "test/core/consolidate/move_checker.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// In each zone a node of 16 cores for 1.0 USD per hour with one pod, and cheap types of 4 cores for 0.2 in
// `cheap`. Pods of 1 core spread over zones with a skew of 1.
ModelCluster DearNodes(const std::set<std::string>& cheap) {
  ModelCluster model;
  model.apps = {{.cpu = 1000, .memory = 1000, .max_skew = 1}};
  for (const std::string zone : {"a", "b", "c"}) {
    model.nodes.push_back({absl::StrCat("node-", zone), model.types.size(), true, {{"pod-" + zone, 0}}});
    model.types.push_back({"dear-" + zone, 16'000, 64'000, 1.0, zone});
    if (cheap.contains(zone)) model.types.push_back({"cheap-" + zone, 4'000, 16'000, 0.2, zone});
  }
  return model;
}

// Plans for pods that a scheduler places, and checks the moves.
ConsolidationPlan PlanFor(const ModelCluster& model) {
  PlannedCluster cluster(model);
  Snapshot snapshot(*cluster.problem().cluster);
  WorkBudget budget;
  ConsolidationOptions options;
  options.least_saving_percent = 0;
  options.as_scheduled = true;
  ConsolidationPlan plan = Consolidator().Plan(&snapshot, cluster.problem(), options, &budget);
  MoveChecker checker(model, options);
  checker.Follow(plan);
  EXPECT_THAT(checker.problems(), IsEmpty());
  return plan;
}

// Adds pods to each node.
void AddPods(size_t app, int count, ModelCluster* model) {
  for (ModelNode& node : model->nodes) {
    for (int i = 0; i < count; ++i) node.pods.push_back({absl::StrCat(node.name, "-", app, "-", i), app});
  }
}

// For each node that leaves, the type that its pod moves to.
std::map<std::string, std::string> Targets(const ModelCluster& model) {
  std::map<std::string, std::string> targets;
  for (const ConsolidationMove& move : PlanFor(model).moves) {
    for (const PodTransfer& pod : move.pods) {
      targets[model.nodes[IndexOf(pod.from)].name] =
          pod.to.is_new() ? model.types[IndexOf(*pod.to.group)].name : model.nodes[IndexOf(pod.to.slot)].name;
    }
  }
  return targets;
}

TEST(LeavingTest, EachPodMovesWithinItsZone) {
  EXPECT_THAT(Targets(DearNodes({"a", "b", "c"})),
              UnorderedElementsAre(std::pair("node-a", "cheap-a"), std::pair("node-b", "cheap-b"),
                                   std::pair("node-c", "cheap-c")));
}

TEST(LeavingTest, ANodeStaysWhoseZoneHasNothingCheaper) {
  EXPECT_THAT(Targets(DearNodes({"a", "c"})),
              UnorderedElementsAre(std::pair("node-a", "cheap-a"), std::pair("node-c", "cheap-c")));
  EXPECT_THAT(Targets(DearNodes({})), IsEmpty());
}

// Without the rule over zones all three pods share the cheapest node.
TEST(LeavingTest, WithoutARuleZonesDoNotMatter) {
  ModelCluster model = DearNodes({"b"});
  model.apps[0].max_skew = 0;
  EXPECT_THAT(Targets(model),
              UnorderedElementsAre(std::pair("node-a", "cheap-b"), std::pair("node-b", "cheap-b"),
                                   std::pair("node-c", "cheap-b")));
}

// With six pods in each zone a seventh may come to any one, and an eighth not: how many a new node takes has
// nothing to do with that.
TEST(LeavingTest, ANewNodeTakesAllPodsOfItsZone) {
  ModelCluster model = DearNodes({"a", "b", "c"});
  AddPods(0, 5, &model);
  EXPECT_NEAR(PlanFor(model).bill.reachable, 6 * 0.2, 1e-9) << "6 of 4 cores in each zone";
}

// 12 cores of pods that spread and 3 of others fit on four cheap nodes. A scheduler that spreads puts some of
// the others where the first ones have to go: one more node is needed, at least.
TEST(LeavingTest, FurtherNodesComeForPodsThatASchedulerLeavesShort) {
  ModelCluster model = DearNodes({"a", "b", "c"});
  model.apps.push_back({500, 500});
  AddPods(0, 3, &model);
  AddPods(1, 2, &model);
  const ConsolidationPlan plan = PlanFor(model);
  EXPECT_GE(plan.bill.reachable, 5 * 0.2 - 1e-9);
  EXPECT_LE(plan.bill.reachable, 7 * 0.2 + 1e-9);
}

}  // namespace
}  // namespace loadline
