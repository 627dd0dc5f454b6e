#include "core/drain/verify.h"

#include <gtest/gtest.h>

#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

// Node a is being deleted, and its pod needs 300m on b.
DrainCluster OneGoes(int64_t free_on_b) {
  return {
      .nodes = {NodeWith("a", {ReplicaPod("p", 300)}), NodeWith("b", {ReplicaPod("q", 1'000 - free_on_b)})}};
}

DrainState ABeingDeleted() {
  DrainState state;
  state.deleting = {{.node = "a", .since_s = kDrainNow - 60, .drain = true}};
  return state;
}

TEST(FindBrakeTest, TheFirstThatHoldsIsTold) {
  DrainModel model(OneGoes(300));
  CallFixture fixture(&model);
  DrainState state;
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).brake, DrainBrake::kNone);
  state.nodes = 4;  // and now there are 2
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).brake, DrainBrake::kNodesVanished);
  state.pods = {{.owner = 7, .pods = 10}};
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).brake, DrainBrake::kPodsVanished);
  state.at_s = kDrainNow + 1;
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).brake, DrainBrake::kClockWentBack);
  model.problem().unhealthy = "most nodes are not ready";
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).text, "most nodes are not ready");
  model.problem().doubt = "the view is old";
  EXPECT_EQ(FindBrake(fixture.call(), state, {}).brake, DrainBrake::kDoubt);
}

TEST(PlacePodsUnderWayTest, PodsOfANodeThatIsBeingDeletedTakeTheirPlacesFirst) {
  DrainModel model(OneGoes(300));
  CallFixture fixture(&model, ABeingDeleted());
  EXPECT_EQ(PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower()).brake,
            DrainBrake::kNone);
  EXPECT_EQ(fixture.follower().trial().received(fixture.judged(1).node), 1);
}

TEST(PlacePodsUnderWayTest, APodThatFitsNowhereIsNamed) {
  DrainModel model(OneGoes(299));
  CallFixture fixture(&model, ABeingDeleted());
  const BrakeFound found = PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower());
  EXPECT_EQ(found.brake, DrainBrake::kNodesBeingDeleted);
  EXPECT_EQ(found.text, "node a is being deleted, and its pod default/p fits nowhere else");
}

TEST(PlacePodsUnderWayTest, WhereTheWorkEndsNothingIsVerified) {
  DrainModel model(OneGoes(300));
  CallFixture fixture(&model, ABeingDeleted(), WorkBudget(0));
  EXPECT_EQ(PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower()).brake,
            DrainBrake::kNotVerified);
}

TEST(PlacePodsUnderWayTest, AReplacementIsWaitedForAsLongAsItsOwnerLacksIt) {
  DrainModel model(OneGoes(100));
  DrainState state;
  RecentEviction& eviction = state.recent_evictions.emplace_back();
  eviction.shape = model.cluster().Shape(ReplicaPod("gone", 800));
  eviction.names = model.cluster().names();
  eviction.name = "gone";
  eviction.node = "c";
  eviction.at_s = kDrainNow;
  CallFixture fixture(&model, std::move(state));
  const BrakeFound found = PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower());
  EXPECT_EQ(found.brake, DrainBrake::kRecentEvictions);
  EXPECT_EQ(found.text, "the replacement of pod default/gone, which was evicted from node c, fits nowhere");
  Workload owner;
  owner.uid = "uid-app";
  owner.target_replicas = owner.current_replicas = 2;
  ClusterObject object;
  object.key = {ObjectKind::kReplicaSet, "default", "app"};
  object.content = owner;
  model.cluster().state().objects().Set(std::move(object));
  EXPECT_EQ(PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower()).brake,
            DrainBrake::kNone)
      << "it has all that it wants";
}

// Its owner has created the replacement, which waits for the scheduler: the room on b is kept as long as
// nobody sees where it is placed.
TEST(PlacePodsUnderWayTest, AReplacementThatIsCreatedAndHasNoNodeIsWaitedForWhileTheEvictedPodEnds) {
  DrainCluster cluster = OneGoes(300);
  cluster.nodes[0].pods[0].traits.deleted_s = kDrainNow;
  DrainModel model(cluster);
  Workload owner;
  owner.uid = "uid-app";
  owner.target_replicas = owner.current_replicas = 2;
  ClusterObject object;
  object.key = {ObjectKind::kReplicaSet, "default", "app"};
  object.content = owner;
  model.cluster().state().objects().Set(std::move(object));
  DrainState state = ABeingDeleted();
  RecentEviction& eviction = state.recent_evictions.emplace_back();
  eviction.shape = model.cluster().Shape(ReplicaPod("p", 300));
  eviction.names = model.cluster().names();
  eviction.name = "p";
  eviction.node = "a";
  eviction.at_s = kDrainNow;
  {
    CallFixture fixture(&model, state);
    EXPECT_EQ(PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower()).brake,
              DrainBrake::kNone);
    EXPECT_EQ(fixture.follower().trial().received(fixture.judged(1).node), 1);
  }
  cluster.nodes[1].pods.push_back(ReplicaPod("p2", 300));  // there it is
  model.Update(cluster);
  CallFixture fixture(&model, state);
  EXPECT_EQ(PlacePodsUnderWay(fixture.memory().state(), &fixture.call(), &fixture.follower()).brake,
            DrainBrake::kNone);
  EXPECT_EQ(fixture.follower().trial().received(fixture.judged(1).node), 0);
}

}  // namespace
}  // namespace loadline
