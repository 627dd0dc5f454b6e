// Autoscaler.PlanLoop with what the cloud shows, from bytes to bytes.
#include "plugin/convert/loop_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/fleet_options.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kLoopFleetNowS = 1'800'000'000;

// Nodes a and b of two cores in group "workers", whose cloud also lists a machine c that has no node yet.
class LoopFleetTest : public ::testing::Test {
 protected:
  LoopFleetTest() {
    At(0);
    v1::LoopFleet* const fleet = request_.mutable_fleet();
    fleet->set_acts(true);
    SetFleetDefaults(fleet->mutable_options());
    fleet->mutable_options()->set_ok_unready_nodes(3);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("workers");
    group->mutable_growth()->set_template_node(Cores("template").SerializeAsString());
    group->mutable_growth()->set_max_nodes(4);
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    group->mutable_cloud()->set_target(3);
    for (const int32_t slot : {0, 1}) {
      v1::CloudMachine* const machine = group->mutable_cloud()->add_machines();
      machine->set_id(slot == 0 ? "a" : "b");
      machine->set_state(v1::CloudMachine::RUNNING);
      machine->set_slot(slot);
    }
    group->mutable_cloud()->add_machines()->set_id("c");
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    request_.mutable_drain()->set_scale_down_unneeded_time_s(600);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_DOWN);
    ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
    builder.Shape(0, Pod()).Node(0, Cores("a"), {{0, "web-0", "u0"}}).Node(1, Cores("b"));
    EXPECT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  }

  static k8s::v1::Node Cores(const std::string& name) {
    k8s::v1::Node node = MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}});
    node.mutable_metadata()->set_uid("uid-" + name);
    return node;
  }
  static k8s::v1::Pod Pod() {
    k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}});
    k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
    owner->set_kind("ReplicaSet");
    owner->set_name("web");
    owner->set_controller(true);
    return pod;
  }

  void At(int64_t seconds) {
    request_.set_now_s(kLoopFleetNowS + seconds);
    request_.mutable_fleet()->set_now_milliseconds((kLoopFleetNowS + seconds) * 1000);
  }
  v1::CloudGroup* cloud() { return request_.mutable_groups(0)->mutable_cloud(); }

  void Pending(int32_t count) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(Pod().SerializeAsString());
    pods->set_count(count);
  }

  // Continues with the state of the answer.
  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {};
    request_.mutable_fleet()->set_state(response->fleet().state());
    return *response;
  }

  uint64_t Fingerprint() {
    const absl::StatusOr<v1::DescribeResponse> described = engine_.Describe({});
    EXPECT_TRUE(described.ok()) << described.status();
    return described.ok() && described->views_size() > 0 ? described->views(0).fingerprint() : 0;
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

TEST_F(LoopFleetTest, MachinesWithoutNodesAreOnTheirWay) {
  Pending(6);  // a takes one, b two, c two, and one needs a node more
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.fleet().groups(), SizeIs(1));
  EXPECT_EQ(plan.fleet().groups(0).ready(), 2);
  EXPECT_EQ(plan.fleet().groups(0).coming(), 1);
  EXPECT_EQ(plan.fleet().groups(0).room(), 1);
  EXPECT_EQ(plan.fleet().nodes(), 2);
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 1);
  ASSERT_THAT(plan.fleet().actions(), SizeIs(1));
  EXPECT_EQ(plan.fleet().actions(0).grow().node_group(), "workers");
  EXPECT_EQ(plan.fleet().actions(0).grow().nodes(), 1);
  EXPECT_EQ(plan.fleet().actions(0).grow().expected_target(), 3);
  EXPECT_TRUE(plan.fleet().timers_run());
}

// Two machines of two groups name one node: no group waits for a node that never arrives, and the loop
// continues.
TEST_F(LoopFleetTest, MachinesThatNameOneNode) {
  v1::LoopGroup* const other = request_.add_groups();
  *other = request_.groups(0);
  other->mutable_growth()->set_node_group("others");
  other->mutable_growth()->set_node_usd_per_hour(0.4);
  other->mutable_cloud()->set_target(1);
  other->mutable_cloud()->clear_machines();
  v1::CloudMachine* const again = other->mutable_cloud()->add_machines();
  again->set_id("a-again");
  again->set_slot(0);
  Pending(6);  // a takes one, b two, c two, and one needs a node more
  for (const int64_t seconds : {0, 60, 3'600, 86'400}) {
    At(seconds);
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.fleet().groups(), SizeIs(2));
    EXPECT_EQ(plan.fleet().groups(1).coming(), 0);
    EXPECT_EQ(plan.fleet().groups(1).ready(), 0);
    EXPECT_EQ(plan.fleet().groups(1).room(), 3);
    EXPECT_EQ(plan.fleet().ready_nodes(), 2);
    for (const v1::UpcomingPlacement& upcoming : plan.upcoming()) EXPECT_EQ(upcoming.node_group(), "workers");
    EXPECT_THAT(
        plan.fleet().warnings(),
        Contains("machine a-again of node group others is ignored: its node a is that of machine a of "
                 "node group workers"));
    if (seconds > 60) continue;  // then the machine c is late
    ASSERT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.growth(0).nodes_for_pods(), 1);
  }
}

TEST_F(LoopFleetTest, AFailureToGrowBacksOffInTheNextLoop) {
  Pending(6);
  const int64_t id = Plan().fleet().actions(0).id();
  v1::ActionOutcome* const outcome = request_.mutable_fleet()->add_outcomes();
  outcome->set_id(id);
  outcome->set_result(v1::ActionOutcome::FAILED);
  outcome->set_error("out of quota");
  At(10);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(0));
  EXPECT_EQ(plan.fleet().groups(0).hold(), v1::GroupSight::BACKS_OFF);
  EXPECT_EQ(plan.fleet().why_no_growth(), "1 backs off after failed scale-up");
  EXPECT_EQ(plan.fleet().groups(0).back_off().text(), "out of quota");
  EXPECT_EQ(plan.fleet().groups(0).back_off().until_milliseconds(), (kLoopFleetNowS + 300) * 1000);
  ASSERT_THAT(plan.fleet().failures(), SizeIs(1));
}

// Codes with ids of requests in them must not make an answer of more than 4 MiB, which no loop would get.
TEST_F(LoopFleetTest, AFaultOfEachMachineIsNoReasonToRefuseALoop) {
  request_.mutable_groups(0)->mutable_growth()->set_node_group(std::string(100, 'g'));
  request_.mutable_groups(0)->mutable_growth()->set_max_nodes(30'000);
  cloud()->set_target(15'002);
  for (int i = 0; i < 15'000; ++i) {
    v1::CloudMachine* const machine = cloud()->add_machines();
    machine->set_id(absl::StrCat("m", i));
    machine->set_state(v1::CloudMachine::CREATING);
    machine->mutable_fault()->set_code(absl::StrCat(std::string(120, 'c'), i));
  }
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.fleet().groups(), SizeIs(1));
  EXPECT_EQ(plan.fleet().groups(0).failed(), 15'000);
  int64_t failed = 0;
  for (const v1::FailedCreations& creations : plan.fleet().failed_creations()) failed += creations.machines();
  EXPECT_EQ(failed, 15'000);
}

// A node that has not started takes no pods, in this plan; the view stays as the client has sent it.
TEST_F(LoopFleetTest, ANodeThatStartsTakesNoPods) {
  k8s::v1::Node young = Cores("b");
  young.mutable_metadata()->mutable_creation_timestamp()->set_seconds(kLoopFleetNowS - 60);
  k8s::v1::Taint* const taint = young.mutable_spec()->add_taints();
  taint->set_key("node.cloudprovider.kubernetes.io/uninitialized");
  taint->set_effect("PreferNoSchedule");
  ChangesBuilder builder = ChangesBuilder::Delta(1, 1, 2);
  builder.Node(1, young);
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  const uint64_t before = Fingerprint();
  Pending(1 + 2 + 2);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.fleet().groups(0).starting(), 1);
  int32_t there = 0;
  for (const v1::ExistingPlacement& placement : plan.existing()) there += placement.pods().count();
  EXPECT_EQ(there, 1) << "one on a; the others on b and c, which are on their way";
  EXPECT_THAT(plan.growth(), SizeIs(0));
  EXPECT_EQ(Fingerprint(), before);
  // Once it has had its time it is a node as any other.
  At(900);
  there = 0;
  const v1::PlanLoopResponse later = Plan();
  for (const v1::ExistingPlacement& placement : later.existing()) there += placement.pods().count();
  EXPECT_EQ(there, 3);
}

// A removal that nobody continues is planned anew, and given back where it is not to be.
TEST_F(LoopFleetTest, AnAbandonedNodeIsGivenBack) {
  k8s::v1::Node marked = Cores("a");
  k8s::v1::Taint* const taint = marked.mutable_spec()->add_taints();
  taint->set_key("ToBeDeletedByClusterAutoscaler");
  taint->set_value(std::to_string(kLoopFleetNowS));
  taint->set_effect("NoSchedule");
  ChangesBuilder builder = ChangesBuilder::Delta(1, 1, 2);
  builder.Node(0, marked, {{0, "web-0", "u0"}});
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  v1::NodeMark* const mark = request_.mutable_fleet()->add_marks();
  mark->set_slot(0);
  mark->set_since_s(kLoopFleetNowS - 60);
  Pending(3);  // a and b are full with them: neither can go
  v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.fleet().abandoned_nodes(), 1);
  int32_t there = 0;
  for (const v1::ExistingPlacement& placement : plan.existing()) there += placement.pods().count();
  EXPECT_EQ(there, 3);
  ASSERT_THAT(plan.fleet().actions(), SizeIs(1));
  EXPECT_EQ(plan.fleet().actions(0).give_back_slot(), 0);
  // With the removal under way here nothing is given back.
  request_.mutable_fleet()->add_under_way()->set_slot(0);
  plan = Plan();
  EXPECT_EQ(plan.fleet().abandoned_nodes(), 0);
  EXPECT_THAT(plan.fleet().actions(), SizeIs(0));
}

// Another engine continues the timers of unneeded nodes, though none carries a soft taint.
TEST_F(LoopFleetTest, TimersGoToTheNextEngine) {
  v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
  EXPECT_EQ(plan.scale_down().remove(0).since_s(), kLoopFleetNowS);
  TypedEngine next;
  ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
  builder.Shape(0, Pod()).Node(0, Cores("a"), {{0, "web-0", "u0"}}).Node(1, Cores("b"));
  ASSERT_TRUE(next.Sync(builder).ok());
  At(60);
  request_.mutable_drain()->set_node_deletion_candidate_ttl_s(3600);
  const absl::StatusOr<v1::PlanLoopResponse> later = next.PlanLoop(request_);
  ASSERT_TRUE(later.ok()) << later.status();
  ASSERT_THAT(later->scale_down().remove(), SizeIs(1));
  EXPECT_EQ(later->scale_down().remove(0).since_s(), kLoopFleetNowS);
}

// It is the client that writes, and tells when it has tried.
TEST_F(LoopFleetTest, SoftTaintsAreActions) {
  request_.mutable_fleet()->mutable_options()->set_max_soft_taints(1);
  v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.fleet().actions(), SizeIs(1));
  EXPECT_EQ(plan.fleet().actions(0).soft_taint().slot(), 1);
  EXPECT_EQ(plan.fleet().actions(0).soft_taint().since_s(), kLoopFleetNowS);
  k8s::v1::Node tainted = Cores("a");
  tainted.mutable_spec()->add_taints()->set_key("DeletionCandidateOfClusterAutoscaler");
  ChangesBuilder builder = ChangesBuilder::Delta(1, 1, 2);
  builder.Node(0, tainted, {{0, "web-0", "u0"}});
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  plan = Plan();
  ASSERT_THAT(plan.fleet().actions(), SizeIs(1));
  ASSERT_TRUE(plan.fleet().actions(0).has_take_soft_taint_slot());
  EXPECT_EQ(plan.fleet().actions(0).take_soft_taint_slot(), 0);
  request_.mutable_fleet()->add_soft_taints_tried("uid-a");
  plan = Plan();
  ASSERT_THAT(plan.fleet().actions(), SizeIs(1));
  EXPECT_EQ(plan.fleet().actions(0).soft_taint().slot(), 1);
}

TEST_F(LoopFleetTest, AStateThatCannotBeReadIsPutAside) {
  request_.mutable_fleet()->set_state("LLLM\x09 of a later version");
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(plan.fleet().state_problem(), HasSubstr("state: has version 9"));
  EXPECT_EQ(plan.fleet().groups(0).coming(), 1);
}

TEST_F(LoopFleetTest, WhatIsWrongIsNamed) {
  struct Row {
    std::function<void(v1::PlanLoopRequest*)> change;
    std::string refusal;
  };
  const auto fleet = [](v1::PlanLoopRequest* t) { return t->mutable_fleet(); };
  const auto cloud = [](v1::PlanLoopRequest* t) { return t->mutable_groups(0)->mutable_cloud(); };
  const std::vector<Row> rows = {
      {[&](v1::PlanLoopRequest* t) { fleet(t)->set_now_milliseconds(0); }, "fleet.now_milliseconds"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->clear_options(); },
       "fleet.options: max_node_provision_milliseconds"},
      {[&](v1::PlanLoopRequest* t) { t->mutable_groups(0)->clear_cloud(); }, "groups[0]: cloud: required"},
      {[&](v1::PlanLoopRequest* t) { t->mutable_groups(0)->set_held("no"); }, "groups[0]: states"},
      {[&](v1::PlanLoopRequest* t) { t->mutable_groups(0)->mutable_scale_down()->add_slots(0); },
       "groups[0]: states current_nodes, slots or held"},
      {[&](v1::PlanLoopRequest* t) { cloud(t)->mutable_machines(1)->set_slot(7); },
       "groups[0]: cloud.machines[1]: slot: there is no node in 7"},
      {[&](v1::PlanLoopRequest* t) { cloud(t)->mutable_machines(1)->set_slot(-1); }, "no node in -1"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->add_outcomes(); }, "fleet: outcomes[0]: result"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->add_removals(); }, "fleet: removals[0]: node_group"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->add_acknowledged(std::string(257, 'x')); },
       "fleet: acknowledged[0]: has 257 bytes"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->add_soft_taints_tried(std::string(257, 'x')); },
       "fleet: soft_taints_tried[0]: has 257 bytes"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->mutable_options()->set_max_soft_taints(-1); },
       "fleet.options: max_soft_taints"},
      {[&](v1::PlanLoopRequest* t) { fleet(t)->add_under_way()->set_slot(9); }, "fleet: under_way[0]: slot"},
  };
  const v1::PlanLoopRequest good = request_;
  for (const Row& row : rows) {
    request_ = good;
    row.change(&request_);
    const absl::Status status = engine_.PlanLoop(request_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.refusal;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.refusal));
  }
  request_ = good;
  Plan();
}

}  // namespace
}  // namespace loadline
