#include "core/drain/candidate_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/drain/node_reason.h"
#include "test/core/drain/call_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// d is empty, the others hold 500m, 100m and 100m.
DrainCluster FourNodes() {
  return {.nodes = {NodeWith("a", {ReplicaPod("p", 500)}), NodeWith("b", {ReplicaPod("q", 100)}),
                    NodeWith("c", {ReplicaPod("r", 100)}), NodeWith("d", {})}};
}

class CandidateRoundsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Order(OrderBy by, absl::string_view resume_at = "",
                                 std::vector<FormerNode> displaced = {}) {
    CallFixture fixture(&model_);
    const std::vector<Candidate> candidates =
        Candidates(fixture.call(), fixture.follower().trial().snapshot(), displaced);
    std::vector<std::string> names;
    for (const Candidate& candidate : Ordered(fixture.call(), candidates, by, resume_at)) {
      names.push_back(model_.name(candidate.slot));
    }
    return names;
  }

  DrainCluster cluster_ = FourNodes();
  DrainModel model_{cluster_};
};

TEST_F(CandidateRoundsTest, EmptyNodesComeFirstThenThoseOfTheLowestLoad) {
  EXPECT_THAT(Order(OrderBy::kLoad), ElementsAre("d", "b", "c", "a"));
}

TEST_F(CandidateRoundsTest, NodesOfTheFormerPlanComeBeforeAllOthers) {
  EXPECT_THAT(Order(OrderBy::kLoad, "", {{"c", "", 0, {}}, {"a", "", 0, {}}}),
              ElementsAre("c", "a", "d", "b"));
}

TEST_F(CandidateRoundsTest, NodesThatWereNotReachedComeBeforeThoseThatWere) {
  EXPECT_THAT(Order(OrderBy::kLoad, "c"), ElementsAre("c", "a", "d", "b"));
  EXPECT_THAT(Order(OrderBy::kLoad, "gone"), ElementsAre("d", "b", "c", "a"));
}

TEST_F(CandidateRoundsTest, ByValueTheDearestComeFirst) {
  cluster_.groups = {{.name = "cheap", .target = 100, .node_price = 1.0},
                     {.name = "dear", .target = 100, .node_price = 2.0}};
  cluster_.nodes[2].group = GroupIndex{1};
  model_.Update(cluster_);
  EXPECT_THAT(Order(OrderBy::kValue), ElementsAre("d", "c", "b", "a")) << "behind empty ones";
  EXPECT_THAT(Order(OrderBy::kSmallest), ElementsAre("d", "b", "a", "c"));
}

TEST_F(CandidateRoundsTest, OfEqualValueTheLeastDeletionCostComesFirst) {
  for (const auto& [node, cost] : {std::pair<size_t, int32_t>{1, 7}, {0, -1}}) {  // b and a
    cluster_.nodes[node].pods[0].name += "-again";  // the model takes over what differs in name
    cluster_.nodes[node].pods[0].traits.deletion_cost = cost;
  }
  model_.Update(cluster_);
  EXPECT_THAT(Order(OrderBy::kLoad), ElementsAre("d", "a", "c", "b"));
  cluster_.groups = {{.name = "cheap", .target = 100, .node_price = 1.0},
                     {.name = "dear", .target = 100, .node_price = 2.0}};
  cluster_.nodes[1].group = GroupIndex{1};
  model_.Update(cluster_);
  EXPECT_THAT(Order(OrderBy::kValue), ElementsAre("d", "b", "a", "c")) << "the value comes before it";
}

TEST_F(CandidateRoundsTest, PlacesAreLookedForOnNodesThatStayAndThenFromTheLastCandidateBack) {
  cluster_.nodes[3].group.reset();
  model_.Update(cluster_);
  CallFixture fixture(&model_);
  const std::vector<Candidate> candidates =
      Candidates(fixture.call(), fixture.follower().trial().snapshot(), {});
  const std::vector<Candidate> order = Ordered(fixture.call(), candidates, OrderBy::kLoad, "");
  std::vector<std::string> names;
  for (const NodeIndex node : Destinations(fixture.call(), order)) {
    names.push_back(fixture.follower().trial().snapshot().name(node));
  }
  EXPECT_THAT(names, ElementsAre("d", "a", "c", "b"));
}

// d is removed, b and c move to a, which has taken pods then.
TEST_F(CandidateRoundsTest, ANodeThatHasTakenPodsIsNoCandidateAnyMore) {
  CallFixture fixture(&model_);
  EXPECT_EQ(PlanCandidates({}, /*anew=*/false, &fixture.call(), &fixture.follower(), &fixture.memory()), "");
  EXPECT_THAT(fixture.Planned(), ElementsAre("d", "b", "c"));
  EXPECT_EQ(fixture.judged(0).reason, NodeReason::kAlreadyADestination);
  EXPECT_EQ(fixture.call().evaluated, 3);
}

TEST_F(CandidateRoundsTest, TheFirstNodeThatWasNotEvaluatedIsWhereTheNextCallResumes) {
  CallFixture fixture(&model_, {}, WorkBudget(1));
  fixture.options().min_evaluated_nodes = 1;
  EXPECT_EQ(PlanCandidates({}, /*anew=*/true, &fixture.call(), &fixture.follower(), &fixture.memory()), "b");
  EXPECT_THAT(fixture.Planned(), ElementsAre("d"));
  EXPECT_EQ(fixture.judged(1).reason, NodeReason::kNotEvaluated);
}

}  // namespace
}  // namespace loadline
