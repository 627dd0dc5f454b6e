#include "core/expand/joint_spending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace loadline {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr int64_t kGib = int64_t{1} << 30;

ExpansionOption Option(const std::string& name, int64_t cpus, double usd, std::vector<PodRun> pods) {
  ExpansionOption option;
  option.node_group = name;
  option.node_count = 9;
  option.node.given = usd;
  option.node.milli_cpu = cpus * 1000;
  option.node.memory_bytes = cpus * 4 * kGib;
  option.pods = std::move(pods);
  return option;
}

std::vector<double> Spend(const std::vector<PodRequests>& pods, const std::vector<ExpansionOption>& options) {
  const PriceModel prices;
  const RankPolicy policy = ClusterAutoscalerRanking();
  return SpendJointly({pods, options, prices, policy, std::nullopt});
}

TEST(JointSpendingTest, SpendsOnTheCheapestMix) {
  // Ten pods of a core: a big node holds eight for 0.30, a small one two for 0.10.
  const std::vector<PodRequests> pods = {{.milli_cpu = 1000, .memory_bytes = kGib}};
  const std::vector<ExpansionOption> options = {Option("small", 2, 0.10, {{0, 10}}),
                                                Option("big", 8, 0.30, {{0, 10}})};
  EXPECT_THAT(Spend(pods, options), ElementsAre(DoubleNear(0.10, 1e-9), DoubleNear(0.30, 1e-9)));
}

TEST(JointSpendingTest, APodGoesOnlyWhereAnOptionListsIt) {
  const std::vector<PodRequests> pods = {{.milli_cpu = 1000, .memory_bytes = kGib},
                                         {.milli_cpu = 1000, .memory_bytes = kGib, .gpus = 1}};
  std::vector<ExpansionOption> options = {Option("plain", 2, 0.10, {{0, 2}}),
                                          Option("gpu", 2, 1.00, {{0, 1}, {1, 1}})};
  options[1].node.gpus = 1;
  // The pod with a GPU needs a node of 1.00, beside it one more fits; the other is placed on a plain node.
  EXPECT_THAT(Spend(pods, options), ElementsAre(DoubleNear(0.10, 1e-9), DoubleNear(1.00, 1e-9)));
}

TEST(JointSpendingTest, NothingIsPlannedWithoutPricesOrPods) {
  const std::vector<PodRequests> pods = {{.milli_cpu = 1000, .memory_bytes = kGib}};
  ExpansionOption option = Option("a", 2, 0.10, {});
  EXPECT_THAT(Spend(pods, {option}), ElementsAre(0));
  option = Option("a", 2, 0.10, {{0, 1}});
  option.node.has_template = false;
  EXPECT_THAT(Spend(pods, {option}), ElementsAre(0));
  EXPECT_TRUE(Spend({}, {}).empty());
}

TEST(JointSpendingTest, RanksByWhatTheMixSpends) {
  const std::vector<PodRequests> pods = {{.milli_cpu = 1000, .memory_bytes = kGib}};
  const std::vector<ExpansionOption> options = {Option("small", 2, 0.10, {{0, 10}}),
                                                Option("big", 8, 0.30, {{0, 10}}),
                                                Option("dear", 8, 0.90, {{0, 10}})};
  const PriceModel prices;
  RankPolicy policy = ClusterAutoscalerRanking();
  policy.strategies = {RankStrategy::kJoint};
  const std::vector<RankedOption> ranked = RankOptions({pods, options, prices, policy, std::nullopt});
  ASSERT_EQ(ranked.size(), 3U);
  EXPECT_EQ(ranked[0].option, 1U);
  EXPECT_EQ(ranked[1].option, 0U);
  EXPECT_EQ(ranked[2].option, 2U);
  EXPECT_EQ(ranked[2].joint_usd, 0);
  policy.strategies = {RankStrategy::kPrice};
  EXPECT_FALSE(RankOptions({pods, options, prices, policy, std::nullopt})[0].joint_usd.has_value());
}

}  // namespace
}  // namespace loadline
