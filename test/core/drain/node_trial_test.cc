#include "core/drain/node_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/drain/node_reason.h"
#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FitPod SlackPod(const std::string& name) {
  FitPod pod = ReplicaPod(name, 100);
  pod.traits.placeholder = true;
  return pod;
}

FitPod Finished(const std::string& name) {
  FitPod pod = ReplicaPod(name, 100);
  pod.traits.phase = PodPhase::kSucceeded;
  return pod;
}

class NodeTrialTest : public ::testing::Test {
 protected:
  // Returns the outcome for the pods of the first node.
  std::optional<NodeTrial> Ask(std::vector<FitPod> pods) {
    cluster_.nodes = {NodeWith("a", std::move(pods)), NodeWith("b", {})};
    model_.emplace(cluster_);
    fixture_.emplace(&*model_);
    return AskPods(Slot{0}, nullptr, &fixture_->call(), &fixture_->follower());
  }

  DrainCluster cluster_;
  std::optional<DrainModel> model_;
  std::optional<CallFixture> fixture_;
};

TEST_F(NodeTrialTest, ANodeWithAPodThatMovesIsNotEmpty) {
  const std::optional<NodeTrial> trial = Ask({ReplicaPod("p", 100)});
  ASSERT_TRUE(trial.has_value());
  EXPECT_FALSE(trial->planned.empty);
  EXPECT_THAT(trial->planned.sources, ElementsAre(PodRef::Pod(0)));
}

TEST_F(NodeTrialTest, ANodeWhosePodsNeedNoPlaceOrStandForRoomIsEmpty) {
  EXPECT_TRUE(Ask({})->planned.empty);
  std::optional<NodeTrial> trial = Ask({Finished("done")});
  EXPECT_TRUE(trial->planned.empty);
  EXPECT_THAT(trial->pods, IsEmpty());
  trial = Ask({SlackPod("s")});
  EXPECT_TRUE(trial->planned.empty);
  EXPECT_THAT(trial->pods, SizeIs(1)) << "it needs a place all the same";
  EXPECT_FALSE(Ask({SlackPod("s"), ReplicaPod("p", 100)})->planned.empty);
  EXPECT_FALSE(Ask({ReplicaPod("p", 100), SlackPod("s")})->planned.empty);
}

TEST_F(NodeTrialTest, PlaceholdersOnANodeMoveAndLeaveItEmpty) {
  cluster_.placeholders = {{"slack-0", "a", ReplicaPod("slack-0", 100)},
                           {"slack-1", "b", ReplicaPod("slack-1", 100)}};
  const std::optional<NodeTrial> trial = Ask({});
  EXPECT_TRUE(trial->planned.empty);
  EXPECT_THAT(trial->planned.sources, ElementsAre(PodRef::Placeholder(0)));
}

TEST_F(NodeTrialTest, APodThatMayNotMoveIsNamed) {
  FitPod alone = ReplicaPod("q", 100);
  alone.traits.owner.reset();
  EXPECT_FALSE(Ask({ReplicaPod("p", 100), alone}).has_value());
  EXPECT_EQ(fixture_->judged(0).reason, NodeReason::kBlockedByPod);
  EXPECT_EQ(fixture_->judged(0).pod, PodRef::Pod(1));
  EXPECT_EQ(fixture_->judged(0).pod_reason, PodReason::kNotReplicated);
}

// Two pods of one budget: each may move, and both together only one after the other.
TEST_F(NodeTrialTest, MoreOfABudgetThanItHasLeftIsRisky) {
  DisruptionBudget budget;
  budget.selector = Select("app", "app");
  budget.expected_pods = 1;
  for (const int32_t allowed : {0, 1, 2}) {
    budget.disruptions_allowed = allowed;
    cluster_.budgets = {{.name = "budget", .budget = budget}};
    const std::optional<NodeTrial> trial = Ask({ReplicaPod("p", 100), ReplicaPod("q", 100)});
    EXPECT_EQ(trial.has_value(), allowed > 0);
    if (!trial.has_value()) {
      EXPECT_EQ(fixture_->judged(0).pod_reason, PodReason::kNotEnoughPdb);
      EXPECT_EQ(fixture_->judged(0).budget, BudgetRefusal::kExhausted);
      continue;
    }
    EXPECT_EQ(trial->planned.risky, allowed == 1);
  }
}

}  // namespace
}  // namespace loadline
