// Similar groups share what they grow by: --balance-similar-node-groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Groups of nodes of 1,000m in zones a, b and c, of which the one in b is the cheapest.
class BalanceGrowthTest : public LoopTest {
 protected:
  BalanceGrowthTest() {
    Group("a", 1.02, 0);
    Group("b", 1.00, 0);
    Group("c", 1.01, 0);
    problem_.balance.emplace();
  }

  void Group(const std::string& zone, double usd, int64_t target, int64_t milli_cpu = 1000) {
    const GroupIndex group = problem_.groups.end_index();
    AddGroup("group-" + zone, milli_cpu, usd, target);
    templates_.back().labels = {{kZone, zone}, {"disk", "ssd"}};
    for (int64_t i = 0; i < target; ++i) {
      const std::string name = zone + std::to_string(i);
      nodes_.push_back({NodeOf(name, milli_cpu), {Replica("full-" + name, milli_cpu)}, group});
    }
  }
};

TEST_F(BalanceGrowthTest, NodesGoToTheSmallestGroup) {
  Pending(Replica("w", 1000), 7);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 3}, LoopGrowth{GroupIndex{1}, 2},
                                         LoopGrowth{GroupIndex{2}, 2}))
      << "of equal ones by name";
  problem_.groups[GroupIndex{0}].target = 3;
  problem_.groups[GroupIndex{1}].target = 1;
  Pending(Replica("w2", 1000), 4);  // as many as are on their way
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 3}, LoopGrowth{GroupIndex{2}, 4}))
      << "3, 4 and 4";
}

TEST_F(BalanceGrowthTest, ByDefaultTheCheapestGrows) {
  problem_.balance = LoopProblem().balance;
  Pending(Replica("w", 1000), 7);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 7}));
}

TEST_F(BalanceGrowthTest, MaximaHold) {
  problem_.groups[GroupIndex{0}].max_nodes = 1;
  problem_.groups[GroupIndex{2}].max_nodes = 0;
  Pending(Replica("w", 1000), 7);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 1}, LoopGrowth{GroupIndex{1}, 6}));
}

TEST_F(BalanceGrowthTest, OtherGroupsTakeNoPart) {
  templates_[GroupIndex{0}].labels[1].value = "hdd";
  problem_.groups[GroupIndex{2}].blocked_reason = "back-off";
  Pending(Replica("w", 1000), 4);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 4}));
  problem_.groups[GroupIndex{2}].blocked_reason.clear();
  problem_.groups[GroupIndex{2}].atomic = true;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 4}));
}

// Pods that want one zone stay there, and the others go around them.
TEST_F(BalanceGrowthTest, EachPodFitsWhereItsNodeComes) {
  FitPod tied = Replica("tied", 1000);
  tied.rules.node_selector = MakeLabels({{kZone, "b"}});
  Pending(tied, 3);
  Pending(Replica("free", 1000), 5);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 3}, LoopGrowth{GroupIndex{1}, 3},
                                       LoopGrowth{GroupIndex{2}, 2}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0, 0));
  for (const PlannedNodes& nodes : plan.scale_up.nodes) {
    for (const PodCount& pods : nodes.pods) {
      if (pods.pods == 0) {
        EXPECT_EQ(plan.grown[nodes.group], GroupIndex{1});
      }
    }
  }
}

TEST_F(BalanceGrowthTest, ASmallerSimilarNodeTakesOnlyWhatFits) {
  templates_[GroupIndex{0}].allocatable[0].second = 960;
  Pending(Replica("w", 970), 3);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{1}, 2}, LoopGrowth{GroupIndex{2}, 1}));
  Pending(Replica("s", 960), 3);
  const LoopPlan plan = Plan();
  // A scheduler puts the smaller pods onto larger nodes as well, so a smaller node might stay empty.
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 3}, LoopGrowth{GroupIndex{2}, 3}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0, 0));
}

// Pods that exclude each other per node are placed one by one.
TEST_F(BalanceGrowthTest, PodsThatDependOnOthersAreSharedToo) {
  FitPod lonely = Replica("lonely", 100);
  lonely.labels = {{"app", "x"}};
  lonely.rules.anti_affinity.push_back(Term(Select("app", "x"), kHostnameLabel));
  Pending(lonely, 6);
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{0}, 2}, LoopGrowth{GroupIndex{1}, 2},
                                       LoopGrowth{GroupIndex{2}, 2}));
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(0));
}

TEST_F(BalanceGrowthTest, TheBestOptionOfARankingIsShared) {
  LoopRanking ranking;
  ranking.policy.strategies = {RankStrategy::kLeastNodes};
  ranking.requests_of = [](const PodShape&) { return PodRequests(); };
  problem_.ranking = ranking;
  Pending(Replica("w", 1000), 7);
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{GroupIndex{0}, 3}, LoopGrowth{GroupIndex{1}, 2},
                                         LoopGrowth{GroupIndex{2}, 2}));
  problem_.balance.reset();
  EXPECT_THAT(Plan().growth, SizeIs(1));
}

}  // namespace
}  // namespace loadline
