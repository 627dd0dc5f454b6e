#include "core/expand/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BalanceGrowth, FillsTheSmallestFirst) {
  const std::vector<BalancedGroup> groups = {{"a", 1, 10}, {"b", 3, 10}, {"c", 5, 10}};
  EXPECT_THAT(BalanceGrowth(groups, 0), ElementsAre(1, 3, 5));
  EXPECT_THAT(BalanceGrowth(groups, 1), ElementsAre(2, 3, 5));
  EXPECT_THAT(BalanceGrowth(groups, 3), ElementsAre(4, 3, 5));
  EXPECT_THAT(BalanceGrowth(groups, 7), ElementsAre(6, 5, 5));
  EXPECT_THAT(BalanceGrowth(groups, 1'000'000), ElementsAre(10, 10, 10));
  EXPECT_THAT(BalanceGrowth({}, 5), IsEmpty());
}

TEST(BalanceGrowth, EqualOnesByName) {
  EXPECT_THAT(BalanceGrowth({{"b", 2, 9}, {"a", 2, 9}, {"c", 2, 2}}, 1), ElementsAre(2, 3, 2));
  EXPECT_THAT(BalanceGrowth({{"over", 7, 3}, {"a", 1, 2}}, 5), ElementsAre(7, 2));
}

// One node after the other, to the smallest group with room.
std::vector<int64_t> OneByOne(const std::vector<BalancedGroup>& groups, int64_t add) {
  std::vector<int64_t> sizes;
  for (const BalancedGroup& group : groups) sizes.push_back(group.size);
  for (; add > 0; --add) {
    size_t best = groups.size();
    const auto key = [&](size_t i) { return std::tie(sizes[i], groups[i].size, groups[i].name); };
    for (size_t i = 0; i < groups.size(); ++i) {
      if (sizes[i] < groups[i].max && (best == groups.size() || key(i) < key(best))) best = i;
    }
    if (best == groups.size()) break;
    ++sizes[best];
  }
  return sizes;
}

RC_GTEST_PROP(BalanceGrowth, IsThatOfOneNodeAfterTheOther, ()) {
  std::vector<BalancedGroup> groups(*rc::gen::inRange<size_t>(0, 6));
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i] = {std::string(1, static_cast<char>('a' + i)), *rc::gen::inRange(0, 8),
                 *rc::gen::inRange(0, 12)};
  }
  const int64_t add = *rc::gen::inRange(0, 60);
  RC_ASSERT(BalanceGrowth(groups, add) == OneByOne(groups, add));
}

}  // namespace
}  // namespace loadline
