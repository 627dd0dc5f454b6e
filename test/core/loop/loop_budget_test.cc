// The bounds on the phases of one iteration: none of them keeps the others from being planned.
#include <gmock/gmock.h>

#include "core/grow/waiting.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LoopBudgetTest : public LoopTest {
 protected:
  // 2,000 pods of which a new node takes two, and whose rules keep them from being counted.
  void PendingInThousands() {
    FitPod pod = Replica("w", 500);
    pod.labels = {{"app", "w"}};
    pod.rules.anti_affinity = {Term(Select("app", "none"), kHostnameLabel)};
    FitPod alone = Replica("x", 500);
    alone.labels = {{"app", "none"}};
    alone.rules.anti_affinity = {Term(Select("app", "none"), kHostnameLabel)};
    Pending(pod, 2'000);
    Pending(alone, 1);
  }
};

// Growth would take 20,000 units and more; node b is drained all the same, and slack asked for.
TEST_F(LoopBudgetTest, GrowthThatIsCutShortLeavesDrainsAndSlackTheirPart) {
  problem_.decisions = {.scale_up = true, .slack = true, .scale_down = true};
  problem_.scale_down.most_vanished_percent = 100;
  AddGroup("g", 1000, 1, 2, /*max=*/2'000);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}, {NodeOf("b", 1000), {Replica("q", 100)}}};
  PendingInThousands();
  budget_ = WorkBudget(4'000);
  const LoopPlan plan = Plan();
  EXPECT_EQ(plan.scale_up.cut_short_by, BudgetEnd::kOutOfWork);
  EXPECT_EQ(plan.slack.cut_short, BudgetEnd::kNotEnded);
  EXPECT_FALSE(plan.slack.shapes.empty());
  EXPECT_EQ(plan.scale_down.cut_short_by, BudgetEnd::kNotEnded);
  EXPECT_EQ(Name(plan.scale_down.brake), Name(DrainBrake::kNone));
}

// 100 pods are expected on a, each of which takes half a kibibyte to remember; b would go.
TEST_F(LoopBudgetTest, NoNodeGoesWhereThereIsNoMemoryForThePodsThatAreExpected) {
  problem_.decisions = {.scale_up = true, .slack = false, .scale_down = true};
  problem_.scale_down.most_vanished_percent = 100;
  AddGroup("g", 1000, 1, 2);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}, {NodeOf("b", 1000), {}}};
  Pending(Replica("w", 1), 100);
  budget_ = WorkBudget(1'000'000, nullptr, 100 * 512);
  EXPECT_THAT(Plan().scale_down.remove, SizeIs(1));
  budget_ = WorkBudget(1'000'000, nullptr, 100 * 512 - 1);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.scale_down.remove, IsEmpty());
  EXPECT_EQ(plan.scale_down.brake, DrainBrake::kDoubt);
  EXPECT_EQ(plan.scale_down.brake_text,
            "there is not enough memory to plan with the 100 waiting pods that are expected on nodes");
  EXPECT_EQ(plan.scale_down.cut_short_by, BudgetEnd::kOutOfMemory);
}

// Half of the time is for growth.
TEST_F(LoopBudgetTest, SlackHasItsPartOfTheTime) {
  problem_.decisions.slack = true;
  AddGroup("g", 1000, 1, 1, /*max=*/2'000);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 600)}}};
  PendingInThousands();
  double elapsed = 0;
  budget_ = WorkBudget(1'000'000'000, [&elapsed] { return elapsed += 0.1; });
  const LoopPlan plan = Plan();
  EXPECT_EQ(plan.scale_up.cut_short_by, BudgetEnd::kOutOfTime);
  EXPECT_EQ(plan.slack.cut_short, BudgetEnd::kNotEnded);
  EXPECT_LT(elapsed, 1) << "and it was asked for the time while it planned";
}

// Each node on its way takes 20 units. Those that were not looked at are not asked for once more.
TEST_F(LoopBudgetTest, NothingGrowsWhereNodesOnTheirWayAreNotAllKnown) {
  problem_.decisions.slack = true;
  problem_.slack.rate = kWholeRate;
  AddGroup("g", 1000, 1, 10, /*max=*/40);
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}, {NodeOf("b", 1000), {Replica("q", 1000)}}};
  Pending(Replica("w", 1000), 3);
  EXPECT_THAT(Plan().growth, IsEmpty()) << "of 8 nodes on their way 3 are for pods and 5 for slack";
  problem_.groups[GroupIndex{0}].target = 7;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 3}));
  budget_ = WorkBudget(2 * 50);
  const LoopPlan plan = Plan();
  EXPECT_EQ(plan.scale_up.cut_short_by, BudgetEnd::kOutOfWork);
  EXPECT_THAT(plan.growth, IsEmpty());
}

// All groups may grow by one node together: the plan of slack asks for no more than it gets.
TEST_F(LoopBudgetTest, SlackAsksForNoMoreThanAllGroupsMayGrowBy) {
  problem_.decisions.slack = true;
  problem_.slack.rate = kWholeRate;
  problem_.growth.max_new_nodes = 1;
  AddGroup("a", 1000, 1, 2);
  templates_[GroupIndex{0}].labels = {{kZone, "a"}};
  nodes_ = {{NodeOf("n", 1000), {Replica("p", 1000)}}, {NodeOf("m", 1000), {Replica("q", 1000)}}};
  for (TestNode& node : nodes_) node.node.labels = {{kZone, "a"}};
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}));
  ASSERT_EQ(plan.slack.demands.size(), 1U);
  EXPECT_EQ(plan.slack.demands[0].nodes, 1);
  EXPECT_EQ(plan.slack.classes[0].status, SlackStatus::kLimited);
}

// With a ranking as well: 1 core at 1.00 USD is smaller, and 2 cores at 0.20 USD rank first.
TEST_F(LoopBudgetTest, SlackThatIsRankedGrowsTheGroupThatRanksFirst) {
  problem_.decisions.slack = true;
  AddGroup("small", 1000, 1.0, 1);
  AddGroup("large", 2000, 0.2, 0);
  problem_.groups[GroupIndex{0}].priced.given = 1.0;
  problem_.groups[GroupIndex{1}].priced.given = 0.2;
  for (const GroupIndex group : templates_.indices())
    problem_.groups[group].priced.milli_cpu = templates_[group].allocatable[0].second;
  LoopRanking ranking;
  ranking.policy.strategies = {RankStrategy::kPriority};
  ranking.requests_of = [](const PodShape&) { return PodRequests(); };
  problem_.ranking = ranking;
  nodes_ = {{NodeOf("a", 1000), {Replica("p", 1000)}}};
  problem_.groups[GroupIndex{0}].priority = 1;
  problem_.groups[GroupIndex{1}].priority = 2;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 0, 1}));
  problem_.groups[GroupIndex{0}].priority = 3;
  slack_ = {};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 0, 1}));
  problem_.ranking->policy.strategies = {RankStrategy::kPrice};
  problem_.ranking->preferred_node = NodeCapacity{1000, 0};
  slack_ = {};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 0, 1})) << "by price, not by size";
}

// A pod that only says that a DaemonSet owns it waits for a node as others do.
TEST_F(LoopBudgetTest, PodsThatForgeADaemonSetWaitForANodeThatIsDeleted) {
  FitPod forged = Replica("d", 100);
  forged.traits.owner = PodOwner{"DaemonSet", "apps/v1", "agent", "another-uid"};
  FitPod daemon = forged;
  daemon.traits.owner->uid = "agent-uid";
  FitCluster cluster;
  cluster.Add(NodeOf("a", 1000), {forged, forged, daemon});
  ClusterObject agent;
  agent.key = {ObjectKind::kDaemonSet, "default", "agent"};
  agent.content = Workload{.uid = "agent-uid"};
  cluster.state().objects().Set(std::move(agent));
  const std::vector<Slot> deleting = {Slot{0}};
  EXPECT_THAT(PodsOfNodesBeingDeleted(cluster.state(), deleting), IsEmpty()) << "not all are known";
  cluster.state().objects().SetComplete(ObjectKind::kDaemonSet);
  const std::vector<PendingPods> waiting = PodsOfNodesBeingDeleted(cluster.state(), deleting);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].count, 2);
}

}  // namespace
}  // namespace loadline
