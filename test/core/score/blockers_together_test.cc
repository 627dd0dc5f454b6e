// Pods that block drains go to nodes that have such a pod already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/drain/lasting_blockers.h"
#include "core/score/limit_score.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr int64_t kOneFixed = int64_t{1} << kRawScoreBits;

// Raw scores in points, but for rounding.
auto ArePoints(double first, double second, double third) {
  return ElementsAre(DoubleNear(first, 1e-6), DoubleNear(second, 1e-6), DoubleNear(third, 1e-6));
}

FitPod Movable(int64_t cpu_limit) {
  FitPod pod;
  pod.limits = {{"cpu", cpu_limit}};
  pod.labels = {{"app", "web"}};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", "web", "uid"};
  return pod;
}

FitPod Blocking(int64_t cpu_limit) {
  FitPod pod = Movable(cpu_limit);
  pod.traits.owner.reset();
  return pod;
}

LimitPolicy TogetherBy(int32_t points, LimitPolicy policy = StrictPolicy({{"cpu", 1}})) {
  policy.blockers_together = points;
  return policy;
}

class BlockersTogetherTest : public ::testing::Test {
 protected:
  // Three nodes of 10 cores: with a pod that blocks and limits of 5; with limits of 4; and empty.
  BlockersTogetherTest() {
    Put(0, {Blocking(2'000), Movable(3'000)});
    Put(1, {Movable(4'000)});
    Put(2, {});
  }

  void Put(int32_t slot, const std::vector<FitPod>& pods) {
    cluster_.Put(Slot{slot}, {.name = "n" + std::to_string(slot), .allocatable = {{"cpu", 10'000}}}, pods);
  }

  // Raw scores in points.
  std::vector<double> Raw(LimitColumns* columns, const FitPod& pod) {
    columns->CatchUp(cluster_.state(), nullptr, blockers_.For(cluster_.state().objects()));
    const RawScores raw = ScoreRaw(*columns, cluster_.state(), cluster_.Shape(pod), slots_);
    std::vector<double> points;
    for (const int64_t value : raw.values) {
      points.push_back(static_cast<double>(value) / static_cast<double>(raw.one));
    }
    return points;
  }
  std::vector<double> Raw(const LimitPolicy& policy, const FitPod& pod) {
    LimitColumns columns(policy);
    return Raw(&columns, pod);
  }

  FitCluster cluster_;
  LastingBlockersCache blockers_;
  const std::vector<Slot> slots_ = {Slot{0}, Slot{1}, Slot{2}};
};

TEST_F(BlockersTogetherTest, ANodeWithoutOneLosesPointsForAPodThatBlocks) {
  EXPECT_THAT(Raw(TogetherBy(0), Blocking(1'000)), ArePoints(40, 50, 90));
  EXPECT_THAT(Raw(TogetherBy(20), Blocking(1'000)), ArePoints(40, 30, 70));
  EXPECT_THAT(Raw(TogetherBy(50), Blocking(1'000)), ArePoints(40, 0, 40));
  EXPECT_THAT(Raw(TogetherBy(50), Movable(1'000)), ArePoints(40, 50, 90));
}

TEST_F(BlockersTogetherTest, APointIsOneOfTheMeanByEachAggregate) {
  const std::vector<ResourceWeight> two = {{"cpu", 3}, {"ephemeral-storage", 1}};
  for (LimitPolicy policy : {StrictPolicy(two), Kep217Policy(two)}) {
    const double weights = policy.aggregate == Aggregate::kWeightedSum ? 4 : 1;
    const double of_node = Raw(TogetherBy(0, policy), Blocking(1'000))[2];
    EXPECT_NEAR(Raw(TogetherBy(10, policy), Blocking(1'000))[2], of_node - 10 * weights, 1e-6);
    policy.aggregate = Aggregate::kWorst;
    EXPECT_NEAR(Raw(TogetherBy(10, policy), Blocking(1'000))[2], 80, 1e-6);
  }
}

TEST_F(BlockersTogetherTest, ANodeThatHasNoRawScoreKeepsNone) {
  FitPod pod = Blocking(1'000);
  pod.limits.emplace_back("example.com/device", 1);
  LimitColumns columns(TogetherBy(20, StrictPolicy({{"cpu", 1}, {"example.com/device", 1}})));
  Raw(&columns, pod);
  const RawScores raw = ScoreRaw(columns, cluster_.state(), cluster_.Shape(pod), slots_, &cluster_.names());
  EXPECT_THAT(raw.values, ElementsAre(kNoRawScore, kNoRawScore, kNoRawScore));
}

TEST_F(BlockersTogetherTest, ColumnsFollowThePodsThatComeAndGo) {
  LimitColumns columns(TogetherBy(20));
  EXPECT_THAT(Raw(&columns, Blocking(1'000)), ArePoints(40, 30, 70));
  Put(2, {Blocking(1'000)});
  EXPECT_THAT(Raw(&columns, Blocking(1'000)), ArePoints(40, 30, 80));
  Put(0, {Movable(3'000)});
  EXPECT_THAT(Raw(&columns, Blocking(1'000)), ArePoints(40, 30, 80));
  cluster_.Remove(Slot{2});
  Put(2, {});
  EXPECT_THAT(Raw(&columns, Blocking(1'000)), ArePoints(40, 30, 70));
}

TEST_F(BlockersTogetherTest, ColumnsFollowTheBudgets) {
  LimitColumns columns(TogetherBy(20));
  EXPECT_THAT(Raw(&columns, Movable(1'000)), ArePoints(40, 50, 90));
  DisruptionBudget budget;
  budget.selector = Select("app", "web");
  budget.expected_pods = budget.desired_healthy = 2;
  const ObjectKey key = {ObjectKind::kDisruptionBudget, "default", "web"};
  cluster_.state().objects().Set({key, budget, 1});
  EXPECT_FALSE(
      columns.IsUpToDate(cluster_.state(), nullptr, blockers_.For(cluster_.state().objects()).get()));
  EXPECT_THAT(Raw(&columns, Movable(1'000)), ArePoints(40, 50, 70));
  cluster_.state().objects().Remove(key);
  EXPECT_THAT(Raw(&columns, Movable(1'000)), ArePoints(40, 50, 90));
}

TEST_F(BlockersTogetherTest, ExplainsWhatANodeLost) {
  LimitColumns columns(TogetherBy(20));
  Raw(&columns, Blocking(1'000));
  const std::vector<size_t> all = {0, 1, 2};
  const std::vector<NodeExplanation> nodes =
      ExplainNodes(columns, cluster_.state(), cluster_.Shape(Blocking(1'000)), slots_, all);
  EXPECT_THAT((std::vector<double>{nodes[0].lost_apart, nodes[1].lost_apart, nodes[2].lost_apart}),
              ElementsAre(0, 20, 20));
  EXPECT_NEAR(nodes[1].raw_score, 30, 1e-6);
  for (const NodeExplanation& node :
       ExplainNodes(columns, cluster_.state(), cluster_.Shape(Movable(1'000)), slots_, all)) {
    EXPECT_EQ(node.lost_apart, 0);
  }
}

// The points off, bit for bit, whatever the pods; and nothing else.
TEST(BlockersTogetherRandomTest, EveryScoreIsTheOneWithoutItLessThePoints) {
  std::mt19937_64 random(7);
  const auto draw = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int round = 0; round < 100; ++round) {
    FitCluster cluster;
    std::vector<Slot> slots;
    std::vector<bool> has_blocker;
    for (int32_t slot = 0; slot < 8; ++slot) {
      std::vector<FitPod> pods;
      bool blocked = false;
      for (int64_t count = draw(4); count > 0; --count) {
        const bool blocks = draw(4) == 0;
        blocked = blocked || blocks;
        pods.push_back(blocks ? Blocking(draw(9'000)) : Movable(draw(9'000)));
      }
      const int64_t cores = 1 + draw(64);
      cluster.Add({.name = "n" + std::to_string(slot), .allocatable = {{"cpu", cores * 1'000}}}, pods);
      slots.push_back(Slot{slot});
      has_blocker.push_back(blocked);
    }
    const PodShape pod = cluster.Shape(Blocking(draw(9'000)));
    const int32_t points = static_cast<int32_t>(1 + draw(kMostBlockersTogether));
    LimitColumns off(StrictPolicy({{"cpu", 1}}));
    LimitColumns on(TogetherBy(points));
    const auto blockers = std::make_shared<const LastingBlockers>(cluster.state().objects());
    off.CatchUp(cluster.state(), nullptr, blockers);
    on.CatchUp(cluster.state(), nullptr, blockers);
    std::vector<int64_t> expected = ScoreRaw(off, cluster.state(), pod, slots).values;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!has_blocker[i]) expected[i] -= points * kOneFixed;
    }
    EXPECT_EQ(ScoreRaw(on, cluster.state(), pod, slots).values, expected) << round;
  }
}

TEST(BlockersTogetherRandomTest, ChecksItsRange) {
  EXPECT_TRUE(CheckLimitPolicy(TogetherBy(kMostBlockersTogether)).ok());
  for (const int32_t points : {-1, kMostBlockersTogether + 1}) {
    EXPECT_EQ(CheckLimitPolicy(TogetherBy(points)).message(),
              "blockers_together: " + std::to_string(points) + " is not in [0, 50]");
  }
}

}  // namespace
}  // namespace loadline
