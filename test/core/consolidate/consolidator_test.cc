#include "core/consolidate/consolidator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/cluster/pod_traits.h"
#include "core/pack/packing.h"
#include "test/core/consolidate/move_checker.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Saves whatever can be saved.
ConsolidationOptions Eager() {
  ConsolidationOptions options;
  options.least_saving_percent = 0;
  options.least_saving_usd_per_hour = 1e-6;
  return options;
}

ConsolidationPlan PlanOf(const ModelCluster& model, const ConsolidationOptions& options,
                         WorkBudget budget = {}, Consolidator* planner = nullptr) {
  PlannedCluster cluster(model);
  Snapshot snapshot(*cluster.problem().cluster);
  Consolidator own;
  ConsolidationPlan plan =
      (planner != nullptr ? *planner : own).Plan(&snapshot, cluster.problem(), options, &budget);
  snapshot.CheckConsistent();
  EXPECT_EQ(snapshot.depth(), 0U);
  EXPECT_EQ(static_cast<size_t>(snapshot.node_end()), model.nodes.size());
  return plan;
}

// Two types: "small" has 2 cores for 0.10, "big" has 4 for 0.18.
ModelCluster TwoTypes() {
  ModelCluster model;
  model.types = {{"small", 2000, 8000, 0.10}, {"big", 4000, 16000, 0.18}};
  model.apps = {{500, 1000}};
  return model;
}

void AddNode(ModelCluster* model, size_t type, int pods, bool may_go = true) {
  ModelNode node;
  node.name = absl::StrCat("node-", model->nodes.size());
  node.type = type;
  node.may_go = may_go;
  for (int i = 0; i < pods; ++i) node.pods.push_back({absl::StrCat(node.name, "-", i), 0});
  model->nodes.push_back(std::move(node));
}

std::map<std::string, std::string> Reasons(const ModelCluster& model, const ConsolidationPlan& plan) {
  std::map<std::string, std::string> reasons;
  for (const KeptNode& kept : plan.keep)
    reasons[model.nodes[IndexOf(kept.slot)].name] = std::string(Name(kept.reason));
  return reasons;
}

TEST(ConsolidatorTest, AnEmptyClusterCostsNothing) {
  const ConsolidationPlan plan = PlanOf(TwoTypes(), Eager());
  EXPECT_EQ(plan.bill.now, 0);
  EXPECT_EQ(plan.bill.bound, 0);
  EXPECT_TRUE(plan.bill.proven);
  EXPECT_THAT(plan.moves, IsEmpty());
}

TEST(ConsolidatorTest, ANodeGoesWhosePodsFitElsewhere) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 1, 6);
  AddNode(&model, 0, 2);
  const ConsolidationPlan plan = PlanOf(model, Eager());
  // 8 pods of half a core: one big node, which is the cheapest of all.
  EXPECT_NEAR(plan.bill.now, 0.28, 1e-12);
  EXPECT_NEAR(plan.bill.bound, 0.18, 1e-6);
  EXPECT_NEAR(plan.bill.reachable, 0.18, 1e-12);
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{1}));
  EXPECT_THAT(plan.moves[0].add, IsEmpty());
  EXPECT_THAT(plan.moves[0].pods, ElementsAre(PodTransfer{Slot{1}, 0, false, {Slot{0}, std::nullopt, 0}},
                                              PodTransfer{Slot{1}, 1, false, {Slot{0}, std::nullopt, 0}}));
  EXPECT_NEAR(plan.moves[0].saves, 0.10, 1e-12);
  EXPECT_EQ(plan.moves[0].disrupted, 2);
}

TEST(ConsolidatorTest, TwoSmallNodesGiveWayToABigOne) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  const ConsolidationPlan plan = PlanOf(model, Eager());
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{0}, Slot{1}));
  EXPECT_THAT(plan.moves[0].add, ElementsAre(GroupGrowthCount{GroupIndex{1}, 1}));
  EXPECT_THAT(plan.moves[0].first_number, ElementsAre(1));
  EXPECT_NEAR(plan.moves[0].saves, 0.02, 1e-12);
  EXPECT_EQ(plan.moves[0].pods[0].to, (MoveTarget{Slot{-1}, GroupIndex{1}, 1}));
}

// Most of its nodes are dearer than its template says. The next one may be so, too, and would be replaced
// again.
TEST(ConsolidatorTest, AGroupThatMakesDearerNodesProvidesNone) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  AddNode(&model, 1, 8, /*may_go=*/false);
  model.types[1].usd_of_old = 0.25;
  EXPECT_THAT(PlanOf(model, Eager()).moves, IsEmpty());
  model.types[1].usd_of_old = 0.17;  // a cheaper node is no harm
  EXPECT_EQ(PlanOf(model, Eager()).moves.size(), 1U);
}

// Three spot types, of which two are cheaper than what is there; on-demand nodes may always give way to spot
// ones.
TEST(ConsolidatorTest, SpotGivesWayToSpotOnlyWithEnoughGroups) {
  ModelCluster model = TwoTypes();
  for (const double usd : {0.05, 0.06, 0.12}) {
    ModelType& type = model.types.emplace_back(model.types[0]);
    type.name = absl::StrCat("spot-", usd);
    type.usd = usd;
    type.spot = true;
  }
  ConsolidationOptions options = Eager();
  ModelCluster on_demand = model;
  AddNode(&on_demand, 0, 4);
  EXPECT_NEAR(PlanOf(on_demand, options).bill.reachable, 0.05, 1e-12);
  AddNode(&model, 4, 4);  // 0.12
  options.least_spot_groups = 2;
  EXPECT_NEAR(PlanOf(model, options).bill.reachable, 0.05, 1e-12);
  options.least_spot_groups = 3;
  EXPECT_NEAR(PlanOf(model, options).bill.reachable, 0.10, 1e-12);  // an on-demand node is cheaper as well
  model.nodes[0].type = 3;                                          // 0.06
  EXPECT_THAT(PlanOf(model, options).moves, IsEmpty());
  EXPECT_EQ(Reasons(model, PlanOf(model, options))["node-0"], "TooFewSpotGroups");
  // The pods fit on no cheaper spot node: more groups would not help.
  model.types[2].cpu = 1000;
  EXPECT_NE(Reasons(model, PlanOf(model, options))["node-0"], "TooFewSpotGroups");
}

TEST(ConsolidatorTest, AdviceTellsTheOptionsThatWereAskedAbout) {
  ConsolidationOptions options;
  options.least_spot_groups = 1;
  EXPECT_THAT(AdviceOf(KeepReason::kTooFewSpotGroups, options),
              testing::HasSubstr("at least 1 spot group costs less"));
  options.least_spot_groups = 15;
  EXPECT_THAT(AdviceOf(KeepReason::kTooFewSpotGroups, options),
              testing::HasSubstr("at least 15 spot groups cost less"));
  options.least_saving_percent = 7.5;
  options.payback_hours = 168;
  EXPECT_THAT(AdviceOf(KeepReason::kSavesTooLittle, options),
              testing::HasSubstr("0.001 USD per hour, 7.5 % of what its nodes cost, and within 168 hours"));
}

// The large pod fits on the first node and the small ones on the second. A scheduler that spreads may put the
// small ones on the first node before the large one arrives, so that nothing is removed until there is room
// for that as well.
TEST(ConsolidatorTest, PodsFitInAnyOrderWhereASchedulerPutsThem) {
  ConsolidationOptions options = Eager();
  options.mode = ConsolidationMode::kRemove;
  for (const int pods : {5, 4, 3}) {
    ModelCluster model = TwoTypes();
    model.apps.push_back({1500, 1000});
    AddNode(&model, 1, pods, /*may_go=*/false);
    AddNode(&model, 0, 2, /*may_go=*/false);
    AddNode(&model, 1, 2);
    model.nodes.back().pods.push_back({"large", 1});
    options.as_scheduled = false;
    EXPECT_EQ(PlanOf(model, options).moves.size(), 1U) << pods << " pods";
    options.as_scheduled = true;
    EXPECT_EQ(PlanOf(model, options).moves.size(), pods == 3 ? 1U : 0U) << pods << " pods";
  }
}

// A dear node of 16 cores has three pods of `dear_pod`, and a cheap one of 4 cores has one of `cheap_pod`.
// While the dear node is there it has room for the pod of the cheap one.
ModelCluster DearAndCheap(int64_t dear_pod, int64_t cheap_pod) {
  ModelCluster model;
  model.types = {{"cheap", 4000, 16000, 0.20}, {"dear", 16000, 64000, 3.00}};
  model.types[1].max = 1;
  model.apps = {{cheap_pod, 1000}, {dear_pod, 1000}};
  AddNode(&model, 0, 1);
  AddNode(&model, 1, 0);
  for (int i = 0; i < 3; ++i) model.nodes[1].pods.push_back({absl::StrCat("dear-", i), 1});
  return model;
}

// Beside a pod of 3.9 cores there is no room, and each of the others needs a node of its own. A pod of 1.5
// cores leaves room for one of them.
TEST(ConsolidatorTest, NoNodeIsSwappedForAnEqualOne) {
  for (const bool as_scheduled : {false, true}) {
    for (const bool full : {true, false}) {
      const ModelCluster model = full ? DearAndCheap(2200, 3900) : DearAndCheap(2400, 1500);
      ConsolidationOptions options = Eager();
      options.as_scheduled = as_scheduled;
      const ConsolidationPlan plan = PlanOf(model, options);
      ASSERT_EQ(plan.moves.size(), 1U);
      EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{1}));
      EXPECT_THAT(plan.moves[0].add, ElementsAre(GroupGrowthCount{GroupIndex{0}, full ? 3 : 2}));
      EXPECT_EQ(plan.moves[0].disrupted, 3);
      EXPECT_EQ(plan.moves[0].pods.size(), 3U);
      EXPECT_NEAR(plan.moves[0].saves, full ? 2.40 : 2.60, 1e-12);
      EXPECT_EQ(Reasons(model, plan)["node-0"], full ? "NoCheaperPlace" : "TakesPods");
      MoveChecker checker(model, options);
      checker.Follow(plan);
      EXPECT_THAT(checker.problems(), IsEmpty());
    }
  }
}

// Three nodes for 1.00 have a pod of 1.5 cores each. Of the nodes of 2 cores for 0.10 that they need, two are
// there and empty.
TEST(ConsolidatorTest, EmptyNodesTakePodsInThePlaceOfNewOnes) {
  for (const bool as_scheduled : {false, true}) {
    ModelCluster model;
    model.types = {{"cheap", 2000, 8000, 0.10}, {"dear", 4000, 16000, 1.00}};
    model.apps = {{1500, 1000}};
    for (const size_t type : std::vector<size_t>{1, 1, 1, 0, 0}) AddNode(&model, type, type == 1 ? 1 : 0);
    ConsolidationOptions options = Eager();
    options.as_scheduled = as_scheduled;
    const ConsolidationPlan plan = PlanOf(model, options);
    int64_t added = 0, disrupted = 0;
    std::set<Slot> removed;
    for (const ConsolidationMove& move : plan.moves) {
      for (const GroupGrowthCount& add : move.add) added += add.nodes;
      disrupted += move.disrupted;
      removed.insert(move.remove.begin(), move.remove.end());
    }
    EXPECT_THAT(removed, ElementsAre(Slot{0}, Slot{1}, Slot{2}));
    EXPECT_EQ(added, 1);
    EXPECT_EQ(disrupted, 3);
    EXPECT_NEAR(plan.bill.reachable, 0.30, 1e-9);
    MoveChecker checker(model, options);
    checker.Follow(plan);
    EXPECT_THAT(checker.problems(), IsEmpty());
  }
}

TEST(ConsolidatorTest, RemoveAddsNoNodes) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  ConsolidationOptions options = Eager();
  options.mode = ConsolidationMode::kRemove;
  EXPECT_THAT(PlanOf(model, options).moves, IsEmpty());
  options.mode = ConsolidationMode::kOff;
  const ConsolidationPlan off = PlanOf(model, options);
  EXPECT_THAT(off.moves, IsEmpty());
  EXPECT_NEAR(off.bill.bound, 0.18, 1e-6);
  EXPECT_EQ(Reasons(model, off)["node-0"], "Off");
}

TEST(ConsolidatorTest, LimitsHoldWhileOldAndNewNodesAreThere) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  ModelCluster full = model;
  full.types[1].max = 0;
  EXPECT_THAT(PlanOf(full, Eager()).moves, IsEmpty());
  full = model;
  full.max_nodes = 2;
  EXPECT_THAT(PlanOf(full, Eager()).moves, IsEmpty());
  full.max_nodes = 3;
  EXPECT_EQ(PlanOf(full, Eager()).moves.size(), 1U);
}

TEST(ConsolidatorTest, AMinimumIsPaidForWhateverItsNodesHold) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 0);
  AddNode(&model, 0, 0);
  model.types[0].min = 1;
  const ConsolidationPlan plan = PlanOf(model, Eager());
  EXPECT_NEAR(plan.bill.bound, 0.10, 1e-6);
  EXPECT_NEAR(plan.bill.reachable, 0.10, 1e-12);
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_EQ(plan.moves[0].disrupted, 0);
  ASSERT_EQ(plan.keep.size(), 1U);
  EXPECT_EQ(plan.keep[0].reason, KeepReason::kGroupAtMinimum);
}

TEST(ConsolidatorTest, WhatMayNotGoStaysAndItsRoomIsUsed) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 2, /*may_go=*/false);
  AddNode(&model, 0, 2);
  const ConsolidationPlan plan = PlanOf(model, Eager());
  EXPECT_NEAR(plan.bill.fixed, 0.10, 1e-12);
  EXPECT_NEAR(plan.bill.bound, 0.10, 1e-6);
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{1}));
  EXPECT_THAT(Reasons(model, plan), ElementsAre(testing::Pair("node-0", "Fixed")));
}

TEST(ConsolidatorTest, APriceThatIsNotKnownIsCountedAndItsNodeStays) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 0);
  PlannedCluster cluster(model);
  cluster.problem().nodes[0].usd_per_hour.reset();
  Snapshot snapshot(*cluster.problem().cluster);
  WorkBudget budget;
  const ConsolidationPlan plan = Consolidator().Plan(&snapshot, cluster.problem(), Eager(), &budget);
  EXPECT_EQ(plan.bill.unpriced_nodes, 1);
  EXPECT_EQ(plan.bill.now, 0);
  EXPECT_THAT(plan.moves, IsEmpty());
}

TEST(ConsolidatorTest, AMoveSavesWhatIsAskedFor) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  ConsolidationOptions options = Eager();
  options.least_saving_usd_per_hour = 0.02;  // just so much
  EXPECT_EQ(PlanOf(model, options).moves.size(), 1U);
  options.least_saving_usd_per_hour = 0.0201;
  EXPECT_EQ(Reasons(model, PlanOf(model, options))["node-0"], "SavesTooLittle");
  options = Eager();
  options.least_saving_percent = 10.1;
  EXPECT_THAT(PlanOf(model, options).moves, IsEmpty());
}

TEST(ConsolidatorTest, AMovePaysForThePodsThatItDisturbs) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 4);
  ConsolidationOptions options = Eager();
  options.payback_hours = 2;
  model.apps[0].usd = 0.0049;  // 8 pods for 0.0392; two hours save 0.04
  EXPECT_EQ(PlanOf(model, options).moves.size(), 1U);
  model.apps[0].usd = 0.0051;
  EXPECT_THAT(PlanOf(model, options).moves, IsEmpty());
}

TEST(ConsolidatorTest, BudgetsSayHowManyTurnsAMoveTakesAndWhatGoesAtOnce) {
  ModelCluster model = TwoTypes();
  model.apps[0].budget = 3;
  AddNode(&model, 1, 0, /*may_go=*/false);
  AddNode(&model, 0, 4);
  AddNode(&model, 0, 2);
  AddNode(&model, 0, 1);
  const ConsolidationPlan plan = PlanOf(model, Eager());
  ASSERT_EQ(plan.moves.size(), 3U);
  // Most per pod first: 0.10 for one, two and four pods; the first two take three together.
  EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{3}));
  EXPECT_THAT(plan.moves[1].remove, ElementsAre(Slot{2}));
  EXPECT_THAT(plan.moves[2].remove, ElementsAre(Slot{1}));
  EXPECT_EQ(plan.moves[0].wave, 0);
  EXPECT_EQ(plan.moves[1].wave, 0);
  EXPECT_EQ(plan.moves[2].wave, 1);
  EXPECT_EQ(plan.moves[1].turns, 1);
  EXPECT_EQ(plan.moves[2].turns, 2);
}

TEST(ConsolidatorTest, SoManyNodesAndPodsGoAtOnce) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 1, 0, /*may_go=*/false);
  for (int i = 0; i < 3; ++i) AddNode(&model, 0, 1);
  ConsolidationOptions options = Eager();
  options.max_nodes_at_once = 2;
  ConsolidationPlan plan = PlanOf(model, options);
  ASSERT_EQ(plan.moves.size(), 3U);
  EXPECT_EQ(plan.moves[1].wave, 0);
  EXPECT_EQ(plan.moves[2].wave, 1);
  options = Eager();
  options.max_pods_at_once = 1;
  plan = PlanOf(model, options);
  ASSERT_EQ(plan.moves.size(), 3U);
  EXPECT_EQ(plan.moves[2].wave, 2);
}

TEST(ConsolidatorTest, PodsThatKeepApartDoNotMeet) {
  ModelCluster model = TwoTypes();
  model.apps[0].apart = true;
  AddNode(&model, 0, 1);
  AddNode(&model, 0, 1);
  EXPECT_THAT(PlanOf(model, Eager()).moves, IsEmpty());
  model.apps[0].apart = false;
  EXPECT_EQ(PlanOf(model, Eager()).moves.size(), 1U);
}

TEST(ConsolidatorTest, NewNodesCarryTheirDaemons) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 0, 3);
  AddNode(&model, 0, 3);
  EXPECT_EQ(PlanOf(model, Eager()).moves.size(), 1U);
  model.daemon_cpu = 500;  // six pods and the daemon take 3.5 of 4 cores
  EXPECT_EQ(PlanOf(model, Eager()).moves.size(), 1U);
  model.apps[0].cpu = 600;  // now 4.1
  model.daemon_cpu = 500;
  EXPECT_THAT(PlanOf(model, Eager()).moves, IsEmpty());
}

TEST(ConsolidatorTest, APlaceholderFindsAnotherPlaceAndIsNotDisturbed) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 1, 6, /*may_go=*/false);  // one core is free
  AddNode(&model, 0, 0);
  PlannedCluster cluster(model);
  FitPod kept;
  kept.requests = {{"cpu", 1000}};
  cluster.problem().placeholders.push_back({"slack-0", cluster.cluster().Incoming(kept)});
  cluster.problem().nodes[1].pods.push_back({0, true, -1, 0});
  Snapshot snapshot(*cluster.problem().cluster);
  WorkBudget budget;
  const ConsolidationPlan plan = Consolidator().Plan(&snapshot, cluster.problem(), Eager(), &budget);
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_EQ(plan.moves[0].disrupted, 0);
  EXPECT_THAT(plan.moves[0].pods, ElementsAre(PodTransfer{Slot{1}, 0, true, {Slot{0}, std::nullopt, 0}}));
  // With a core less there is no place for it.
  cluster.problem().placeholders[0].pod = cluster.cluster().Incoming({.requests = {{"cpu", 1001}}});
  WorkBudget again;
  EXPECT_THAT(Consolidator().Plan(&snapshot, cluster.problem(), Eager(), &again).moves, IsEmpty());
}

TEST(ConsolidatorTest, NamespacesPayWhatTheirPodsAreWorth) {
  ModelCluster model = TwoTypes();
  AddNode(&model, 1, 8);
  const ConsolidationPlan plan = PlanOf(model, Eager());
  ASSERT_EQ(plan.namespaces.size(), 1U);
  EXPECT_EQ(plan.namespaces[0].first, "default");
  // The cores are what is short: 8 pods of half a core fill a big node.
  EXPECT_NEAR(plan.namespaces[0].second, 0.18, 1e-5);
  EXPECT_THAT(plan.moves, IsEmpty());
  EXPECT_EQ(Reasons(model, plan)["node-0"], "WorthItsPrice");
}

// Returns the cost of packing all pods that may move anew.
double CostOfPackingAnew(const ModelCluster& model) {
  PackingProblem problem;
  for (const ModelApp& app : model.apps) problem.items.push_back({{app.cpu, app.memory, 1}, 0});
  for (const ModelNode& node : model.nodes) {
    for (const ModelPod& pod : node.pods) ++problem.items[pod.app].count;
  }
  for (const ModelType& type : model.types) {
    PackingType packing{{type.cpu, type.memory, 234}, type.usd, std::nullopt, {}};
    for (const ModelApp& app : model.apps)
      packing.most.push_back(std::min(type.cpu / app.cpu, type.memory / app.memory));
    problem.types.push_back(packing);
  }
  WorkBudget budget(2'000'000);
  return Pack(problem, &budget).cost;
}

struct RandomCase {
  std::string name;
  RandomClusterOptions cluster;
  uint32_t seeds = 1;
  double mean_over_bound = 2;  // at most
};

class RandomConsolidationTest : public ::testing::TestWithParam<RandomCase> {};

// Follows plans until none has moves, which takes a few at most; the checker looks at each.
TEST_P(RandomConsolidationTest, FollowingEndsWherePlansSayAndComesToRest) {
  const RandomCase& c = GetParam();
  double sum = 0;
  for (uint32_t seed = 1; seed <= c.seeds; ++seed) {
    SCOPED_TRACE(seed);
    ModelCluster model = RandomModel(seed, c.cluster);
    const ConsolidationOptions options = c.cluster.nodes <= 24 ? Eager() : ConsolidationOptions();
    int plans = 0;
    for (; plans < 12; ++plans) {
      const ConsolidationPlan plan = PlanOf(model, options);
      if (!c.cluster.rules && plans == 0) {
        EXPECT_LE(plan.bill.bound, CostOfPackingAnew(model) + 1e-9);
      }
      MoveChecker checker(model, options);
      checker.Follow(plan);
      EXPECT_THAT(checker.problems(), IsEmpty());
      if (plan.moves.empty()) {
        sum += plan.bill.now / plan.bill.bound;
        break;
      }
      model = checker.now();
    }
    EXPECT_LT(plans, 12) << "it does not come to rest";
    // One plan is enough where all nodes are looked at together, in all ways.
    if (c.cluster.nodes <= 6) {
      EXPECT_LE(plans, 1);
    }
  }
  EXPECT_LE(sum / c.seeds, c.mean_over_bound);
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, RandomConsolidationTest,
    ::testing::ValuesIn(std::vector<RandomCase>{
        {"Tiny", {.nodes = 4, .apps = 4, .smallest_pod = 200}, 12},
        {"Small", {.nodes = 12, .apps = 10, .smallest_pod = 150}, 3},
        {"SmallWithRules", {.nodes = 14, .apps = 12, .smallest_pod = 150, .rules = true, .zones = true}, 4},
        {"Large", {.nodes = 200, .apps = 40, .smallest_pod = 50}, 2, 1.06},
        {"LargeWithRules",
         {.nodes = 200, .apps = 60, .smallest_pod = 50, .rules = true, .zones = true},
         3,
         1.2},
    }),
    [](const auto& info) { return info.param.name; });

TEST(ConsolidatorTest, TheSameQuestionHasTheSameAnswer) {
  const ModelCluster model = RandomModel(3, {.nodes = 60, .apps = 20, .rules = true, .zones = true});
  const ConsolidationPlan a = PlanOf(model, {}), b = PlanOf(model, {});
  ASSERT_EQ(a.moves.size(), b.moves.size());
  for (size_t i = 0; i < a.moves.size(); ++i) {
    EXPECT_EQ(a.moves[i].remove, b.moves[i].remove);
    EXPECT_EQ(a.moves[i].pods, b.moves[i].pods);
  }
}

TEST(ConsolidatorTest, APlanThatIsCutShortIsValidAndTheNextGoesOn) {
  const ModelCluster model = RandomModel(5, {.nodes = 40, .apps = 20, .smallest_pod = 50});
  const double whole = PlanOf(model, {}).bill.reachable;
  bool cut = false;
  for (const int64_t units : {3'000, 30'000, 300'000}) {
    ModelCluster now = model;
    Consolidator planner;
    for (int i = 0; i < 12; ++i) {
      const ConsolidationPlan plan = PlanOf(now, {}, WorkBudget(units), &planner);
      cut = cut || plan.cut_short_by == BudgetEnd::kOutOfWork;
      MoveChecker checker(now, {});
      checker.Follow(plan);
      ASSERT_THAT(checker.problems(), IsEmpty());
      now = checker.now();
    }
    if (units == 300'000) {
      EXPECT_LE(now.Cost(), whole * 1.1);
    }
  }
  EXPECT_TRUE(cut);
}

TEST(ConsolidatorTest, WhatWasTriedInVainIsNotTriedAgain) {
  const ModelCluster first = RandomModel(7, {.nodes = 100, .apps = 30, .smallest_pod = 50});
  ModelCluster model = first;
  for (int i = 0; i < 8; ++i) {
    MoveChecker checker(model, {});
    checker.Follow(PlanOf(model, {}));
    model = checker.now();
  }
  Consolidator planner;
  WorkBudget cold(1'000'000'000), warm(1'000'000'000);
  PlannedCluster cluster(model);
  Snapshot snapshot(*cluster.problem().cluster);
  EXPECT_THAT(planner.Plan(&snapshot, cluster.problem(), {}, &cold).moves, IsEmpty());
  EXPECT_THAT(planner.Plan(&snapshot, cluster.problem(), {}, &warm).moves, IsEmpty());
  EXPECT_GT(planner.tried().size(), 0U);
  EXPECT_LT(1'000'000'000 - warm.units(), (1'000'000'000 - cold.units()) / 2);
  // After a time they are.
  cluster.problem().now_s += 600;
  WorkBudget later(1'000'000'000);
  planner.Plan(&snapshot, cluster.problem(), {}, &later);
  EXPECT_EQ(later.units(), cold.units());
}

}  // namespace
}  // namespace loadline
