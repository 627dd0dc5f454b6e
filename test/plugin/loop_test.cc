// Autoscaler.PlanLoop, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kNow = 1'800'000'000;

k8s::v1::Node TwoCores(const std::string& name) {
  return MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}});
}

k8s::v1::Pod OneCore() {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}});
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_name("web");
  owner->set_controller(true);
  return pod;
}

// Nodes a and b of two cores, in the group "workers" of at most four; one pod of one core on a.
class LoopHandlerTest : public ::testing::Test {
 protected:
  LoopHandlerTest() {
    request_.set_now_s(kNow);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("workers");
    group->mutable_growth()->set_template_node(TwoCores("template").SerializeAsString());
    group->mutable_growth()->set_current_nodes(2);
    group->mutable_growth()->set_max_nodes(4);
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    for (const int32_t slot : {0, 1}) group->mutable_scale_down()->add_slots(slot);
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    request_.mutable_drain()->set_scale_down_unneeded_time_s(0);
    ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
    builder.Shape(0, OneCore()).Node(0, TwoCores("a"), {{0, "web-0", "u0"}}).Node(1, TwoCores("b"));
    EXPECT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  }

  void Pending(int32_t count) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(OneCore().SerializeAsString());
    pods->set_count(count);
  }

  absl::StatusOr<v1::PlanLoopResponse> Ask() {
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes("/loadline.v1.Autoscaler/PlanLoop", request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::PlanLoopResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  std::string Refusal() { return std::string(Ask().status().message()); }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

TEST_F(LoopHandlerTest, WithoutPodsThatWaitTheEmptyNodeGoes) {
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(0));
  EXPECT_EQ(plan.no_scale_down(), "");
  ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
  EXPECT_EQ(plan.scale_down().remove(0).node(), "b");
  EXPECT_EQ(plan.scale_down().usd_per_hour_saved(), 0.5);
  // A tenth of one core, and of 1 GiB, which a has beside its pod.
  ASSERT_THAT(plan.slack().shapes(), SizeIs(1));
  EXPECT_EQ(plan.slack().shapes(0).size().milli_cpu(), 100);
  EXPECT_EQ(plan.slack().shapes(0).placed(), 1);
}

TEST_F(LoopHandlerTest, PodsThatWaitTakeRoomThenNodes) {
  Pending(6);  // a takes one, b two, and three need two nodes: four in all
  const v1::PlanLoopResponse plan = Plan();
  int32_t there = 0;
  for (const v1::ExistingPlacement& placement : plan.existing()) there += placement.pods().count();
  EXPECT_EQ(there, 3);
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).node_group(), "workers");
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
  EXPECT_EQ(plan.growth(0).nodes_for_slack(), 0) << "the second one has a core left";
  EXPECT_EQ(plan.growth(0).usd_per_hour(), 1);
  EXPECT_EQ(plan.no_scale_down(), "groups grow");
  EXPECT_FALSE(plan.has_scale_down());
}

TEST_F(LoopHandlerTest, WhatTheMaximumForbidsIsLeftOver) {
  Pending(9);  // 3 + 4 find a place
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.scale_up().unplaced(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().unplaced(0).count(), 2);
}

TEST_F(LoopHandlerTest, NodesOnTheirWayAreCountedOnce) {
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(4);
  Pending(6);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(0));
  int32_t upcoming = 0;
  for (const v1::UpcomingPlacement& placement : plan.upcoming()) upcoming += placement.pods().count();
  EXPECT_EQ(upcoming, 3);
  EXPECT_EQ(plan.no_scale_down(), "pods wait for nodes on their way");
}

TEST_F(LoopHandlerTest, OnlyWhatIsToBeDecided) {
  request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  Pending(6);
  v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(1));
  EXPECT_FALSE(plan.has_slack());
  EXPECT_EQ(plan.no_scale_down(), "decided elsewhere");
  request_.set_decisions(0, v1::PlanLoopRequest::SLACK);
  plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(0));
  EXPECT_TRUE(plan.has_slack());
  EXPECT_EQ(plan.no_scale_down(), "decided elsewhere");
}

TEST_F(LoopHandlerTest, AStateThatIsHandedBackLeadsToTheSameBytes) {
  const v1::PlanLoopResponse first = Plan();
  *request_.mutable_state() = first.state();
  const std::string again = Plan().SerializeAsString();
  EXPECT_EQ(Plan().SerializeAsString(), again);
}

TEST_F(LoopHandlerTest, AClusterOfItsOwnIsPlannedLikeAView) {
  const v1::PlanLoopResponse of_view = Plan();
  v1::Changes own = ChangesBuilder::FullList(1, 1)
                        .Shape(0, OneCore())
                        .Node(0, TwoCores("a"), {{0, "web-0", "u0"}})
                        .Node(1, TwoCores("b"))
                        .changes();
  own.clear_view();
  own.clear_full_list();
  own.clear_epoch();
  own.clear_revision();
  *request_.mutable_own() = own;
  EXPECT_EQ(Plan().SerializeAsString(), of_view.SerializeAsString());
}

TEST_F(LoopHandlerTest, BadInputNamesTheField) {
  const v1::PlanLoopRequest good = request_;
  request_.mutable_groups(0)->mutable_scale_down()->set_target(3);
  EXPECT_THAT(Refusal(), HasSubstr("groups[0]: scale_down: states the name, target"));
  request_ = good;
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(30'000);
  EXPECT_THAT(Refusal(), HasSubstr("groups[0]: current_nodes: 30000 are 29998 more than there are"));
  request_ = good;
  request_.add_decisions(v1::PlanLoopRequest::DECISION_UNSPECIFIED);
  EXPECT_THAT(Refusal(), HasSubstr("decisions[0]: 0 is not a decision"));
  request_ = good;
  request_.mutable_slack()->set_extra_capacity_min_rate(-1);
  EXPECT_THAT(Refusal(), HasSubstr("slack: extra_capacity_min_rate"));
  request_ = good;
  request_.mutable_drain()->set_scale_down_utilization_threshold(2);
  EXPECT_THAT(Refusal(), HasSubstr("drain: scale_down_utilization_threshold"));
  request_ = good;
  *request_.add_groups() = good.groups(0);
  EXPECT_THAT(Refusal(), HasSubstr("groups[1]"));
  request_ = good;
  request_.clear_changes();
  EXPECT_THAT(Refusal(), HasSubstr("has neither changes nor a cluster of its own"));
  request_ = good;
  EXPECT_TRUE(Ask().ok()) << "a question that was refused leaves nothing behind";
}

}  // namespace
}  // namespace loadline
