// Nodes that go because they are replaced, and those that take their pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/drain/node_reason.h"
#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

// Node "old" is six tenths full; "near" and "new" are empty.
class ReplacedNodesTest : public ::testing::Test {
 protected:
  ReplacedNodesTest() : model_(Cluster()) {
    model_.problem().replaced = {{Slot{0}, {{"uid-pod", "new"}}}};
    model_.problem().takes_replaced_pods = {Slot{2}};
  }

  static DrainCluster Cluster() {
    DrainCluster cluster;
    for (const std::string name : {"old", "near", "new"}) {
      cluster.nodes.push_back(
          {.node = {.name = name, .allocatable = {{"cpu", 1000}, {"memory", 1000}, {"pods", 110}}}});
    }
    cluster.nodes[0].pods = {ReplicaPod("pod", 600)};
    return cluster;
  }

  const DrainPlan& Plan() {
    const DrainPlan& plan = planner_.Plan(model_.problem(), options_, &budget_);
    planner_.CheckConsistent();
    return plan;
  }

  static const DrainRemoval* Find(const DrainPlan& plan, Slot slot) {
    const auto found = std::find_if(plan.remove.begin(), plan.remove.end(),
                                    [&](const DrainRemoval& removal) { return removal.slot == slot; });
    return found == plan.remove.end() ? nullptr : &*found;
  }

  DrainModel model_;
  DrainOptions options_;
  WorkBudget budget_;
  DrainPlanner planner_;
};

TEST_F(ReplacedNodesTest, GoAtOnceHoweverFullToTheirPlannedPlaces) {
  const DrainPlan& plan = Plan();
  const DrainRemoval* const old = Find(plan, Slot{0});
  ASSERT_NE(old, nullptr);
  EXPECT_TRUE(old->start);
  EXPECT_THAT(old->moves(), ElementsAre(DrainMove{PodRef::Pod(0), Slot{2}}));
  ASSERT_NE(Find(plan, Slot{1}), nullptr);
  EXPECT_FALSE(Find(plan, Slot{1})->start) << "its timer runs";
  ASSERT_EQ(plan.keep.size(), 1U);
  EXPECT_EQ(plan.keep[0].slot, Slot{2});
  EXPECT_EQ(plan.keep[0].reason, NodeReason::kPartOfReplacement);
}

TEST_F(ReplacedNodesTest, WithoutReplacementTheFullOneStays) {
  model_.problem().replaced.clear();
  model_.problem().takes_replaced_pods.clear();
  EXPECT_EQ(Find(Plan(), Slot{0}), nullptr);
}

// Its moves stay applied from one call to the next: a second time they would not fit.
TEST_F(ReplacedNodesTest, HoldTheirPlacesOnceWhileTheyWait) {
  model_.problem().groups_grow = true;
  for (int loop = 0; loop < 3; ++loop) {
    const DrainPlan& plan = Plan();
    ASSERT_NE(Find(plan, Slot{0}), nullptr);
    EXPECT_EQ(Find(plan, Slot{0})->waits, NodeReason::kGroupsGrow);
    EXPECT_THAT(Find(plan, Slot{0})->moves(), ElementsAre(DrainMove{PodRef::Pod(0), Slot{2}}));
    ++model_.problem().now_s;
  }
  model_.problem().groups_grow = false;
  EXPECT_TRUE(Find(Plan(), Slot{0})->start);
}

// Another node's pod was to move to the node that is replaced now: it looks for another place.
TEST_F(ReplacedNodesTest, GoBeforeThoseWhosePodsTheyWereToTake) {
  DrainCluster cluster = Cluster();
  cluster.nodes[1].pods = {ReplicaPod("other", 400)};
  DrainModel model(cluster);
  const DrainPlan before = planner_.Plan(model.problem(), options_, &budget_);
  ASSERT_NE(Find(before, Slot{1}), nullptr);
  ASSERT_THAT(Find(before, Slot{1})->moves(), ElementsAre(DrainMove{PodRef::Pod(0), Slot{0}}));

  model.problem().replaced = model_.problem().replaced;
  model.problem().takes_replaced_pods = model_.problem().takes_replaced_pods;
  const DrainPlan& plan = planner_.Plan(model.problem(), options_, &budget_);
  planner_.CheckConsistent();
  ASSERT_NE(Find(plan, Slot{0}), nullptr);
  EXPECT_TRUE(Find(plan, Slot{0})->start);
  EXPECT_THAT(Find(plan, Slot{0})->moves(), ElementsAre(DrainMove{PodRef::Pod(0), Slot{2}}));
  ASSERT_NE(Find(plan, Slot{1}), nullptr);
  EXPECT_THAT(Find(plan, Slot{1})->moves(), ElementsAre(DrainMove{PodRef::Pod(0), Slot{2}}));
}

// Its two pods may go one after the other. The pod of "near" is of the same budget, and waits for its timer.
TEST_F(ReplacedNodesTest, GoBeforeOthersThatWouldUseUpTheirBudget) {
  DrainCluster cluster = Cluster();
  cluster.nodes[0].pods = {ReplicaPod("pod", 300), ReplicaPod("second", 300)};
  cluster.nodes[1].pods = {ReplicaPod("other", 200)};
  cluster.budgets = {{.name = "one", .budget = {.disruptions_allowed = 1}}};
  DrainModel model(cluster);
  ASSERT_NE(Find(planner_.Plan(model.problem(), options_, &budget_), Slot{1}), nullptr);
  model.problem().replaced = {{Slot{0}, {{"uid-pod", "new"}, {"uid-second", "new"}}}};
  model.problem().takes_replaced_pods = model_.problem().takes_replaced_pods;
  for (int loop = 0; loop < 3; ++loop) {
    const DrainPlan& plan = planner_.Plan(model.problem(), options_, &budget_);
    planner_.CheckConsistent();
    ASSERT_NE(Find(plan, Slot{0}), nullptr);
    EXPECT_TRUE(Find(plan, Slot{0})->start);
    EXPECT_TRUE(Find(plan, Slot{0})->risky);
  }
}

}  // namespace
}  // namespace loadline
