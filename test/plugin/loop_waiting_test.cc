// The pods of a question that wait for a node: Autoscaler.PlanLoop with rules and facts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kWaitingNowS = 1'800'000'000;

// A full node and the group "workers", of which each node takes one of the pods.
class LoopWaitingTest : public ::testing::Test {
 protected:
  LoopWaitingTest() {
    request_.set_now_s(kWaitingNowS);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
    v1::ScalableGroup* const group = request_.add_groups()->mutable_growth();
    group->set_node_group("workers");
    group->set_template_node(OneCore("template").SerializeAsString());
    group->set_current_nodes(1);
    group->set_max_nodes(100);
    group->set_node_usd_per_hour(0.5);
    request_.mutable_groups(0)->mutable_scale_down()->add_slots(0);
    ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
    builder.Shape(0, Pod()).Node(0, OneCore("a"), {{0, "web-0", "u0"}});
    EXPECT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  }

  static k8s::v1::Node OneCore(const std::string& name) {
    return MakeNode(name, {{"cpu", "1"}, {"memory", "8Gi"}, {"pods", "10"}});
  }
  static k8s::v1::Pod Pod() { return MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}}); }

  v1::PendingPods* Pending(int32_t count, const k8s::v1::Pod& pod = Pod()) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(count);
    return pods;
  }
  v1::PendingPods* Tried(int32_t count) {
    v1::PendingPods* const pods = Pending(count);
    pods->set_unschedulable(true);
    return pods;
  }
  v1::WaitingRules* rules() { return request_.mutable_waiting(); }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }
  int64_t NewNodes() {
    const v1::PlanLoopResponse plan = Plan();
    return plan.growth_size() == 0 ? 0 : plan.growth(0).nodes_for_pods();
  }
  // "1 TOO_YOUNG"
  static std::vector<std::string> Others(const v1::PlanLoopResponse& plan) {
    std::vector<std::string> others;
    for (const v1::NotWaitingPods& pods : plan.not_waiting()) {
      others.push_back(std::to_string(pods.pod()) + " " + v1::NotWaitingPods::Reason_Name(pods.reason()));
    }
    return others;
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

// Same as in questions of clients that have chosen themselves.
TEST_F(LoopWaitingTest, WithoutRulesAllWait) {
  v1::PendingPods* const young = Pending(3);
  young->set_scale_up_delay_milliseconds(60'000);
  young->set_youngest_age_milliseconds(0);
  EXPECT_EQ(NewNodes(), 3);
  EXPECT_THAT(Plan().not_waiting(), IsEmpty());
}

TEST_F(LoopWaitingTest, EachReasonIsTold) {
  rules()->set_scale_up_delay_milliseconds(60'000);
  rules()->set_expendable_priority_cutoff(7);
  rules()->add_bypassed_schedulers("mine");
  k8s::v1::Pod pod = Pod();
  pod.mutable_spec()->set_priority(6);
  Pending(1, pod)->set_unschedulable(true);
  pod.mutable_spec()->set_priority(7);
  Pending(1, pod);
  pod.mutable_spec()->set_scheduler_name("mine");
  Pending(1, pod);
  Pending(1, pod)->set_unschedulable(true);
  v1::PendingPods* const young = Pending(1, pod);
  young->set_unschedulable(true);
  young->set_youngest_age_milliseconds(59'999);
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("DaemonSet");
  owner->set_controller(true);
  Pending(1, pod)->set_unschedulable(true);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(Others(plan), ElementsAre("0 EXPENDABLE", "1 NOT_TRIED", "4 TOO_YOUNG", "5 OF_DAEMON_SET"));
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
}

TEST_F(LoopWaitingTest, APodThatNamesNoSchedulerIsOfTheDefaultOne) {
  Pending(1);
  rules()->add_bypassed_schedulers("other");
  EXPECT_EQ(NewNodes(), 0);
  rules()->add_bypassed_schedulers("default-scheduler");
  EXPECT_EQ(NewNodes(), 1);
}

// Three equal pods that are old enough come between others that are not, in whatever order.
TEST_F(LoopWaitingTest, YoungAndOldPodsOfOneKindAreNotMixedUp) {
  rules();
  request_.set_max_new_nodes(2);
  for (const int32_t count : {4, 3, 5}) {
    v1::PendingPods* const pods = Tried(count);
    pods->set_scale_up_delay_milliseconds(60'000);
    pods->set_youngest_age_milliseconds(count == 3 ? 60'000 : 1'000);
  }
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_THAT(Others(plan), ElementsAre("0 TOO_YOUNG", "2 TOO_YOUNG"));
  ASSERT_THAT(plan.scale_up().nodes(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().nodes(0).nodes(), 2);
  ASSERT_THAT(plan.scale_up().nodes(0).pods(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().nodes(0).pods(0).pod(), 1);
  ASSERT_THAT(plan.scale_up().unplaced(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().unplaced(0).pod(), 1);
  EXPECT_EQ(plan.scale_up().unplaced(0).count(), 1);
}

TEST_F(LoopWaitingTest, ThoseThatAreNotTriedTakeNoRoom) {
  rules();
  for (int i = 0; i < 3; ++i) {
    k8s::v1::Pod pod = Pod();
    pod.mutable_metadata()->set_namespace_(std::to_string(i));
    Pending(1, pod)->set_unschedulable(i == 2);
  }
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.scale_up().nodes(), SizeIs(1));
  ASSERT_THAT(plan.scale_up().nodes(0).pods(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().nodes(0).pods(0).pod(), 2);
}

// A stream of pods that are given time holds up nobody else.
TEST_F(LoopWaitingTest, OthersAreNoPartOfTheBatch) {
  rules()->set_scale_up_delay_milliseconds(5'000);
  request_.set_batch_idle_milliseconds(1'000);
  request_.set_batch_max_milliseconds(10'000);
  for (const int64_t age : {0, 6'000}) {
    v1::PendingPods* const pods = Tried(1);
    pods->set_youngest_age_milliseconds(age);
    pods->set_first_age_milliseconds(age);
    pods->set_last_age_milliseconds(age);
  }
  EXPECT_EQ(Plan().batch_wait_milliseconds(), 0);
  EXPECT_EQ(NewNodes(), 1);
  rules()->set_scale_up_delay_milliseconds(0);
  EXPECT_EQ(Plan().batch_wait_milliseconds(), 1'000);
}

// The node would have room for one of the pods, once the pod that ends there has gone.
TEST_F(LoopWaitingTest, WhereOthersAreNominatedNobodyElseIs) {
  k8s::v1::Pod ends = Pod();
  ends.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(kWaitingNowS + 10);
  ends.mutable_spec()->set_priority(-1);
  ChangesBuilder builder = ChangesBuilder::FullList(2, 1);
  builder.Shape(0, ends).Node(0, OneCore("a"), {{0, "web-0", "u0"}});
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *request_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  rules();
  v1::NominatedPods* const nominated = Pending(1)->add_nominated();
  nominated->set_slot(0);
  nominated->set_count(1);
  Tried(1);
  EXPECT_EQ(NewNodes(), 1);
  request_.mutable_pods(0)->set_unschedulable(true);
  EXPECT_EQ(NewNodes(), 1) << "two wait, and one of them goes to the node";
  EXPECT_THAT(Plan().existing(), SizeIs(1));
}

TEST_F(LoopWaitingTest, RefusesWhatIsOutOfRange) {
  struct BadInput {
    std::string refusal;
    std::function<void(v1::PlanLoopRequest*)> change;
  };
  const std::vector<BadInput> cases = {
      {"waiting: expendable_priority_cutoff: -11 is not in [-10, 2147483647]",
       [](auto* r) { r->mutable_waiting()->set_expendable_priority_cutoff(-11); }},
      {"waiting: scale_up_delay_milliseconds: -1",
       [](auto* r) { r->mutable_waiting()->set_scale_up_delay_milliseconds(-1); }},
      {"waiting: bypassed_schedulers: is empty",
       [](auto* r) { r->mutable_waiting()->add_bypassed_schedulers(""); }},
      {"waiting: bypassed_schedulers",
       [](auto* r) { r->mutable_waiting()->add_bypassed_schedulers(std::string(254, 'x')); }},
      {"waiting: bypassed_schedulers",
       [](auto* r) {
         for (int i = 0; i < 1001; ++i) r->mutable_waiting()->add_bypassed_schedulers("x");
       }},
      {"pods[0]: youngest_age_milliseconds: -1",
       [](auto* r) { r->add_pods()->set_youngest_age_milliseconds(-1); }},
  };
  for (const BadInput& input : cases) {
    v1::PlanLoopRequest request = request_;
    input.change(&request);
    EXPECT_THAT(std::string(engine_.PlanLoop(request).status().message()), HasSubstr(input.refusal));
  }
  EXPECT_TRUE(engine_.PlanLoop(request_).ok());
}

}  // namespace
}  // namespace loadline
