#include "core/expand/spread_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/expand/balance.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

// Shares `count` pods over domains with so many pods, four on a node that costs a dollar.
std::vector<int64_t> Share(const std::vector<GrowingDomain>& domains, int64_t skew, int64_t count) {
  std::vector<BalancedGroup> sizes;
  for (const GrowingDomain& domain : domains) sizes.push_back({"", domain.pods, domain.pods + count});
  std::vector<int64_t> add = BalanceGrowth(sizes, count);
  for (size_t i = 0; i < add.size(); ++i) add[i] -= domains[i].pods;
  return ShareOverDomains(domains, skew, std::move(add));
}

TEST(ShareOverDomains, LeavesADomainWithoutANewNodeWhereTheSkewPermitsIt) {
  // Even numbers, 3, 3 and 3, take three nodes; 2, 4 and 3 take two.
  EXPECT_THAT(Share({{2, 4, 1}, {1, 4, 1}, {1, 4, 1}}, 2, 5), ElementsAre(0, 3, 2));
  EXPECT_THAT(Share({{2, 4, 1}, {1, 4, 1}, {1, 4, 1}}, 1, 5), ElementsAre(1, 2, 2));
}

TEST(ShareOverDomains, FillsWholeNodes) {
  // 3, 3 and 2 take five nodes of two pods each; 4, 2 and 2 take four.
  EXPECT_THAT(Share({{0, 2, 1}, {0, 2, 1}, {0, 2, 1}}, 2, 8), ElementsAre(4, 2, 2));
}

TEST(ShareOverDomains, StaysEvenWhereThatCostsTheSame) {
  EXPECT_THAT(Share({{0, 4, 1}, {0, 4, 1}, {0, 4, 1}}, 5, 12), ElementsAre(4, 4, 4));
  EXPECT_THAT(Share({{0, 4, 1}, {0, 4, 1}}, 2, 6), ElementsAre(3, 3));
}

TEST(ShareOverDomains, ADearDomainGetsAsLittleAsTheSkewPermits) {
  // A node of the first domain costs ten times as much: 4 + 8 takes one of its nodes, 6 + 6 would take two.
  EXPECT_THAT(Share({{0, 4, 10}, {0, 4, 1}}, 4, 12), ElementsAre(4, 8));
}

TEST(ShareOverDomains, KeepsToWhatADomainMayTake) {
  // 4, 2 and 2 would cost least, but the first domain has room for two pods, and then for none.
  EXPECT_THAT(Share({{0, 2, 1, 2}, {0, 2, 1}, {0, 2, 1}}, 2, 8), ElementsAre(2, 4, 2));
  EXPECT_THAT(Share({{0, 2, 1, 0}, {0, 2, 1}, {0, 2, 1}}, 4, 8), ElementsAre(0, 4, 4));
}

// Returns the least cost of all ways, tried one by one.
double LeastCost(const std::vector<GrowingDomain>& domains, int64_t skew, int64_t count) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<int64_t> add(domains.size(), 0);
  const std::function<void(size_t, int64_t)> try_all = [&](size_t i, int64_t left) {
    if (i + 1 == domains.size()) {
      add[i] = left;
      int64_t lowest = std::numeric_limits<int64_t>::max();
      for (size_t k = 0; k < add.size(); ++k) lowest = std::min(lowest, domains[k].pods + add[k]);
      for (size_t k = 0; k < add.size(); ++k) {
        if (add[k] > 0 && domains[k].pods + add[k] - lowest > skew) return;
      }
      least = std::min(least, CostOfNodes(domains, add));
      return;
    }
    for (add[i] = 0; add[i] <= left; ++add[i]) try_all(i + 1, left - add[i]);
  };
  try_all(0, count);
  return least;
}

// With nodes of one size and price, nothing costs less; whatever they are, the numbers keep to the rule.
TEST(ShareOverDomains, EqualNodesAreAsFewAsPossible) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int world = 0; world < 2000; ++world) {
    const int64_t per_node = draw(1, 5);
    std::vector<GrowingDomain> domains;
    for (int64_t i = draw(1, 3); i > 0; --i) domains.push_back({draw(0, 6), per_node, 1});
    const int64_t skew = draw(1, 4);
    const int64_t count = draw(1, 14);
    const std::vector<int64_t> add = Share(domains, skew, count);
    EXPECT_EQ(std::accumulate(add.begin(), add.end(), int64_t{0}), count);
    EXPECT_EQ(CostOfNodes(domains, add), LeastCost(domains, skew, count))
        << "world " << world << ": skew " << skew << ", count " << count << ", per node " << per_node
        << ", domains " << domains.size();
  }
}

}  // namespace
}  // namespace loadline
