#include "core/base/resource_list.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "core/base/amount.h"

namespace loadline {
namespace {

constexpr ResourceId kDevice{3};

ResourceAmounts Amounts(const std::vector<std::pair<ResourceId, int64_t>>& entries) {
  ResourceAmounts amounts;
  for (const auto& [id, value] : entries) amounts[id] = value;
  return amounts;
}

ResourceList Units(const std::vector<std::pair<ResourceId, int64_t>>& entries) {
  ResourceList list;
  for (const auto& [id, units] : entries) list[id] = Quantity::FromUnits(units);
  return list;
}

std::vector<ResourceId> Ids(const ResourceAmounts& amounts) {
  std::vector<ResourceId> ids;
  for (const ResourceAmounts::Entry& entry : amounts) ids.push_back(entry.id);
  return ids;
}

TEST(ResourceMapTest, IsSortedById) {
  const ResourceAmounts amounts =
      Amounts({{kDevice, 1}, {kCpu, 2}, {ResourceId{9}, 3}, {kMemory, 4}, {kEphemeralStorage, 5}});
  EXPECT_EQ(Ids(amounts),
            (std::vector<ResourceId>{kCpu, kMemory, kEphemeralStorage, kDevice, ResourceId{9}}));
  EXPECT_EQ(amounts.Get(kDevice), 1);
  EXPECT_EQ(amounts.Get(ResourceId{9}), 3);
}

TEST(ResourceMapTest, OrderOfInsertionDoesNotMatter) {
  std::vector<std::pair<ResourceId, int64_t>> entries;
  for (int32_t i = 0; i < 20; ++i) entries.emplace_back(ResourceId{i}, 100 + i);
  const ResourceAmounts expected = Amounts(entries);
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    std::shuffle(entries.begin(), entries.end(), random);
    EXPECT_EQ(Amounts(entries), expected);
  }
}

TEST(ResourceMapTest, AbsentIsNotZero) {
  ResourceAmounts amounts = Amounts({{kMemory, 0}});
  ASSERT_NE(amounts.Find(kMemory), nullptr);
  EXPECT_EQ(*amounts.Find(kMemory), 0);
  EXPECT_EQ(amounts.Find(kCpu), nullptr);
  EXPECT_EQ(amounts.Find(kDevice), nullptr);
  EXPECT_EQ(amounts.Get(kCpu), 0);
  EXPECT_EQ(amounts.size(), 1U);
  EXPECT_NE(amounts, ResourceAmounts());
  amounts.clear();
  EXPECT_TRUE(amounts.empty());
  EXPECT_EQ(amounts, ResourceAmounts());
}

TEST(ResourceMapTest, LastValueOfAResourceHolds) {
  ResourceAmounts amounts = Amounts({{kCpu, 1}, {kCpu, 2}});
  EXPECT_EQ(amounts.size(), 1U);
  *amounts.Find(kCpu) += 5;
  EXPECT_EQ(amounts.Get(kCpu), 7);
}

TEST(AddToTest, SumsAndTakesOver) {
  ResourceAmounts sum = Amounts({{kCpu, 100}, {kDevice, 1}});
  AddTo(sum, Amounts({{kCpu, 50}, {kMemory, 0}}));
  EXPECT_EQ(sum, Amounts({{kCpu, 150}, {kMemory, 0}, {kDevice, 1}}));

  ResourceList list = Units({{kCpu, 100}, {kDevice, 1}});
  AddTo(list, Units({{kCpu, 50}, {kMemory, 0}}));
  EXPECT_EQ(list, Units({{kCpu, 150}, {kMemory, 0}, {kDevice, 1}}));
}

TEST(AddToTest, Saturates) {
  ResourceAmounts sum = Amounts({{kMemory, kMaxAmount - 1}});
  AddTo(sum, Amounts({{kMemory, 1}}));
  EXPECT_EQ(sum.Get(kMemory), kMaxAmount);
  AddTo(sum, sum);
  EXPECT_EQ(sum.Get(kMemory), kMaxAmount);

  ResourceList list = Units({{kMemory, kMaxAmount}});
  AddTo(list, list);
  EXPECT_EQ(list, Units({{kMemory, kMaxAmount}}));
}

TEST(RaiseToTest, TakesLargerAndMissing) {
  ResourceList list = Units({{kCpu, 2}, {kMemory, 5}});
  RaiseTo(list, Units({{kCpu, 3}, {kMemory, 4}, {kEphemeralStorage, 0}, {kDevice, -1}}));
  EXPECT_EQ(list, Units({{kCpu, 3}, {kMemory, 5}, {kEphemeralStorage, 0}, {kDevice, -1}}));
}

TEST(ToAmountsTest, CpuIsMilliTheRestUnitsRoundedUp) {
  ResourceList list;
  list[kCpu] = Quantity::FromNano(1'500'000'001);
  list[kMemory] = Quantity::FromNano(1'500'000'001);
  list[kDevice] = Quantity::FromNano(1);
  list[kEphemeralStorage] = Quantity();
  EXPECT_EQ(ToAmounts(list), Amounts({{kCpu, 1'501}, {kMemory, 2}, {kEphemeralStorage, 0}, {kDevice, 1}}));
}

TEST(ToAmountsTest, StaysWithinBounds) {
  EXPECT_EQ(ToAmounts(Units({{kCpu, kMaxAmount}, {kMemory, kMaxAmount}, {kDevice, -1}})),
            Amounts({{kCpu, kMaxAmount}, {kMemory, kMaxAmount}, {kDevice, 0}}));
  // The largest number of cores whose millicores fit is 2^62 / 1000, which is 4611686018427387.904.
  EXPECT_EQ(ToAmount(kCpu, Quantity::FromUnits(4'611'686'018'427'387)), 4'611'686'018'427'387'000);
  EXPECT_EQ(ToAmount(kCpu, Quantity::FromUnits(4'611'686'018'427'388)), kMaxAmount);
  EXPECT_EQ(ToAmount(kCpu, Quantity::FromNano(-1)), 0);
}

}  // namespace
}  // namespace loadline
