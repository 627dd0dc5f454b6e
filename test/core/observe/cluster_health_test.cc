#include "core/observe/cluster_health.h"

#include <gtest/gtest.h>

#include "test/core/observe/fleet_world.h"

namespace loadline {
namespace {

FleetWorld WorldOfNodes(int ready, int unready) {
  FleetWorld world;
  for (int i = 0; i < ready; ++i) world.other_nodes.push_back(ReadyNode());
  for (int i = 0; i < unready; ++i) world.other_nodes.push_back(FleetNode{.created_ms = 1});
  return world;
}

TEST(ClusterHealthTest, SomeNodesMayAlwaysBeUnready) {
  EXPECT_EQ(WorldOfNodes(0, 3).LookAtAll(0).unhealthy, "");
  EXPECT_EQ(WorldOfNodes(0, 4).LookAtAll(0).unhealthy, "ClusterUnhealthy: 4 of 4 nodes are not ready");
}

TEST(ClusterHealthTest, APartOfAllMayBeUnready) {
  EXPECT_EQ(WorldOfNodes(11, 9).LookAtAll(0).unhealthy, "");  // 45 %
  EXPECT_EQ(WorldOfNodes(10, 9).LookAtAll(0).unhealthy, "ClusterUnhealthy: 9 of 19 nodes are not ready");
}

TEST(ClusterHealthTest, NodesThatStartAndThoseOfGroupsCount) {
  FleetWorld world = WorldOfNodes(0, 3);
  world.group = GroupOf("g", {MachineWithNode("m", FleetNode{.created_ms = FleetWorld::At(0)})});
  EXPECT_EQ(world.LookAtAll(14).unhealthy, "");
  EXPECT_EQ(world.LookAtAll(15).unhealthy, "ClusterUnhealthy: 4 of 4 nodes are not ready");
}

TEST(ClusterHealthTest, NoNodeGoesAfterAGroupHasGrownWhoeverLetIt) {
  FleetWorld world;
  world.group.target = 2;
  EXPECT_FALSE(world.LookAtAll(0).cools_down);
  world.group.target = 3;
  EXPECT_TRUE(world.LookAtAll(1).cools_down);
  world.group.target = 2;
  EXPECT_TRUE(world.LookAtAll(10).cools_down);
  EXPECT_FALSE(world.LookAtAll(11).cools_down);
}

TEST(ClusterHealthTest, NoNodeGoesAfterOursHaveGrownFailedOrGone) {
  FleetWorld world;
  world.LookAtAll(0);
  EXPECT_TRUE(world.Grow(1, 1).cools_down);
  world = FleetWorld();
  FleetOutcomes outcomes;
  outcomes.tainting_failed = true;
  EXPECT_TRUE(world.LookAtAll(0, outcomes).cools_down);
  EXPECT_TRUE(world.LookAtAll(2).cools_down);
  EXPECT_FALSE(world.LookAtAll(3).cools_down);
  outcomes = {};
  outcomes.removals = {{"g", "m"}};
  EXPECT_FALSE(world.LookAtAll(4, outcomes).cools_down);  // by default it does not matter
  world.options.after_delete_ms = kFleetMinute;
  EXPECT_TRUE(world.LookAtAll(5, outcomes).cools_down);
  EXPECT_FALSE(world.LookAtAll(6).cools_down);
}

TEST(ClusterHealthTest, ADelayByGroupKeepsThatGroupOnly) {
  FleetWorld world;
  world.options.delays_by_group = true;
  world.options.after_delete_ms = 5 * kFleetMinute;
  EXPECT_EQ(world.Look(0).cools_down_until_ms, std::nullopt);
  EXPECT_FALSE(world.Grow(1, 1).cools_down);
  EXPECT_EQ(world.Look(1).cools_down_until_ms, FleetWorld::At(11));
  EXPECT_EQ(world.Look(10).cools_down_until_ms, FleetWorld::At(11));
  EXPECT_EQ(world.Look(11).cools_down_until_ms, std::nullopt);
  ++world.group.target;  // somebody else lets it grow
  EXPECT_EQ(world.Look(12).cools_down_until_ms, FleetWorld::At(22));
  FleetOutcomes outcomes;
  outcomes.removals = {{"g", "m"}};
  EXPECT_EQ(world.Look(20, outcomes).cools_down_until_ms, FleetWorld::At(25));
  outcomes.removals = {{"another", "m"}};
  EXPECT_EQ(world.Look(25, outcomes).cools_down_until_ms, std::nullopt);
  EXPECT_FALSE(world.LookAtAll(25).cools_down);
  outcomes = {};
  outcomes.tainting_failed = true;
  EXPECT_TRUE(world.LookAtAll(26, outcomes).cools_down) << "a failure keeps all";
}

TEST(ClusterHealthTest, ADelayByGroupThatLiesInTheFutureIsNone) {
  FleetWorld world;
  world.options.delays_by_group = true;
  world.Look(100);
  world.Grow(100, 1);
  EXPECT_EQ(world.Look(100).cools_down_until_ms, FleetWorld::At(110));
  EXPECT_EQ(world.Look(50).cools_down_until_ms, std::nullopt);
}

// Nothing was known of it for a time, and then it has the nodes that it always had.
TEST(ClusterHealthTest, AGroupThatCanBeReadAgainHasNotGrown) {
  FleetWorld world;
  world.group = GroupOf("g", {MachineWithNode("a")});
  world.Look(0);
  world.group.target = 0;
  world.group.readable = false;
  world.Look(20);
  world.group.target = 1;
  world.group.readable = true;
  EXPECT_FALSE(world.LookAtAll(21).cools_down);
}

}  // namespace
}  // namespace loadline
