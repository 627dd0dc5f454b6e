// Groups that are sized within Autoscaler.PlanLoop, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/size_question.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kNowS = kNowMs / 1000;

// Nodes a and b of one core in group "pool"; each holds a pod of 800m. Of new nodes nothing is known.
class LoopSizesTest : public ::testing::Test {
 protected:
  LoopSizesTest() {
    request_.set_now_s(kNowS);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("pool");
    group->mutable_growth()->set_current_nodes(2);
    group->mutable_growth()->set_max_nodes(10);
    for (const int32_t slot : {0, 1}) group->mutable_scale_down()->add_slots(slot);
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    v1::SizedGroup* const sized = request_.add_sized();
    sized->set_node_group("pool");
    v1::GroupLabel* const label = sized->add_labels();
    label->set_key("pool");
    label->set_value("a");
    *sized->mutable_options() = SizeTestOptions();
    Load(PoolNode("a"), PoolNode("b"), "800m");
  }

  void Load(const k8s::v1::Node& a, const k8s::v1::Node& b, const std::string& cpu, int64_t epoch = 1) {
    k8s::v1::Pod pod = PoolPod(cpu);
    OwnedBy("ReplicaSet", &pod);
    ChangesBuilder builder = ChangesBuilder::FullList(epoch, 1);
    builder.Shape(0, pod).Node(0, a, {{0, "p", "u-p"}}).Node(1, b, {{0, "q", "u-q"}});
    ASSERT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(epoch, 1).changes();
  }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

// 1600m of 2000m are 80 %: ceil(1600 / 700) - 2 = 1 node.
TEST_F(LoopSizesTest, AGroupGrowsByUtilizationOnceAndThenWaits) {
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.size().groups(), SizeIs(1));
  EXPECT_EQ(plan.size().groups(0).node_group(), "pool");
  EXPECT_EQ(plan.size().groups(0).utilization().cpu_percent(), 80);
  EXPECT_EQ(plan.size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
  EXPECT_EQ(plan.size().groups(0).ask_cloud(), 1);
  EXPECT_FALSE(plan.size().has_state());
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_utilization(), 1);
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 0);
  EXPECT_EQ(plan.no_scale_down(), "groups grow");
  ASSERT_THAT(plan.state().size().groups(), SizeIs(1));
  EXPECT_FALSE(plan.state().size().groups(0).has_locked_milliseconds());
  EXPECT_EQ(plan.state().size().groups(0).asked_milliseconds(), kNowMs);
  EXPECT_EQ(plan.state().size().groups(0).asked_target(), 2);
  // The cloud refused, or nobody asked it.
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
  // It took the node. The engine keeps that with the view, and MeasureUtilization starts from it.
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(3);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::LOCKED);
  v1::MeasureUtilizationRequest measure;
  measure.set_now_milliseconds(kNowMs);
  *measure.mutable_changes() = request_.changes();
  *measure.mutable_groups() = request_.sized();
  const absl::StatusOr<std::string> bytes =
      engine_.CallBytes("/loadline.v1.Autoscaler/MeasureUtilization", measure.SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::MeasureUtilizationResponse measured;
  ASSERT_TRUE(measured.ParseFromString(*bytes));
  EXPECT_EQ(measured.groups(0).reason(), v1::GroupSize::LOCKED);
  // A state that is handed in is put in its place; the cool-down is 120 s.
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(2);
  request_.mutable_state()->mutable_size();
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
  v1::GroupSizeState* const locked = request_.mutable_state()->mutable_size()->add_groups();
  locked->set_node_group("pool");
  locked->set_locked_milliseconds(kNowMs - 119'999);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::LOCKED);
  locked->set_locked_milliseconds(kNowMs - 120'000);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
}

// An engine with a new view starts from what the old one left.
TEST_F(LoopSizesTest, ACoolDownOutlivesTheProcess) {
  v1::FleetOptions* const options = request_.mutable_fleet()->mutable_options();
  options->set_max_node_provision_milliseconds(900'000);
  options->set_initial_back_off_milliseconds(1);
  options->set_max_back_off_milliseconds(1);
  request_.mutable_fleet()->set_now_milliseconds(kNowMs);
  v1::LoopGroup* const group = request_.mutable_groups(0);
  group->mutable_growth()->clear_current_nodes();
  group->mutable_scale_down()->clear_slots();
  group->mutable_cloud()->set_target(2);
  for (const int32_t slot : {0, 1}) {
    v1::CloudMachine* const machine = group->mutable_cloud()->add_machines();
    machine->set_id(slot == 0 ? "a" : "b");
    machine->set_slot(slot);
  }
  v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.size().groups(0).ask_cloud(), 1);
  request_.mutable_fleet()->set_state(plan.fleet().state());
  group->mutable_cloud()->set_target(3);
  plan = Plan();
  EXPECT_EQ(plan.size().groups(0).reason(), v1::GroupSize::LOCKED);
  const std::string state = plan.fleet().state();

  group->mutable_cloud()->set_target(2);  // the node was taken back meanwhile
  ASSERT_TRUE(engine_.Drop("test").ok());
  Load(PoolNode("a"), PoolNode("b"), "800m");
  request_.mutable_fleet()->set_state(state);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::LOCKED);
  ASSERT_TRUE(engine_.Drop("test").ok());
  Load(PoolNode("a"), PoolNode("b"), "800m");
  request_.mutable_fleet()->clear_state();
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
}

TEST_F(LoopSizesTest, WithoutGroupsThatAreSizedNothingIsSaidOfThem) {
  Plan();
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(3);
  const google::protobuf::RepeatedPtrField<v1::SizedGroup> sized = request_.sized();
  request_.clear_sized();
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_FALSE(plan.has_size());
  EXPECT_FALSE(plan.state().has_size());
  *request_.mutable_sized() = sized;
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::LOCKED) << "what is remembered stays";
}

// Pods of 100m: 20 % of two nodes, 10 % of one. b has been tainted for longer than the hard period.
TEST_F(LoopSizesTest, WhatIsTaintedGoesAsAnyOtherNode) {
  k8s::v1::Node tainted = PoolNode("b");
  AddTaint("atlassian.com/escalator", std::to_string(kNowS - 601), &tainted);
  Load(PoolNode("a"), tainted, "100m", /*epoch=*/2);
  v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.no_scale_down(), "");
  ASSERT_THAT(plan.size().groups(0).remove(), SizeIs(1));
  ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
  const v1::NodeRemoval& removal = plan.scale_down().remove(0);
  EXPECT_EQ(removal.node(), "b");
  EXPECT_EQ(removal.node_group(), "pool");
  EXPECT_TRUE(removal.start());
  ASSERT_THAT(removal.moves(), SizeIs(1));
  EXPECT_EQ(removal.moves(0).name(), "q");
  EXPECT_EQ(removal.moves(0).to(), "a");
  ASSERT_THAT(plan.scale_down().keep(), SizeIs(1));
  EXPECT_EQ(plan.scale_down().keep(0).reason(), "SizedByUtilization");
  EXPECT_NE(plan.scale_down().keep(0).advice(), "");

  request_.mutable_sized(0)->set_dry_run(true);
  request_.mutable_state()->mutable_drain();
  plan = Plan();
  EXPECT_THAT(plan.size().groups(0).remove(), SizeIs(1));
  EXPECT_THAT(plan.scale_down().remove(), SizeIs(0));
}

TEST_F(LoopSizesTest, BadInputNamesTheField) {
  struct BadInput {
    std::string refusal;  // a part of it
    std::function<void(v1::PlanLoopRequest*)> change;
  };
  const BadInput cases[] = {
      {"sized[0]: node_group: \"x\" is none of `groups`",
       [](auto* r) { r->mutable_sized(0)->set_node_group("x"); }},
      {"sized[0]: node_group: has all of its nodes or none",
       [](auto* r) { r->mutable_groups(0)->mutable_scale_down()->set_atomic(true); }},
      {"sized[0]: states the template, or target or bounds at the cloud, which `groups` state",
       [](auto* r) { r->mutable_sized(0)->set_cloud_target(2); }},
      {"sized[0]: states the template",
       [](auto* r) { r->mutable_sized(0)->mutable_options()->set_cloud_min(0); }},
      {"sized[0]: states the template",
       [](auto* r) { r->mutable_sized(0)->mutable_options()->set_cloud_max(2); }},
      {"sized[0]: states the template",
       [](auto* r) { r->mutable_sized(0)->set_template_node(PoolNode("t").SerializeAsString()); }},
      {"sized[0]: labels: has none", [](auto* r) { r->mutable_sized(0)->clear_labels(); }},
      {"sized[0]: options: missing", [](auto* r) { r->mutable_sized(0)->clear_options(); }},
      {"sized[0]: options: scale_up_percent",
       [](auto* r) { r->mutable_sized(0)->mutable_options()->set_scale_up_percent(2'000'000); }},
      {"sized[1]: node_group \"pool\" is named twice", [](auto* r) { *r->add_sized() = r->sized(0); }},
      {"sized: has 1001 entries",
       [](auto* r) {
         for (int i = 0; i < 1000; ++i) r->add_sized();
       }},
      {"state.size: groups[0]: requested",
       [](auto* r) { r->mutable_state()->mutable_size()->add_groups()->set_requested(-1); }},
  };
  const v1::PlanLoopRequest good = request_;
  for (const BadInput& input : cases) {
    request_ = good;
    input.change(&request_);
    const absl::Status status = engine_.PlanLoop(request_).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(input.refusal));
  }
  request_ = good;
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP)
      << "a question that was refused leaves nothing behind";
}

// No scheduler has looked at these pods yet, so that they are none of `pods`: the group of two nodes at 20 %
// would shrink. 200m and nine times 200m are 2000m: ceil(2000 / 700) - 2 = 1 node.
TEST_F(LoopSizesTest, DemandAreAllPodsWithoutANode) {
  Load(PoolNode("a"), PoolNode("b"), "100m", 2);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::BELOW_TAINT_LOWER);
  v1::WaitingPods* const waiting = request_.add_size_pods();
  waiting->set_pod(PoolPod("200m").SerializeAsString());
  waiting->set_count(9);
  const v1::GroupSize size = Plan().size().groups(0);
  EXPECT_EQ(size.reason(), v1::GroupSize::ABOVE_SCALE_UP);
  EXPECT_EQ(size.requested_milli_cpu(), 2000);
  EXPECT_EQ(size.pending_pods(), 9);
  EXPECT_EQ(size.delta(), 1);
  // Gated pods are demand for Escalator only.
  waiting->set_waits_for(v1::WaitingPods::GATE);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::BELOW_TAINT_LOWER);
  request_.mutable_sized(0)->mutable_options()->set_mode(v1::SizeOptions::COMPAT);
  EXPECT_EQ(Plan().size().groups(0).reason(), v1::GroupSize::ABOVE_SCALE_UP);
}

// Nobody else names it: it is none of `pods`. The other one counts.
TEST_F(LoopSizesTest, APodThatCannotBeReadIsLeftOutByItsPlace) {
  request_.add_size_pods()->set_pod(PoolPod("200m").SerializeAsString());
  request_.add_size_pods()->set_pod(PoolPod("-1").SerializeAsString());
  for (v1::WaitingPods& waiting : *request_.mutable_size_pods()) waiting.set_count(1);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.size().groups(0).pending_pods(), 1);
  EXPECT_EQ(plan.left_out_total(), 1);
  ASSERT_THAT(plan.left_out(), SizeIs(1));
  EXPECT_EQ(plan.left_out(0).kind(), "Pod");
  EXPECT_EQ(plan.left_out(0).name(), "size_pods[1]");
  EXPECT_THAT(plan.left_out(0).reason(), HasSubstr("resources.requests"));
}

// 1600m of 2000m and 1500m that no node of 1000m can take: it grows by one for the former only.
TEST_F(LoopSizesTest, APodLargerThanAnyNodeIsNamedAndPinsNothing) {
  v1::WaitingPods* const waiting = request_.add_size_pods();
  waiting->set_pod(PoolPod("1500m").SerializeAsString());
  waiting->set_count(2);
  request_.mutable_sized(0)->mutable_options()->set_scale_on_starve(true);
  v1::GroupSize size = Plan().size().groups(0);
  EXPECT_EQ(size.requested_milli_cpu(), 1600);
  EXPECT_EQ(size.delta(), 1);
  ASSERT_THAT(size.warnings(), SizeIs(1));
  EXPECT_EQ(size.warnings(0).kind(), v1::SizeWarning::PODS_TOO_LARGE);
  EXPECT_EQ(size.warnings(0).count(), 2);
  EXPECT_EQ(size.warnings(0).first_pod(), 0);
  // 20 %: it shrinks although the pod waits.
  Load(PoolNode("a"), PoolNode("b"), "100m", 2);
  size = Plan().size().groups(0);
  EXPECT_EQ(size.reason(), v1::GroupSize::BELOW_TAINT_LOWER);
  EXPECT_EQ(size.delta(), -1);
}

// From no node: 1400m on nodes of 1000m, of which a DaemonSet takes 300m: ceil(1400 / 490) = 3 nodes, not 2.
TEST_F(LoopSizesTest, FromZeroDaemonSetsComeOffTheTemplate) {
  ASSERT_TRUE(engine_.Sync(ChangesBuilder::FullList(2, 1)).ok());
  *request_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  v1::LoopGroup* const group = request_.mutable_groups(0);
  group->mutable_growth()->set_current_nodes(0);
  group->mutable_growth()->set_template_node(PoolNode("t").SerializeAsString());
  group->mutable_scale_down()->clear_slots();
  v1::WaitingPods* const waiting = request_.add_size_pods();
  waiting->set_pod(PoolPod("200m").SerializeAsString());
  waiting->set_count(7);
  EXPECT_EQ(Plan().size().groups(0).delta(), 2);
  k8s::v1::Pod daemon = MakePod({}, {{"cpu", "300m"}});
  OwnedBy("DaemonSet", &daemon);
  request_.add_daemon_pods(daemon.SerializeAsString());
  EXPECT_EQ(Plan().size().groups(0).delta(), 3);
  // A DaemonSet for other nodes only takes nothing.
  auto* const label = daemon.mutable_spec()->add_node_selector();
  label->set_key("pool");
  label->set_value("b");
  request_.set_daemon_pods(0, daemon.SerializeAsString());
  EXPECT_EQ(Plan().size().groups(0).delta(), 2);
  request_.set_daemon_pods(0, MakePod({}, {{"cpu", "300m"}}).SerializeAsString());
  request_.mutable_sized(0)->mutable_options()->set_ignore_daemon_sets(true);
  EXPECT_EQ(Plan().size().groups(0).delta(), 2);
}

}  // namespace
}  // namespace loadline
