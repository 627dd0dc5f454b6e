#include "core/score/limit_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Score(const LimitPolicy& policy, ClusterBuilder& builder, const TestPod& pod) {
  const PodShape shape = builder.Shape(pod);
  LimitColumns columns(policy);
  columns.CatchUp(builder.cluster());
  std::vector<int32_t> scores;
  ScoreNodes(columns, builder.cluster(), shape, AllSlots(builder.cluster()), &scores);
  return scores;
}

std::vector<NodeExplanation> Explain(const LimitPolicy& policy, ClusterBuilder& builder, const TestPod& pod) {
  const PodShape shape = builder.Shape(pod);
  LimitColumns columns(policy);
  columns.CatchUp(builder.cluster());
  const std::vector<Slot> slots = AllSlots(builder.cluster());
  std::vector<size_t> all(slots.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return ExplainNodes(columns, builder.cluster(), shape, slots, all);
}

// The example of the proposal: 8 cores each, limits 6 + 4 and 3 + 2; pod5 may use 4.
ClusterBuilder& ProposalExample(ClusterBuilder& builder) {
  return builder.Node("node1", {{"cpu", 8000}}, {{.limits = {{"cpu", 6000}}}, {.limits = {{"cpu", 4000}}}})
      .Node("node2", {{"cpu", 8000}}, {{.limits = {{"cpu", 3000}}}, {.limits = {{"cpu", 2000}}}});
}

TEST(LimitScoreTest, ProposalExamplePrefersNode2) {
  for (const LimitPolicy& policy : {StrictPolicy({{"cpu", 1}}), Kep217Policy({{"cpu", 1}})}) {
    ClusterBuilder builder;
    EXPECT_THAT(Score(policy, ProposalExample(builder), {.limits = {{"cpu", 4000}}}), ElementsAre(0, 100));
  }
}

TEST(LimitScoreTest, ExplainsTheProposalExample) {
  ClusterBuilder builder;
  const std::vector<NodeExplanation> nodes =
      Explain(StrictPolicy({{"cpu", 1}}), ProposalExample(builder), {.limits = {{"cpu", 4000}}});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_NEAR(nodes[0].raw_score, -75.0, 1e-6);  // 8 - 14 of 8
  EXPECT_NEAR(nodes[1].raw_score, -12.5, 1e-6);  // 8 - 9 of 8
  EXPECT_EQ(nodes[0].resources[0].node_limits, 10000);
  EXPECT_EQ(nodes[0].resources[0].pod.amount, 4000);
  EXPECT_DOUBLE_EQ(nodes[0].resources[0].ratio, 1.75);
  EXPECT_FALSE(nodes[0].resources[0].pod.missing);
  EXPECT_FALSE(nodes[0].resources[0].pod.clamped);
}

TEST(LimitScoreTest, AllEqualScoresAreZero) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 3000}}).Node("b", {{"cpu", 3000}}).Node("c", {{"cpu", 3000}});
  EXPECT_THAT(Score(StrictPolicy({{"cpu", 1}}), builder, {.limits = {{"cpu", 1000}}}), ElementsAre(0, 0, 0));
}

// Puts the node of a slot there again, as one of which not all could be read.
void MakeUnreadable(ClusterBuilder& builder, int32_t slot) {
  ClusterState& cluster = builder.cluster();
  const std::string name(cluster.name(Slot{slot}).data(), cluster.name(Slot{slot}).size());
  NodeTraits traits;
  traits.unreadable = "status.allocatable: is negative";
  cluster.SetNode(Slot{slot}, name, NodeShape(cluster.node_shape(Slot{slot})), {}, std::nullopt, traits);
}

// The pod limits memory only. Of b the amount of cpu was negative: by its memory alone it would be the best.
// Of c all that is scored could be read.
TEST(LimitScoreTest, NodeOfWhichAScoredAmountCouldNotBeReadIsNotFavoured) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 8000}, {"memory", 8 * kGi}})
      .Node("b", {{"memory", 64 * kGi}})
      .Node("c", {{"cpu", 8000}, {"memory", 16 * kGi}});
  MakeUnreadable(builder, 1);
  MakeUnreadable(builder, 2);
  EXPECT_THAT(Score(StrictPolicy({{"cpu", 1}, {"memory", 1}}), builder, {.limits = {{"memory", 4 * kGi}}}),
              ElementsAre(0, 0, 100));
}

// 1/3 + 2/3 and 1/2 + 1/2 are equal, which sums of rounded quotients are not.
TEST(LimitScoreTest, RoundingDoesNotTellEqualNodesApart) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 3000}, {"memory", 3}}, {{.limits = {{"cpu", 1000}, {"memory", 2}}}})
      .Node("b", {{"cpu", 2000}, {"memory", 2}}, {{.limits = {{"cpu", 1000}, {"memory", 1}}}});
  LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  for (ScoredResource& resource : policy.resources) resource.others = {MissingLimit::kZero};
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(0, 0));
}

TEST(LimitScoreTest, OneNodeAndNoNode) {
  ClusterBuilder builder;
  EXPECT_THAT(Score(StrictPolicy({{"cpu", 1}}), builder, {}), ElementsAre());
  builder.Node("a", {{"cpu", 1000}});
  EXPECT_THAT(Score(StrictPolicy({{"cpu", 1}}), builder, {}), ElementsAre(0));
}

struct MissingLimitCase {
  std::string name;
  MissingLimitRule rule;
  bool best_effort;
  int64_t counted;  // of 4000 allocatable
};
class MissingLimitTest : public ::testing::TestWithParam<MissingLimitCase> {};

TEST_P(MissingLimitTest, CountsIncomingAndExistingPodsAlike) {
  const MissingLimitCase& c = GetParam();
  LimitPolicy policy = StrictPolicy({{"cpu", 1}});
  (c.best_effort ? policy.resources[0].best_effort : policy.resources[0].others) = c.rule;
  (c.best_effort ? policy.resources[0].others : policy.resources[0].best_effort) = {MissingLimit::kFixed, 1};
  const TestPod pod{.requests = {{"cpu", 700}}, .best_effort = c.best_effort};
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 4000}}, {pod, pod});
  const std::vector<NodeExplanation> nodes = Explain(policy, builder, pod);
  const ResourceExplanation& cpu = nodes[0].resources[0];
  EXPECT_EQ(cpu.pod.amount, c.counted);
  EXPECT_EQ(cpu.node_limits, 2 * c.counted);
  EXPECT_EQ(cpu.node_missing_limits, 2);
  EXPECT_TRUE(cpu.pod.missing);
  EXPECT_EQ(cpu.pod_rule, c.rule.rule);
}
INSTANTIATE_TEST_SUITE_P(Cases, MissingLimitTest,
                         ::testing::ValuesIn(std::vector<MissingLimitCase>{
                             {"Zero", {MissingLimit::kZero}, false, 0},
                             {"Request", {MissingLimit::kRequest}, false, 700},
                             {"Allocatable", {MissingLimit::kAllocatable}, false, 4000},
                             {"Fixed", {MissingLimit::kFixed, 500}, false, 500},
                             {"FixedBeyondTheNode", {MissingLimit::kFixed, 5000}, false, 4000},
                             {"BestEffort", {MissingLimit::kFixed, 250}, true, 250}}),
                         [](const auto& row) { return row.param.name; });

TEST(LimitScoreTest, ALimitOfZeroIsAMissingOne) {
  ClusterBuilder builder;
  builder.Node("a", {{"memory", 4 * kGi}});
  const std::vector<NodeExplanation> nodes = Explain(
      StrictPolicy({{"memory", 1}}), builder, {.limits = {{"memory", 0}}, .requests = {{"memory", kGi}}});
  EXPECT_EQ(nodes[0].resources[0].pod.amount, 4 * kGi);
  EXPECT_TRUE(nodes[0].resources[0].pod.missing);
}

TEST(LimitScoreTest, RulesForTheIncomingPodOnlyLeaveExistingPodsAlone) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 4000}}, {{.best_effort = true}});
  const std::vector<NodeExplanation> nodes =
      Explain(Kep217Policy({{"cpu", 1}}), builder, {.best_effort = true});
  EXPECT_EQ(nodes[0].resources[0].node_limits, 0);
  EXPECT_EQ(nodes[0].resources[0].pod.amount, 4000);
}

TEST(LimitScoreTest, FinishedPodsHoldNothing) {
  ClusterBuilder builder;
  builder.Node("a", {{"memory", kGi}}, {{.limits = {{"memory", kGi}}, .finished = true}});
  const std::vector<NodeExplanation> nodes =
      Explain(StrictPolicy({{"memory", 1}}), builder, {.limits = {{"memory", 1}}});
  EXPECT_EQ(nodes[0].resources[0].node_limits, 0);
  EXPECT_EQ(nodes[0].resources[0].node_missing_limits, 0);
}

TEST(LimitScoreTest, NodeWithoutAResourceThatThePodLimitsIsLeftOut) {
  ClusterBuilder builder;
  builder.Node("none", {{"cpu", 8000}})
      .Node("half", {{"cpu", 8000}, {"gpu", 8}}, {{.limits = {{"gpu", 4}}}})
      .Node("free", {{"cpu", 8000}, {"gpu", 8}});
  const LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"gpu", 1}});
  EXPECT_THAT(Score(policy, builder, {.limits = {{"cpu", 1000}, {"gpu", 1}}}), ElementsAre(0, 0, 100));
  EXPECT_EQ(Explain(policy, builder, {.limits = {{"gpu", 1}}})[0].outcome,
            ScoreOutcome::kLacksLimitedResource);
  // A pod that asks for none: the node without it is judged by cpu alone: 87.5 between 68.75 and 93.75.
  EXPECT_THAT(Score(policy, builder, {.limits = {{"cpu", 1000}}}), ElementsAre(75, 0, 100));
}

TEST(LimitScoreTest, NodeThatOffersNothingThatCountsIsLeftOut) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 1000}}).Node("b", {{"pods", 10}}).Node("c", {{"cpu", 2000}});
  const std::vector<NodeExplanation> nodes =
      Explain(StrictPolicy({{"cpu", 1}}), builder, {.requests = {{"cpu", 500}}});
  EXPECT_EQ(nodes[1].outcome, ScoreOutcome::kNothingCounted);
  EXPECT_EQ(nodes[0].score, 0);
  EXPECT_EQ(nodes[1].score, 0);
  EXPECT_EQ(nodes[2].score, 100);
}

TEST(LimitScoreTest, AggregatesDiffer) {
  // cpu 50 % free, memory 300 % over: mean -125 and worst -300; the other node is at -150 and -150.
  ClusterBuilder builder;
  builder
      .Node("a", {{"cpu", 1000}, {"memory", 1000}},
            {{.limits = {{"cpu", 500}, {"memory", 1000}}},
             {.limits = {{"cpu", 0}, {"memory", 1000}}},
             {.limits = {{"memory", 1000}}},
             {.limits = {{"memory", 1000}}}})
      .Node("b", {{"cpu", 1000}, {"memory", 1000}},
            {{.limits = {{"cpu", 1000}, {"memory", 1000}}},
             {.limits = {{"cpu", 1000}, {"memory", 1000}}},
             {.limits = {{"cpu", 500}, {"memory", 500}}}});
  LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  for (ScoredResource& resource : policy.resources) resource.others = {MissingLimit::kZero};
  EXPECT_NEAR(Explain(policy, builder, {})[0].raw_score, -125, 1e-6);
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(100, 0));
  policy.aggregate = Aggregate::kWorst;
  EXPECT_NEAR(Explain(policy, builder, {})[0].raw_score, -300, 1e-6);
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(0, 100));
  policy.aggregate = Aggregate::kWeightedSum;
  EXPECT_NEAR(Explain(policy, builder, {})[0].raw_score, -250, 1e-6);
}

TEST(LimitScoreTest, AbsoluteScoresAreHundredOverOnePlusRatio) {
  ClusterBuilder builder;
  for (const int64_t limit : {0, 1000, 2000, 3000, 9000}) {
    builder.Node("n" + std::to_string(limit), {{"cpu", 1000}},
                 std::vector<TestPod>(static_cast<size_t>(limit / 1000), {.limits = {{"cpu", 1000}}}));
  }
  LimitPolicy policy = StrictPolicy({{"cpu", 1}});
  policy.normalization = Normalization::kAbsolute;
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(100, 50, 33, 25, 10));
  policy.aggregate = Aggregate::kWeightedSum;
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(100, 50, 33, 25, 10));
  policy.aggregate = Aggregate::kWorst;
  EXPECT_THAT(Score(policy, builder, {}), ElementsAre(100, 50, 33, 25, 10));
}

TEST(LimitScoreTest, AbsurdLimitCountsLikeOneOfTheNodesAllocatable) {
  for (const int64_t absurd : {int64_t{8001}, int64_t{1} << 40, kMaxAmount}) {
    ClusterBuilder with_absurd;
    ClusterBuilder with_allocatable;
    for (auto* builder : {&with_absurd, &with_allocatable}) {
      const int64_t limit = builder == &with_absurd ? absurd : 8000;
      builder->Node("a", {{"cpu", 8000}}, {{.limits = {{"cpu", limit}}}, {.limits = {{"cpu", 500}}}})
          .Node("b", {{"cpu", 8000}}, {{.limits = {{"cpu", 7000}}}})
          .Node("c", {{"cpu", 8000}}, {{.limits = {{"cpu", 2000}}}});
    }
    const LimitPolicy policy = StrictPolicy({{"cpu", 1}});
    EXPECT_EQ(Score(policy, with_absurd, {.limits = {{"cpu", 1000}}}),
              Score(policy, with_allocatable, {.limits = {{"cpu", 1000}}}));
    EXPECT_EQ(Score(policy, with_absurd, {.limits = {{"cpu", absurd}}}),
              Score(policy, with_allocatable, {.limits = {{"cpu", 8000}}}));
    EXPECT_EQ(Explain(policy, with_absurd, {})[0].resources[0].node_clamped, 1);
  }
}

// At most twice what the node offers: -100 on each, however large the node is.
TEST(LimitScoreTest, ALimitCountsForAtMostSoManyTimesTheNodesAllocatable) {
  for (LimitPolicy policy : {StrictPolicy({{"cpu", 1}}), Kep217Policy({{"cpu", 1}})}) {
    policy.max_limit_ratio = 2;
    ClusterBuilder builder;
    builder.Node("a", {{"cpu", 1000}}).Node("b", {{"cpu", 4000}});
    EXPECT_THAT(Score(policy, builder, {.limits = {{"cpu", kMaxAmount}}}), ElementsAre(0, 0));
    for (const NodeExplanation& node : Explain(policy, builder, {.limits = {{"cpu", 8000}}})) {
      EXPECT_NEAR(node.raw_score, -100, 1e-6);
      EXPECT_EQ(node.resources[0].pod.amount, 2 * node.resources[0].allocatable);
    }
    // One below the bound: 1999 of 1000 and of 4000.
    const std::vector<NodeExplanation> nodes = Explain(policy, builder, {.limits = {{"cpu", 1999}}});
    EXPECT_NEAR(nodes[0].raw_score, policy.arithmetic == Arithmetic::kTruncating ? -99 : -99.9, 1e-6);
    EXPECT_NEAR(nodes[1].raw_score, policy.arithmetic == Arithmetic::kTruncating ? 50 : 50.025, 1e-6);
  }
}

TEST(LimitScoreTest, SaturatesInsteadOfWrapping) {
  ClusterBuilder builder;
  builder.Node("a", {{"cpu", 1}}, std::vector<TestPod>(3, {.limits = {{"cpu", kMaxAmount}}}))
      .Node("b", {{"cpu", kMaxAmount}})
      .Node("c", {{"cpu", 4000}}, {{.limits = {{"cpu", 4000}}}});
  for (LimitPolicy policy : {StrictPolicy({{"cpu", 100}}), Kep217Policy({{"cpu", 100}})}) {
    policy.max_limit_ratio = 0;
    const std::vector<NodeExplanation> nodes = Explain(policy, builder, {.limits = {{"cpu", kMaxAmount}}});
    EXPECT_EQ(nodes[0].score, 0);
    EXPECT_EQ(nodes[1].score, 100);
    EXPECT_TRUE(nodes[0].resources[0].saturated);
    EXPECT_FALSE(nodes[1].resources[0].saturated);
  }
}

// An oracle that shares no code with the product: exact fractions, 100 * w * free / allocatable.
struct OracleNode {
  int64_t allocatable[2];
  std::vector<int64_t> pods[2];
};
double OracleRaw(const OracleNode& node, const int64_t (&pod)[2], const int32_t (&weight)[2]) {
  long double sum = 0;
  for (int r = 0; r < 2; ++r) {
    long double limits = static_cast<long double>(std::min(pod[r], node.allocatable[r]));
    for (const int64_t limit : node.pods[r])
      limits += static_cast<long double>(std::min(limit, node.allocatable[r]));
    const long double allocatable = static_cast<long double>(node.allocatable[r]);
    sum += weight[r] * 100 * (allocatable - limits) / allocatable;
  }
  return static_cast<double>(sum / (weight[0] + weight[1]));
}

TEST(LimitScoreTest, AgreesWithExactArithmeticOnRandomClusters) {
  std::mt19937_64 random(217);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    const int32_t weight[2] = {static_cast<int32_t>(pick(1, 100)), static_cast<int32_t>(pick(1, 100))};
    const int64_t scale = int64_t{1} << pick(3, 50);
    const int64_t pod[2] = {pick(1, scale), pick(1, scale)};
    std::vector<OracleNode> oracle(static_cast<size_t>(pick(2, 9)));
    ClusterBuilder builder;
    for (OracleNode& node : oracle) {
      std::vector<TestPod> pods(static_cast<size_t>(pick(0, 6)));
      for (int r = 0; r < 2; ++r) {
        node.allocatable[r] = pick(1, scale);
        for (size_t i = 0; i < pods.size(); ++i) node.pods[r].push_back(pick(1, 2 * scale));
      }
      for (size_t i = 0; i < pods.size(); ++i) {
        pods[i].limits = {{"cpu", node.pods[0][i]}, {"memory", node.pods[1][i]}};
      }
      builder.Node("n" + std::to_string(&node - oracle.data()),
                   {{"cpu", node.allocatable[0]}, {"memory", node.allocatable[1]}}, pods);
    }
    const LimitPolicy policy = StrictPolicy({{"cpu", weight[0]}, {"memory", weight[1]}});
    const std::vector<NodeExplanation> nodes =
        Explain(policy, builder, {.limits = {{"cpu", pod[0]}, {"memory", pod[1]}}});
    double lowest = 1e300;
    double highest = -1e300;
    for (const OracleNode& node : oracle) {
      lowest = std::min(lowest, OracleRaw(node, pod, weight));
      highest = std::max(highest, OracleRaw(node, pod, weight));
    }
    for (size_t i = 0; i < oracle.size(); ++i) {
      const double raw = OracleRaw(oracle[i], pod, weight);
      EXPECT_NEAR(nodes[i].raw_score, raw, 1.0 / (1 << 20));
      if (highest - lowest < 1e-3) continue;
      const double exact = 100 * (raw - lowest) / (highest - lowest);
      EXPECT_LE(nodes[i].score, exact + 1.0 / (1 << 14)) << "round " << round;
      EXPECT_GT(nodes[i].score, exact - 1 - 1.0 / (1 << 14)) << "round " << round;
    }
  }
}

// Adding a limit to a node never raises its raw score, adding allocatable never lowers it; the others stay.
// Invariant A3.
TEST(LimitScoreTest, IsMonotone) {
  std::mt19937_64 random(3);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const LimitPolicy policy = StrictPolicy({{"cpu", 1}});
  for (int round = 0; round < 2000; ++round) {
    const int64_t allocatable = pick(1, 1'000'000);
    const int64_t limit = pick(1, 2'000'000);
    const TestPod pod{.limits = {{"cpu", pick(1, 2'000'000)}}};
    const auto raw = [&](int64_t node_allocatable, const std::vector<TestPod>& pods) {
      ClusterBuilder builder;
      builder.Node("a", {{"cpu", node_allocatable}}, pods).Node("b", {{"cpu", 1000}});
      const std::vector<NodeExplanation> nodes = Explain(policy, builder, pod);
      return std::pair(nodes[0].raw_score, nodes[1].raw_score);
    };
    const auto before = raw(allocatable, {{.limits = {{"cpu", limit}}}});
    const auto more_limits =
        raw(allocatable, {{.limits = {{"cpu", limit}}}, {.limits = {{"cpu", pick(1, 1000)}}}});
    const auto more_room = raw(allocatable + pick(1, 100'000), {{.limits = {{"cpu", limit}}}});
    EXPECT_LE(more_limits.first, before.first);
    EXPECT_GE(more_room.first, before.first);
    EXPECT_EQ(more_limits.second, before.second);
    EXPECT_EQ(more_room.second, before.second);
  }
}

// Invariant A5.
TEST(LimitScoreTest, PermutingCandidatesPermutesScores) {
  std::mt19937_64 random(5);
  ClusterBuilder builder;
  for (int i = 0; i < 50; ++i) {
    builder.Node("n" + std::to_string(i), {{"cpu", 1000 + static_cast<int64_t>(random() % 9000)}},
                 {{.limits = {{"cpu", static_cast<int64_t>(random() % 5000)}}}});
  }
  const PodShape pod = builder.Shape({.limits = {{"cpu", 700}}});
  LimitColumns columns(StrictPolicy({{"cpu", 1}}));
  columns.CatchUp(builder.cluster());
  std::vector<Slot> slots = AllSlots(builder.cluster());
  std::vector<int32_t> scores;
  ScoreNodes(columns, builder.cluster(), pod, slots, &scores);
  std::shuffle(slots.begin(), slots.end(), random);
  std::vector<int32_t> shuffled;
  ScoreNodes(columns, builder.cluster(), pod, slots, &shuffled);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_EQ(shuffled[i], scores[IndexOf(slots[i])]);
}

// Kept sums equal a fresh recount after any change of nodes.
TEST(LimitColumnsTest, CatchingUpEqualsStartingOver) {
  std::mt19937_64 random(11);
  ClusterBuilder builder;
  const LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"gpu", 3}});
  LimitColumns kept(policy);
  for (int round = 0; round < 3000; ++round) {
    const int32_t slot = static_cast<int32_t>(random() % 20);
    if (random() % 5 == 0) {
      builder.cluster().RemoveNode(Slot{slot});
    } else {
      NamedAmounts allocatable = {{"cpu", 1 + static_cast<int64_t>(random() % 100)}};
      if (random() % 2 == 0) allocatable.push_back({"gpu", 1 + static_cast<int64_t>(random() % 8)});
      std::vector<TestPod> pods(random() % 4);
      for (TestPod& pod : pods) pod.limits = {{"cpu", static_cast<int64_t>(random() % 50)}};
      builder.NodeAt(slot, "n" + std::to_string(slot), allocatable, pods);
    }
    if (random() % 3 != 0) continue;
    kept.CatchUp(builder.cluster());
    LimitColumns fresh(policy);
    fresh.CatchUp(builder.cluster());
    for (const Slot s : AllSlots(builder.cluster())) {
      for (size_t r = 0; r < 2; ++r) {
        ASSERT_EQ(kept.limits(s)[r], fresh.limits(s)[r]);
        ASSERT_EQ(kept.terms(s)[r].allocatable, fresh.terms(s)[r].allocatable);
        ASSERT_EQ(kept.terms(s)[r].raw_without_pod, fresh.terms(s)[r].raw_without_pod);
        ASSERT_EQ(kept.terms(s)[r].reciprocal, fresh.terms(s)[r].reciprocal);
      }
    }
  }
}

TEST(LimitPolicyTest, RefusesWhatIsOutOfRange) {
  const auto message = [](const LimitPolicy& policy) {
    return std::string(CheckLimitPolicy(policy).message());
  };
  EXPECT_EQ(message(StrictPolicy({{"cpu", 1}, {"memory", 100}})), "");
  EXPECT_EQ(message(StrictPolicy({})), "resources: 0 given, 1 to 16 are allowed");
  EXPECT_EQ(message(StrictPolicy({{"cpu", 0}})), "resources: weight 0 of \"cpu\" is not in [1, 100]");
  EXPECT_EQ(message(StrictPolicy({{"cpu", 101}})), "resources: weight 101 of \"cpu\" is not in [1, 100]");
  EXPECT_EQ(message(StrictPolicy({{"cpu", 1}, {"cpu", 2}})), "resources: \"cpu\" is named twice");
  EXPECT_EQ(message(StrictPolicy({{"", 1}})), "resources: a name is empty");
  LimitPolicy policy = StrictPolicy({{"cpu", 1}});
  policy.max_limit_ratio = 1001;
  EXPECT_EQ(message(policy), "max_limit_ratio 1001 is not in [0, 1000]");
}

}  // namespace
}  // namespace loadline
