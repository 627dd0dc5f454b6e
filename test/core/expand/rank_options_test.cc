#include "core/expand/rank_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace loadline {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Options whose nodes have a price that is given.
class Options {
 public:
  std::vector<PodRequests> pods = {{.milli_cpu = 100}};
  std::vector<ExpansionOption> options;
  PriceModel prices;
  RankPolicy policy = ClusterAutoscalerRanking();
  std::optional<NodeCapacity> preferred = NodeCapacity{8000, 30 * kGibibyte};

  ExpansionOption& Add(std::string group, int64_t milli_cpu, double price, int64_t nodes = 1,
                       int64_t count = 1) {
    ExpansionOption& option = options.emplace_back();
    option.node_group = std::move(group);
    option.node_count = nodes;
    option.node.milli_cpu = milli_cpu;
    option.node.memory_bytes = 4 * kGibibyte * milli_cpu / 1000;
    option.node.given = price;
    option.pods = {{0, count}};
    return option;
  }

  std::vector<RankedOption> Rank() const { return RankOptions({pods, options, prices, policy, preferred}); }
  std::vector<std::string> Groups() const {
    std::vector<std::string> groups;
    for (const RankedOption& ranked : Rank()) groups.push_back(options[ranked.option].node_group);
    return groups;
  }
};

// The tables of the proposal: X 0.016, 0.03 per CPU, preferred n1-standard-8.
Options Proposal(int64_t milli_cpu, int64_t nodes, int64_t count) {
  Options options;
  options.policy = ProposalRanking();
  options.policy.damper = 0.016;
  options.policy.pod_rates.cpu = 0.03;
  options.pods = {{.milli_cpu = milli_cpu}};
  options.Add("n1-standard-2", 2000, 0.095, nodes, count);
  options.Add("n1-standard-8", 8000, 0.380, nodes, count);
  options.Add("n1-standard-2-gpu", 2000, 0.795, nodes, count).has_gpu = true;
  return options;
}

TEST(RankOptions, TablesOfTheProposal) {
  const struct {
    int64_t milli_cpu;
    double ratios[3], scores[3];  // n1-standard-8, n1-standard-2, n1-standard-2-gpu
  } tables[] = {{100, {20.842105, 5.842105, 42.684211}, {20.842105, 23.368421, 170.736842}},
                {1500, {6.491803, 1.819672, 13.295082}, {6.491803, 7.278689, 53.180328}}};
  for (const auto& table : tables) {
    const Options options = Proposal(table.milli_cpu, 1, 1);
    EXPECT_THAT(options.Groups(), ElementsAre("n1-standard-8", "n1-standard-2", "n1-standard-2-gpu"));
    const std::vector<RankedOption> ranked = options.Rank();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(ranked[i].cost_ratio, table.ratios[i], 5e-7);
      EXPECT_NEAR(ranked[i].score, table.scores[i], 5e-7);
    }
  }
}

TEST(RankOptions, FiftyPodsThatExcludeEachOtherTakeTheSmallMachine) {
  const Options options = Proposal(1500, 50, 50);
  EXPECT_THAT(options.Groups(), ElementsAre("n1-standard-2", "n1-standard-8", "n1-standard-2-gpu"));
  EXPECT_NEAR(options.Rank()[0].suppressed_unfitness, 1.008712, 5e-7);
}

TEST(RankOptions, PresetsHaveTheirOwnDamper) {
  EXPECT_NEAR(ClusterAutoscalerRanking().damper, 0.018757898, 1e-9);
  EXPECT_DOUBLE_EQ(ProposalRanking().damper, 0.5 * 0.033174);
}

TEST(RankOptions, TermsMultiplyUpToTheScore) {
  Options options;
  options.Add("a", 4000, 0.2, 3, 10).to_be_created = true;
  const RankedOption ranked = options.Rank()[0];
  EXPECT_EQ(ranked.score, ranked.suppressed_unfitness * ranked.cost_ratio * ranked.creation_factor);
  EXPECT_EQ(ranked.creation_factor, 2);
  EXPECT_EQ(ranked.unfitness, 2);
  EXPECT_EQ(ranked.cost, 0.2 * 3);
  EXPECT_EQ(ranked.pods, 10);
}

TEST(RankOptions, WhatHasNoScoreComesBehindInTheOrderOfOutcomes) {
  Options options;
  options.policy.damper = 0;
  options.pods = {{.milli_cpu = 100}, {}};
  options.Add("no-pods", 8000, 0.1, 1, 0);
  options.Add("no-nodes", 8000, 0.1, 0, 1);
  ExpansionOption& no_template = options.Add("no-template", 8000, 0.1);
  no_template.node.has_template = false;
  options.Add("no-price", 8000, -1).node.has_template = false;
  options.Add("infinite", 8000, 1).pods = {{1, 1}};
  options.Add("undefined", 8000, 0).pods = {{1, 1}};
  options.Add("dear", 8000, 1e6);
  EXPECT_THAT(options.Groups(),
              ElementsAre("dear", "undefined", "infinite", "no-price", "no-template", "no-nodes", "no-pods"));
  const std::vector<RankedOption> ranked = options.Rank();
  const RankOutcome outcomes[] = {
      RankOutcome::kScored,     RankOutcome::kUndefinedScore, RankOutcome::kScored,    RankOutcome::kNoPrice,
      RankOutcome::kNoTemplate, RankOutcome::kHelpsNoPod,     RankOutcome::kHelpsNoPod};
  for (size_t i = 0; i < ranked.size(); ++i) EXPECT_EQ(ranked[i].outcome, outcomes[i]) << i;
}

TEST(RankOptions, NoOptionsNoAnswer) { EXPECT_THAT(Options().Rank(), ElementsAre()); }

TEST(RankOptions, TiesGoToTheNameAndToThePlace) {
  Options options;
  for (const char* name : {"b", "a", "b", "a"}) options.Add(name, 8000, 0.5);
  std::vector<size_t> order;
  for (const RankedOption& ranked : options.Rank()) order.push_back(ranked.option);
  EXPECT_THAT(order, ElementsAre(1, 3, 0, 2));
}

TEST(RankOptions, StrategiesFollowEachOther) {
  Options options;
  options.Add("few-pods", 8000, 0.1, 1, 5).priority = 1;
  options.Add("many-nodes", 8000, 0.1, 3, 9).priority = std::numeric_limits<int64_t>::min();
  options.Add("many-pods", 8000, 9.0, 2, 9);
  options.policy.strategies = {RankStrategy::kMostPods, RankStrategy::kLeastNodes};
  EXPECT_THAT(options.Groups(), ElementsAre("many-pods", "many-nodes", "few-pods"));
  options.policy.strategies = {RankStrategy::kMostPods, RankStrategy::kPrice};
  EXPECT_THAT(options.Groups(), ElementsAre("many-nodes", "many-pods", "few-pods"));
  options.policy.strategies = {RankStrategy::kPriority};
  EXPECT_THAT(options.Groups(), ElementsAre("few-pods", "many-nodes", "many-pods"));
}

TEST(RankOptions, LeastWasteLooksAtCpuAndMemory) {
  Options options;
  options.policy.strategies = {RankStrategy::kLeastWaste};
  options.pods = {{.milli_cpu = 1000, .memory_bytes = 4 * kGibibyte}};
  options.Add("half", 2000, 0);
  options.Add("full", 1000, 100);
  options.Add("unknown", 0, 0);
  EXPECT_THAT(options.Groups(), ElementsAre("full", "half", "unknown"));
  const std::vector<RankedOption> ranked = options.Rank();
  EXPECT_EQ(ranked[0].waste, 0);
  EXPECT_EQ(ranked[1].waste, 1);
  EXPECT_EQ(ranked[2].waste, std::nullopt);
}

TEST(RankOptions, GpuValue) {
  Options options;
  options.pods = {{.milli_cpu = 100}, {.milli_cpu = 100, .gpus = 1}};
  options.Add("unneeded", 8000, 1).has_gpu = true;
  ExpansionOption& needed = options.Add("needed", 8000, 1);
  needed.has_gpu = true;
  needed.pods = {{0, 1}, {1, 1}};
  std::vector<RankedOption> ranked = options.Rank();
  EXPECT_EQ(ranked[0].suppressed_unfitness, 1000);
  EXPECT_EQ(ranked[1].suppressed_unfitness, 1000);
  EXPECT_TRUE(ranked[1].gpu_unneeded);
  options.policy.gpu_unfitness_if_unneeded = true;
  ranked = options.Rank();
  EXPECT_EQ(ranked[0].suppressed_unfitness, 1);
  EXPECT_EQ(ranked[1].suppressed_unfitness, 1000);
}

TEST(RankOptions, NodesCountedInUnitsOfThePreferredOne) {
  Options options;
  options.policy.count_preferred_nodes = true;
  options.Add("a", 2000, 0.1, 20);
  options.Add("b", 2000, 0.1, 2);
  options.Add("c", 16000, 0.8, 10);
  std::vector<RankedOption> ranked = options.Rank();
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.option < b.option; });
  EXPECT_NEAR(ranked[0].suppressed_unfitness, 3.218439, 5e-7);  // as 5 nodes: suppress(4, 5)
  EXPECT_EQ(ranked[1].suppressed_unfitness, 4);                 // half a node counts as one
  EXPECT_NEAR(ranked[2].suppressed_unfitness, 1.147108, 5e-7);  // as 20 nodes: suppress(2, 20)
}

TEST(RankOptions, CommitmentsComeOffTheCost) {
  Options options;
  options.Add("a", 8000, 0.5, 2);
  options.prices.commitments = {{"", 4000}};
  const RankedOption ranked = options.Rank()[0];
  EXPECT_DOUBLE_EQ(ranked.committed, 0.25);
  EXPECT_DOUBLE_EQ(ranked.cost, 0.75);
}

TEST(RankOptions, WithoutClusterSizeUnfitnessIsOne) {
  Options options;
  options.preferred.reset();
  options.Add("a", 1000, 0.1);
  EXPECT_EQ(options.Rank()[0].suppressed_unfitness, 1);
}

TEST(RankOptions, AmountsAtTheirBoundsStayFinite) {
  Options options;
  constexpr int64_t kMost = int64_t{1} << 62;
  options.pods = {{kMost, kMost, kMost, kMost}};
  ExpansionOption& option = options.Add("a", 0, 1e9, (int64_t{1} << 31) - 1, (int64_t{1} << 31) - 1);
  option.node.milli_cpu = option.node.memory_bytes = kMost;
  option.pods = {option.pods[0], option.pods[0]};
  EXPECT_TRUE(std::isfinite(options.Rank()[0].score));
}

Options RandomOptions() {
  Options options;
  options.policy = *rc::gen::element(ClusterAutoscalerRanking(), ProposalRanking());
  options.pods.clear();
  for (int i = 0; i < 3; ++i) {
    const int64_t gpus = *rc::gen::element(0, 0, 1);
    options.pods.push_back({.milli_cpu = *rc::gen::inRange(0, 4000),
                            .memory_bytes = *rc::gen::inRange(0, 8) * kGibibyte,
                            .gpus = gpus});
  }
  const auto size = *rc::gen::inRange<size_t>(1, 12);
  for (size_t i = 0; i < size; ++i) {
    const double price = *rc::gen::element(0.0, 0.1, 0.1, 0.2, 5.0, -1.0, kNan);
    ExpansionOption& option = options.Add(*rc::gen::element<std::string>("a", "b", "c"),
                                          *rc::gen::inRange(0, 33) * 1000, price, *rc::gen::inRange(0, 60));
    option.pods = {{*rc::gen::inRange<size_t>(0, 3), *rc::gen::inRange(0, 50)},
                   {*rc::gen::inRange<size_t>(0, 3), *rc::gen::inRange(0, 50)}};
    option.has_gpu = *rc::gen::arbitrary<bool>();
    option.to_be_created = *rc::gen::arbitrary<bool>();
    option.node.has_template = *rc::gen::inRange(0, 5) != 0;
  }
  return options;
}

// B1, B2, B5: a permutation, the same from any order of the request, and terms that make up the score.
RC_GTEST_PROP(RankOptions, IsOneTotalOrder, ()) {
  Options options = RandomOptions();
  for (size_t i = 0; i < options.options.size(); ++i) options.options[i].node_group += std::to_string(i);
  const std::vector<RankedOption> ranked = options.Rank();
  std::vector<bool> seen(options.options.size());
  for (const RankedOption& option : ranked) {
    RC_ASSERT(!seen.at(option.option));
    seen[option.option] = true;
    if (option.outcome != RankOutcome::kScored) continue;
    RC_ASSERT(!std::isnan(option.score));
    RC_ASSERT(option.score == option.suppressed_unfitness * option.cost_ratio * option.creation_factor);
  }
  RC_ASSERT(ranked.size() == options.options.size());
  const std::vector<std::string> groups = options.Groups();
  std::reverse(options.options.begin(), options.options.end());
  RC_ASSERT(options.Groups() == groups);
}

// B3: what has no price is behind all that have one.
RC_GTEST_PROP(RankOptions, MissingPricesAreAClassOfTheirOwn, ()) {
  const Options options = RandomOptions();
  int last = 0;
  for (const RankedOption& option : options.Rank()) {
    const bool scored =
        option.outcome == RankOutcome::kScored || option.outcome == RankOutcome::kUndefinedScore;
    const int outcome = scored ? 0 : static_cast<int>(option.outcome);
    RC_ASSERT(outcome >= last);
    last = outcome;
  }
}

// B4: an option that gets cheaper, or takes more of its pods, does not fall; all prices times 4 change
// nothing.
RC_GTEST_PROP(RankOptions, BetterTermsDoNotRankLower, ()) {
  Options options = RandomOptions();
  const auto at = *rc::gen::inRange<size_t>(0, options.options.size());
  const auto place = [&] {
    const std::vector<RankedOption> ranked = options.Rank();
    return std::find_if(ranked.begin(), ranked.end(), [&](const auto& r) { return r.option == at; }) -
           ranked.begin();
  };
  ExpansionOption& option = options.options[at];
  const auto before = place();
  if (option.node.given > 0) option.node.given = *option.node.given / 2;
  if (option.pods[0].count > 0) option.pods[0].count += 1;
  RC_ASSERT(place() <= before);
}

RC_GTEST_PROP(RankOptions, ScalingAllPricesLeavesTheOrder, ()) {
  Options options = RandomOptions();
  for (ExpansionOption& option : options.options) {
    if (!(option.node.given >= 0)) option.node.given = 3;
  }
  const std::vector<std::string> groups = options.Groups();
  for (ExpansionOption& option : options.options) *option.node.given *= 4;  // exact
  ResourceRates& rates = options.policy.pod_rates;
  for (double* rate :
       {&rates.cpu, &rates.memory_gib, &rates.gpu, &rates.ephemeral_gib, &rates.ephemeral_flat}) {
    *rate *= 4;
  }
  options.policy.damper *= 4;
  RC_ASSERT(options.Groups() == groups);
}

// I1: half of a small pod changes no score by more than 20 %.
RC_GTEST_PROP(RankOptions, HalfASmallPodChangesLittle, ()) {
  Options options;
  options.policy = *rc::gen::element(ClusterAutoscalerRanking(), ProposalRanking());
  for (int i = 0; i < 4; ++i) {
    options.Add(std::to_string(i), *rc::gen::inRange(1, 33) * 1000, *rc::gen::inRange(1, 1000) * 0.01);
  }
  options.pods = {{.milli_cpu = 100}};
  std::vector<double> scores(4);
  for (const RankedOption& ranked : options.Rank()) scores[ranked.option] = ranked.score;
  options.pods = {{.milli_cpu = 50}};
  for (const RankedOption& ranked : options.Rank()) {
    RC_ASSERT(std::fabs(ranked.score - scores[ranked.option]) <= 0.2 * scores[ranked.option]);
  }
}

// I2: for pods that ask for none, a node with a GPU never beats the same node without, at the same price or
// more.
RC_GTEST_PROP(RankOptions, AnUnneededGpuNeverWins, ()) {
  Options options = RandomOptions();
  for (PodRequests& pod : options.pods) pod.gpus = 0;
  ExpansionOption with = options.options[0];
  with.has_gpu = false;
  // The GPU value of 1000 is the worst: no node of a CPU or more is as unfit.
  with.node.milli_cpu = std::max<int64_t>(with.node.milli_cpu, 1000);
  options.options = {with, with};
  options.options[0].has_gpu = true;
  options.options[0].node_group = *rc::gen::element<std::string>("a", "z");
  options.options[1].node_group = "m";
  if (*options.options[0].node.given >= 0) *options.options[0].node.given += *rc::gen::inRange(0, 3) * 0.35;
  options.policy.gpu_unfitness_if_unneeded = *rc::gen::arbitrary<bool>();
  RC_ASSERT(options.Groups()[0] == "m");
}

}  // namespace
}  // namespace loadline
