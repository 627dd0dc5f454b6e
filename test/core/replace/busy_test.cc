// Moves begin where the objects that they touch are at rest, whatever happens elsewhere.
#include "core/replace/busy.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "test/core/replace/replacement_fixture.h"

namespace loadline {
namespace {

// Two full small nodes of 2,000m, whose pods one big node of 4,000m takes for less, and a group `other` of
// 8,000m.
class BusyTest : public ReplacementTest {
 protected:
  BusyTest() {
    TwoSmallNodes();
    AddGroup("other", 8000, 1.0, 0);
  }

  // A node that is being deleted, with so many pods.
  void AddLeaving(const std::string& name, GroupIndex group, int pods) {
    AddNode(name, group, pods);
    const std::string since = std::to_string(kLoopNow);
    nodes_.back().node.taints = {{"ToBeDeletedByClusterAutoscaler", since, "NoSchedule"}};
  }

 public:
  void Comes(GroupIndex group) { ++problem_.groups[group].target; }
  void Waits(int64_t milli_cpu, int64_t since_ms = 60'000) {
    Pending(Replica("waits", milli_cpu), 1);
    problem_.batch.ages = {{since_ms, since_ms}};
  }
  void Leaves(GroupIndex group) { AddLeaving("leaves", group, 0); }
  void CoolsDown() { problem_.drain.nothing_leaves = true; }
  void Budget(NodeBudget budget) { problem_.scale_down.deletion.budgets = {std::move(budget)}; }
  NodeGroup& OfGroup(GroupIndex group) { return problem_.groups[group]; }
};

constexpr GroupIndex kBusySmall{0};
constexpr GroupIndex kBusyBig{1};
constexpr GroupIndex kBusyOther{2};

struct BusyCase {
  std::string name;
  std::function<void(BusyTest*)> happens;
  bool begins = false;
};

class BusyCaseTest : public BusyTest, public testing::WithParamInterface<BusyCase> {};

TEST_P(BusyCaseTest, AMoveBeginsWhereItsObjectsRest) {
  GetParam().happens(this);
  const LoopPlan plan = Loop();
  EXPECT_EQ(plan.replacement.begun.size(), GetParam().begins ? 1U : 0U);
  int64_t for_moves = 0;
  for (const LoopGrowth& growth : plan.growth) for_moves += growth.for_replacement;
  EXPECT_EQ(for_moves, GetParam().begins ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BusyCaseTest,
    testing::ValuesIn(std::vector<BusyCase>{
        {"AtRest", [](BusyTest*) {}, true},
        {"AtRestAfterGrowth", [](BusyTest* test) { test->CoolsDown(); }, true},
        // Elsewhere.
        {"AnotherGroupGrows", [](BusyTest* test) { test->Waits(6000); }, true},
        {"ANodeOfAnotherGroupComes", [](BusyTest* test) { test->Comes(kBusyOther); }, true},
        {"ANodeOfAnotherGroupComesForAPod",
         [](BusyTest* test) {
           test->Comes(kBusyOther);
           test->Waits(6000);
         },
         true},
        {"ANodeOfAnotherGroupLeaves", [](BusyTest* test) { test->Leaves(kBusyOther); }, true},
        {"APodFitsNowhere", [](BusyTest* test) { test->Waits(100'000); }, true},
        {"TheDelayAfterGrowthElsewhere",
         [](BusyTest* test) {
           test->CoolsDown();
           test->Comes(kBusyOther);
         }},
        // Here.
        {"ANodeOfTheNewKindComes", [](BusyTest* test) { test->Comes(kBusyBig); }},
        {"ANodeOfTheOldKindComes", [](BusyTest* test) { test->Comes(kBusySmall); }},
        {"TheGroupGrows",
         [](BusyTest* test) {
           test->OfGroup(kBusyOther).usd_per_hour.reset();
           test->Waits(3000);
         }},
        {"APodThatANewNodeTakesHasNone",
         [](BusyTest* test) {
           test->OfGroup(kBusyOther).max_nodes = 1;
           test->Comes(kBusyOther);
           test->Waits(3000);  // it is expected on the upcoming node, and would fit the big one
         }},
        {"ANodeOfTheNewKindLeaves", [](BusyTest* test) { test->Leaves(kBusyBig); }},
        {"ANodeOfTheOldKindLeaves", [](BusyTest* test) { test->Leaves(kBusySmall); }, true},
        {"TheBudgetIsUsedUp",
         [](BusyTest* test) {
           test->Leaves(kBusyOther);
           test->Budget({.groups = {"small", "other"}, .together = true, .nodes = 2});
         }},
        {"TheBudgetLeavesTwo",
         [](BusyTest* test) {
           test->Leaves(kBusyOther);
           test->Budget({.groups = {"small", "other"}, .together = true, .nodes = 3});
         },
         true}}),
    [](const auto& info) { return info.param.name; });

// Two small nodes with one pod each, which one of them could take.
class BusyRemovalTest : public BusyTest {
 protected:
  BusyRemovalTest() {
    for (TestNode& node : nodes_) node.pods.resize(1);
  }
};

TEST_F(BusyRemovalTest, AtRestOneOfThemGoes) { EXPECT_EQ(Loop().replacement.begun.size(), 1U); }

// A pod of 2,000m fits an empty small node only, and the group has as many as it may have.
TEST_F(BusyRemovalTest, APodWaitsThatTheyWouldTake) {
  problem_.groups[kBusySmall].max_nodes = 2;
  for (const GroupIndex group : {kBusyBig, kBusyOther}) problem_.groups[group].blocked_reason = "back-off";
  templates_[kBusyBig] = templates_[kBusyOther] = NodeOf("tiny", 100);
  Waits(2000);
  EXPECT_EQ(Loop().replacement.begun.size(), 0U);
  ClearPending();
  Waits(2001);
  EXPECT_EQ(Loop().replacement.begun.size(), 1U);
}

// A pod for which no group has grown for a quarter of an hour keeps no moves back any longer.
TEST_F(BusyRemovalTest, APodHasWaitedTooLong) {
  problem_.groups[kBusySmall].max_nodes = 2;
  for (const GroupIndex group : {kBusyBig, kBusyOther}) problem_.groups[group].blocked_reason = "back-off";
  templates_[kBusyBig] = templates_[kBusyOther] = NodeOf("tiny", 100);
  Waits(2000, 900'000);
  EXPECT_EQ(Loop().replacement.begun.size(), 0U);
  ClearPending();
  Waits(2000, 900'001);
  EXPECT_EQ(Loop().replacement.begun.size(), 1U);
}

// Pods of a node that is being deleted are expected on the first small node.
TEST_F(BusyRemovalTest, PodsOfALeavingNodeAreExpectedThere) {
  AddLeaving("leaves", kBusyOther, 2);
  EXPECT_EQ(Loop().replacement.begun.size(), 0U);
  nodes_.back().pods.clear();
  EXPECT_EQ(Loop().replacement.begun.size(), 0U);  // moves were looked for within the last minute
  EXPECT_EQ(Loop(50'000).replacement.begun.size(), 1U);
}

}  // namespace
}  // namespace loadline
