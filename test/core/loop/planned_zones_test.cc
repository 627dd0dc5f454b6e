#include "core/loop/planned_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace loadline {
namespace {

using ::testing::ElementsAre;

ZoneTurns TurnsOf(const NodesOfZones& nodes, std::optional<size_t> stated = std::nullopt) {
  NodeModel model;
  for (const int64_t in_zone : nodes) model.zones.push_back({.nodes = in_zone});
  model.stated_zone = stated;
  return ZoneTurns(model);
}

TEST(ZoneTurnsTest, TheFewestComeFirstAndAmongThemTheWantedOnes) {
  ZoneTurns turns = TurnsOf({2, 1, 1});
  NodesOfZones wanted = {3, 0, 1};
  std::vector<size_t> zones;
  for (int i = 0; i < 5; ++i) zones.push_back(turns.Take(&wanted));
  EXPECT_THAT(zones, ElementsAre(2, 1, 0, 1, 2));  // 2 1 2, 2 2 2, 3 2 2, 3 3 2, 3 3 3
  EXPECT_THAT(wanted, ElementsAre(2, -2, -1));
  EXPECT_THAT(turns.nodes(), ElementsAre(3, 3, 3));
}

TEST(ZoneTurnsTest, NoneIsGrantedBehindOneThatNobodyWants) {
  EXPECT_THAT(TurnsOf({1, 1, 1}).Grant({0, 3, 0}, 9), ElementsAre(0, 1, 0));
  EXPECT_THAT(TurnsOf({1, 1, 1}).Grant({1, 3, 2}, 9), ElementsAre(1, 2, 2));
  EXPECT_THAT(TurnsOf({1, 2, 2}).Grant({0, 1, 1}, 9), ElementsAre(0, 0, 0));
  EXPECT_THAT(TurnsOf({1, 2, 2}).Grant({1, 1, 1}, 9), ElementsAre(1, 1, 1));
  EXPECT_THAT(TurnsOf({1, 2, 2}).Grant({1, 1, 1}, 2), ElementsAre(1, 1, 0));
}

TEST(ZoneTurnsTest, TheZoneOfTheTemplateMayAlwaysBeNext) {
  EXPECT_THAT(TurnsOf({5, 1}, 0).Grant({3, 0}, 9), ElementsAre(3, 0));
  NodesOfZones nothing = {0, 0};
  EXPECT_EQ(TurnsOf({5, 1}, 0).Take(&nothing), 1U) << "the other one has fewer";
}

}  // namespace
}  // namespace loadline
