#include "core/cluster/node_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr GroupIndex kFirst{0};
constexpr GroupIndex kSecond{1};

std::vector<std::pair<Slot, GroupIndex>> Listed(const GroupsOfNodes& groups) {
  std::vector<std::pair<Slot, GroupIndex>> listed;
  for (const auto [slot, group] : groups) listed.emplace_back(slot, group);
  return listed;
}

TEST(GroupsOfNodesTest, SlotsThatNobodySetAndThoseBehindTheEndAreInNone) {
  GroupsOfNodes groups;
  EXPECT_EQ(groups[Slot{0}], std::nullopt);
  groups.Set(Slot{2}, kSecond);
  EXPECT_EQ(groups[Slot{0}], std::nullopt);
  EXPECT_EQ(groups[Slot{2}], kSecond);
  EXPECT_EQ(groups[Slot{3}], std::nullopt);
  groups.Set(Slot{2}, kFirst);
  EXPECT_EQ(groups[Slot{2}], kFirst);
}

TEST(GroupsOfNodesTest, ListsNodesOfGroupsInTheOrderOfSlots) {
  EXPECT_THAT(Listed({}), IsEmpty());
  GroupsOfNodes groups;
  groups.Set(Slot{4}, kFirst);
  groups.Set(Slot{1}, kSecond);
  groups.Set(Slot{2}, kFirst);
  EXPECT_THAT(Listed(groups),
              ElementsAre(Pair(Slot{1}, kSecond), Pair(Slot{2}, kFirst), Pair(Slot{4}, kFirst)));
}

TEST(GroupsOfNodesTest, AreEqualWhereAllNodesAre) {
  GroupsOfNodes groups;
  groups.Set(Slot{1}, kFirst);
  EXPECT_EQ(groups, GroupsBySlot({std::nullopt, kFirst, std::nullopt}));
  EXPECT_FALSE(groups == GroupsBySlot({kFirst, kFirst}));
}

}  // namespace
}  // namespace loadline
