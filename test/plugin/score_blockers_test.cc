// Scores of pods that block drains, bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "loadline/k8s/v1/workloads.pb.h"
#include "test/plugin/messages.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

constexpr char kNotSafe[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";

// A pod of a ReplicaSet with the label app=web, which may use one core.
k8s::v1::Pod OwnedPod() {
  k8s::v1::Pod pod = MakePod({{"cpu", "1"}});
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_controller(true);
  k8s::v1::StringEntry* const label = pod.mutable_metadata()->add_labels();
  label->set_key("app");
  label->set_value("web");
  return pod;
}

k8s::v1::Pod NotSafeToEvict() {
  k8s::v1::Pod pod = OwnedPod();
  Annotate(kNotSafe, "false", pod.mutable_metadata());
  return pod;
}

// Nodes of 10 cores: one with a pod that may move, one with a pod that may not.
class ScoreBlockersTest : public ::testing::Test {
 protected:
  ScoreBlockersTest() {
    policy_.add_resources()->set_resource("cpu");
    policy_.mutable_resources(0)->set_weight(1);
    policy_.set_blockers_together(20);
    EXPECT_TRUE(engine_
                    .Sync(ChangesBuilder::FullList(1, 1)
                              .Shape(1, OwnedPod())
                              .Shape(2, NotSafeToEvict())
                              .Node(1, MakeNode("free", {{"cpu", "10"}}), {{1, "a", ""}})
                              .Node(2, MakeNode("kept", {{"cpu", "10"}}), {{2, "b", ""}}))
                    .ok());
  }

  // Raw scores of "free" and "kept" for a pod, in whole points.
  std::vector<int64_t> RawOf(const k8s::v1::Pod& pod) {
    v1::ScoreRequest request = ScoreOf(changes_, pod, policy_);
    const absl::StatusOr<v1::ExplainResponse> response = engine_.Explain(ExplainOf(request));
    EXPECT_TRUE(response.ok()) << response.status();
    std::vector<int64_t> raw;
    if (!response.ok()) return raw;
    blocks_ = response->pod_blocks_drains();
    lost_.clear();
    for (const v1::NodeExplanation& node : response->nodes()) {
      raw.push_back(std::lround(node.raw_score()));
      lost_.push_back(static_cast<int64_t>(node.lost_apart()));
    }
    return raw;
  }

  // A budget that wants all pods with the label app=web.
  void AddBudgetOfAll() {
    k8s::v1::PodDisruptionBudget budget;
    budget.mutable_metadata()->set_namespace_("default");
    budget.mutable_metadata()->set_name("web");
    k8s::v1::StringEntry* const label = budget.mutable_spec()->mutable_selector()->add_match_labels();
    label->set_key("app");
    label->set_value("web");
    budget.mutable_status()->set_desired_healthy(2);
    budget.mutable_status()->set_expected_pods(2);
    v1::SyncRequest request = ChangesBuilder::Delta(1, 1, 2).Sync();
    v1::ClusterObject* const object = request.mutable_changes()->add_objects();
    object->set_kind(v1::POD_DISRUPTION_BUDGET);
    object->set_object(budget.SerializeAsString());
    const absl::StatusOr<std::string> synced = engine_.CallBytes(kSyncMethod, request.SerializeAsString());
    EXPECT_TRUE(synced.ok()) << synced.status();
    changes_ = ChangesBuilder::At(1, 2).changes();
  }

  TypedEngine engine_;
  v1::ScorePolicy policy_ = Preset(v1::ScorePolicy::STRICT);
  v1::Changes changes_ = ChangesBuilder::At(1, 1).changes();
  bool blocks_ = false;
  std::vector<int64_t> lost_;
};

TEST_F(ScoreBlockersTest, TheNodeWithoutOneLosesPoints) {
  EXPECT_THAT(RawOf(NotSafeToEvict()), ElementsAre(60, 80));
  EXPECT_TRUE(blocks_);
  EXPECT_THAT(lost_, ElementsAre(20, 0));
  EXPECT_THAT(RawOf(OwnedPod()), ElementsAre(80, 80));
  EXPECT_FALSE(blocks_);
  EXPECT_THAT(lost_, ElementsAre(0, 0));
  policy_.set_blockers_together(0);
  EXPECT_THAT(RawOf(NotSafeToEvict()), ElementsAre(80, 80));
  EXPECT_FALSE(blocks_);
}

// The pods of the budget are found by their labels, those on nodes and the incoming one.
TEST_F(ScoreBlockersTest, ABudgetThatNeverAllowsAnEvictionCountsAtOnce) {
  AddBudgetOfAll();
  EXPECT_THAT(RawOf(OwnedPod()), ElementsAre(80, 80));
  EXPECT_TRUE(blocks_);
  k8s::v1::Pod bare = MakePod({{"cpu", "1"}});
  EXPECT_THAT(RawOf(bare), ElementsAre(80, 80));
  EXPECT_TRUE(blocks_);
}

TEST_F(ScoreBlockersTest, APolicyOutOfItsRangeIsRefused) {
  policy_.set_blockers_together(51);
  EXPECT_EQ(engine_.Score(ScoreOf(changes_, OwnedPod(), policy_)).status().message(),
            "policy: blockers_together: 51 is not in [0, 50]");
}

}  // namespace
}  // namespace loadline
