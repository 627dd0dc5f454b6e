// Nodes that keep their group or their cluster at its minimum, and nodes that take no pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/consolidate/consolidator.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// "small" has 2 cores and 8,000 bytes for 0.10, "big" twice as much for 0.18. A pod requests half a core. The
// nodes, all small, have so many pods.
ModelCluster SmallNodesWith(const std::vector<int>& pods) {
  ModelCluster model;
  model.types = {{"small", 2000, 8000, 0.10}, {"big", 4000, 16000, 0.18}};
  model.apps = {{500, 1000}};
  for (const int count : pods) {
    ModelNode& node = model.nodes.emplace_back();
    node.name = absl::StrCat("node-", model.nodes.size() - 1);
    for (int i = 0; i < count; ++i) node.pods.push_back({absl::StrCat(node.name, "-", i), 0});
  }
  return model;
}

ConsolidationPlan PlanOfProblem(const ConsolidationProblem& problem, ConsolidationMode mode) {
  ConsolidationOptions options;
  options.mode = mode;
  options.least_saving_percent = 0;
  Snapshot snapshot(*problem.cluster);
  WorkBudget budget;
  return Consolidator().Plan(&snapshot, problem, options, &budget);
}

// Plans removals alone where the first node differs from the others.
ConsolidationPlan PlanWithFirst(const ModelCluster& model, void (*change)(ConsolidationNode*)) {
  PlannedCluster cluster(model);
  change(&cluster.problem().nodes[0]);
  return PlanOfProblem(cluster.problem(), ConsolidationMode::kRemove);
}

KeepReason ReasonOfNode(const ConsolidationPlan& plan, Slot slot) {
  for (const KeptNode& kept : plan.keep) {
    if (kept.slot == slot) return kept.reason;
  }
  ADD_FAILURE() << "node " << IndexOf(slot) << " does not stay";
  return KeepReason::kModeOff;
}

// The big node is cordoned. Its two pods fit on the small one.
TEST(MinimumTest, ACordonedNodeGoesWhosePodsFitElsewhere) {
  ModelCluster model = SmallNodesWith({2, 2});
  model.nodes[0].type = 1;
  const ConsolidationPlan plan =
      PlanWithFirst(model, [](ConsolidationNode* node) { node->takes_pods = false; });
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_THAT(plan.moves[0].remove, ElementsAre(Slot{0}));
  EXPECT_THAT(plan.moves[0].pods, ElementsAre(PodTransfer{Slot{0}, 0, false, {Slot{1}, std::nullopt, 0}},
                                              PodTransfer{Slot{0}, 1, false, {Slot{1}, std::nullopt, 0}}));
  EXPECT_NEAR(plan.moves[0].saves, 0.18, 1e-12);
  EXPECT_LE(plan.bill.bound, 0.10 + 1e-6);
}

// The node that stays has room for the pods of the other one, but is cordoned.
TEST(MinimumTest, NoPodMovesToACordonedNode) {
  ModelCluster model = SmallNodesWith({2, 2});
  model.nodes[0].may_go = false;
  EXPECT_THAT(PlanWithFirst(model, [](ConsolidationNode*) {}).moves, SizeIs(1));
  EXPECT_THAT(PlanWithFirst(model, [](ConsolidationNode* node) { node->takes_pods = false; }).moves,
              IsEmpty());
}

// A node that leaves, or has not started, is one of three. Two others have one pod each, so that one of them
// can go with a minimum of one node.
TEST(MinimumTest, NodesThatLeaveOrStartDoNotCountForTheirGroup) {
  for (void (*const change)(ConsolidationNode*) :
       {+[](ConsolidationNode* node) { node->leaving = true; },
        +[](ConsolidationNode* node) { node->started = node->takes_pods = false; }}) {
    ModelCluster model = SmallNodesWith({0, 1, 1});
    model.nodes[0].may_go = false;
    model.types[0].min = 1;
    EXPECT_THAT(PlanWithFirst(model, change).moves, SizeIs(1));
    model.types[0].min = 2;
    const ConsolidationPlan plan = PlanWithFirst(model, change);
    EXPECT_THAT(plan.moves, IsEmpty());
    EXPECT_EQ(ReasonOfNode(plan, Slot{1}), KeepReason::kGroupAtMinimum);
    EXPECT_EQ(ReasonOfNode(plan, Slot{2}), KeepReason::kGroupAtMinimum);
  }
}

// The group is to have three nodes, and has two.
TEST(MinimumTest, ANodeOnItsWayDoesNotCountForItsGroup) {
  for (const int64_t least : {1, 2}) {
    ModelCluster model = SmallNodesWith({1, 1});
    model.types[0].min = least;
    PlannedCluster cluster(model);
    NodeGroups groups;
    for (const NodeGroup& group : cluster.problem().groups) groups.push_back(group);
    groups[GroupIndex{0}].target = 3;
    cluster.problem().groups = groups;
    const ConsolidationPlan plan = PlanOfProblem(cluster.problem(), ConsolidationMode::kRemove);
    EXPECT_THAT(plan.moves, SizeIs(least == 1 ? 1 : 0));
    if (least == 2) {
      EXPECT_EQ(ReasonOfNode(plan, Slot{0}), KeepReason::kGroupAtMinimum);
    }
  }
}

struct MinimumCase {
  ConsolidationMode mode;
  ClusterMinimum minimum;
  size_t moves;
};

// One of two nodes may be removed where they have one pod each; where they are full, a big one replaces both.
TEST(MinimumTest, TheClusterKeepsItsMinimum) {
  constexpr ConsolidationMode kRemove = ConsolidationMode::kRemove, kReplace = ConsolidationMode::kReplace;
  for (const MinimumCase& c :
       {MinimumCase{kRemove, {.nodes = 1}, 1}, MinimumCase{kRemove, {.nodes = 2}, 0},
        MinimumCase{kRemove, {.amounts = {2000, 0}}, 1}, MinimumCase{kRemove, {.amounts = {2001, 0}}, 0},
        MinimumCase{kRemove, {.amounts = {0, 8000}}, 1}, MinimumCase{kRemove, {.amounts = {0, 8001}}, 0},
        MinimumCase{kReplace, {.nodes = 1}, 1}, MinimumCase{kReplace, {.nodes = 2}, 0},
        MinimumCase{kReplace, {.amounts = {4000, 16000}}, 1},
        MinimumCase{kReplace, {.amounts = {4001, 0}}, 0}}) {
    const int pods = c.mode == kRemove ? 1 : 4;
    PlannedCluster cluster(SmallNodesWith({pods, pods}));
    cluster.problem().minimum = c.minimum;
    const ConsolidationPlan plan = PlanOfProblem(cluster.problem(), c.mode);
    EXPECT_THAT(plan.moves, SizeIs(c.moves)) << c.minimum.nodes << " nodes, " << c.minimum.amounts.cpu << "m";
    if (c.moves == 0) {
      EXPECT_EQ(ReasonOfNode(plan, Slot{0}), KeepReason::kClusterAtMinimum);
    }
  }
}

}  // namespace
}  // namespace loadline
