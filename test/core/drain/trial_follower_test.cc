#include "core/drain/trial_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/drain/candidate_rounds.h"
#include "core/drain/keep_formers.h"
#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// b moves to c and d to a, where they fill up what is left.
class TrialFollowerTest : public ::testing::Test {
 protected:
  TrialFollowerTest() {
    PlanCandidates({}, /*anew=*/false, &fixture_.call(), &fixture_.follower(), &fixture_.memory());
    EXPECT_THAT(fixture_.Planned(), ElementsAre("b", "d"));
  }

  // Returns which nodes of the plan still have their moves applied, after the cluster has changed.
  std::vector<bool> StandAfterChange() {
    model_.Update(cluster_);
    fixture_.Begin();
    std::vector<bool> stand;
    for (const FormerEntry& entry : fixture_.formers()) stand.push_back(entry.intact.has_value());
    return stand;
  }

  DrainCluster cluster_{
      .nodes = {NodeWith("a", {ReplicaPod("p", 800)}), NodeWith("b", {ReplicaPod("q", 100)}),
                NodeWith("c", {ReplicaPod("r", 900)}), NodeWith("d", {ReplicaPod("s", 200)})}};
  DrainModel model_{cluster_};
  CallFixture fixture_{&model_};
};

TEST_F(TrialFollowerTest, ThePlanStandsWhereNothingChanged) {
  EXPECT_THAT(StandAfterChange(), ElementsAre(true, true));
  EXPECT_EQ(fixture_.follower().trial().received(fixture_.judged(2).node), 1);
}

TEST_F(TrialFollowerTest, OnlyWhatWasTouchedIsPlacedAgain) {
  cluster_.nodes[2].pods.push_back(ReplicaPod("new", 1));  // c takes the pod of b
  EXPECT_THAT(StandAfterChange(), ElementsAre(false, true));
  EXPECT_EQ(fixture_.follower().trial().received(fixture_.judged(2).node), 0);
  EXPECT_EQ(fixture_.formers()[0].former.node, "b");
  EXPECT_THAT(fixture_.formers()[0].former.hints, SizeIs(1));
}

TEST_F(TrialFollowerTest, APodThatAsksForSomethingElseMakesAllBePlacedAgain) {
  cluster_.nodes[1].pods = {ReplicaPod("q", 50)};
  EXPECT_THAT(StandAfterChange(), ElementsAre(false, false));
}

// Rooms for pods that wait are numbered anew in each loop: one name means another pod then.
TEST_F(TrialFollowerTest, OnlyNodesWithAnotherPlaceholderOfAnOldNameArePlacedAgain) {
  cluster_.nodes.push_back(NodeWith("e", {ReplicaPod("t", 950)}));
  cluster_.placeholders = {{"room (2)", "b", ReplicaPod("", 40)}};
  model_.Update(cluster_);
  fixture_.Begin();
  const std::vector<FormerNode> others =
      KeepFormers(std::move(fixture_.formers()), /*same_rules=*/false, &fixture_.call(), &fixture_.follower(),
                  &fixture_.memory());
  PlanCandidates(others, /*anew=*/false, &fixture_.call(), &fixture_.follower(), &fixture_.memory());
  ASSERT_THAT(fixture_.Planned(), ElementsAre("d", "b"));
  cluster_.placeholders[0].pod = ReplicaPod("", 30);
  EXPECT_THAT(StandAfterChange(), ElementsAre(true, false));
}

TEST_F(TrialFollowerTest, ATrialThatHoldsSomethingElseIsBuiltAnew) {
  fixture_.follower().Spoil();
  EXPECT_THAT(StandAfterChange(), ElementsAre(false, false));
  EXPECT_EQ(fixture_.follower().trial().received(fixture_.judged(2).node), 0);
}

TEST_F(TrialFollowerTest, PodsThatLookAtEachOtherMakeAllBePlacedAgain) {
  FitPod lonely = ReplicaPod("new", 1);
  lonely.rules.anti_affinity = {Term(Select("app", "app"), kHostnameLabel)};
  cluster_.nodes.push_back(NodeWith("e", {lonely}));
  EXPECT_THAT(StandAfterChange(), ElementsAre(false, false));
}

TEST_F(TrialFollowerTest, MovesThatAreWithdrawnLeaveTheTrialAsItWas) {
  fixture_.follower().Withdraw(fixture_.call(), fixture_.memory().planned());
  for (int32_t slot = 0; slot < 4; ++slot) {
    EXPECT_EQ(fixture_.follower().trial().received(fixture_.judged(slot).node), 0) << slot;
    EXPECT_THAT(fixture_.follower().trial().snapshot().pods(fixture_.judged(slot).node), SizeIs(1));
  }
}

}  // namespace
}  // namespace loadline
