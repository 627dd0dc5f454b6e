// Autoscaler.PlanConsolidation, and nodes that PlanLoop replaces, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loadline/v1/consolidate.pb.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/fleet_options.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kConsolidateNowS = 1'800'000'000;
constexpr char kPlanConsolidationMethod[] = "/loadline.v1.Autoscaler/PlanConsolidation";

k8s::v1::Node NodeOfCores(const std::string& name, const std::string& cores) {
  k8s::v1::Node node = MakeNode(name, {{"cpu", cores}, {"memory", "16Gi"}, {"pods", "20"}});
  node.mutable_metadata()->set_uid("uid-" + name);
  return node;
}

// Two full nodes of two cores, 0.20 USD per hour; one node of four cores would hold their pods for 0.18.
class ConsolidateTest : public ::testing::Test {
 protected:
  ConsolidateTest() {
    k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}});
    k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
    owner->set_kind("ReplicaSet");
    owner->set_name("web");
    owner->set_controller(true);
    builder_.Shape(0, pod)
        .Node(0, NodeOfCores("a", "2"), {{0, "web-0", "u0"}, {0, "web-1", "u1"}})
        .Node(1, NodeOfCores("b", "2"), {{0, "web-2", "u2"}, {0, "web-3", "u3"}});
    EXPECT_TRUE(engine_.Sync(builder_).ok());
    loop_.set_now_s(kConsolidateNowS);
    AddGroup("small", "2", 0.10, {0, 1});
    AddGroup("big", "4", 0.18, {});
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      loop_.mutable_drain()->add_may_be_incomplete(kind);
    }
    *loop_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
    v1::LoopFleet* const fleet = loop_.mutable_fleet();
    fleet->set_acts(true);
    fleet->set_now_milliseconds(kConsolidateNowS * 1000);
    SetFleetDefaults(fleet->mutable_options());
    fleet->mutable_options()->set_ok_unready_nodes(3);
    for (const auto decision :
         {v1::PlanLoopRequest::SCALE_UP, v1::PlanLoopRequest::SCALE_DOWN, v1::PlanLoopRequest::REPLACE}) {
      loop_.add_decisions(decision);
    }
    policy_.set_usd_per_disturbed_pod(0.0005);  // four pods for 0.02 USD per hour
    *loop_.mutable_consolidation() = policy_;
  }

  void AddGroup(const std::string& name, const std::string& cores, double usd,
                const std::vector<int32_t>& slots) {
    v1::LoopGroup* const group = loop_.add_groups();
    group->mutable_growth()->set_node_group(name);
    group->mutable_growth()->set_template_node(NodeOfCores("template", cores).SerializeAsString());
    group->mutable_growth()->set_max_nodes(10);
    group->mutable_growth()->set_node_usd_per_hour(usd);
    group->mutable_cloud()->set_target(static_cast<int32_t>(slots.size()));
    for (const int32_t slot : slots) {
      v1::CloudMachine* const machine = group->mutable_cloud()->add_machines();
      machine->set_id(slot == 0 ? "a" : "b");
      machine->set_state(v1::CloudMachine::RUNNING);
      machine->set_slot(slot);
    }
  }

  absl::StatusOr<v1::PlanConsolidationResponse> Bill() {
    v1::PlanConsolidationRequest request;
    *request.mutable_changes() = loop_.changes();
    request.set_now_s(loop_.now_s());
    for (v1::LoopGroup group : loop_.groups()) {
      group.clear_cloud();
      const int32_t nodes = group.growth().node_group() == "small" ? 2 : 0;
      group.mutable_growth()->set_current_nodes(nodes);
      for (int32_t slot = 0; slot < nodes; ++slot) group.mutable_scale_down()->add_slots(slot);
      *request.add_groups() = std::move(group);
    }
    *request.mutable_drain() = loop_.drain();
    *request.mutable_policy() = policy_;
    request.set_derive_groups(derive_groups_);
    *request.mutable_startup_taints() = loop_.startup_taints();
    *request.mutable_pods() = loop_.pods();
    *request.mutable_waiting() = loop_.waiting();
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes(kPlanConsolidationMethod, request.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::PlanConsolidationResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }

  ChangesBuilder builder_ = ChangesBuilder::FullList(1, 1);
  TypedEngine engine_;
  v1::PlanLoopRequest loop_;
  v1::ConsolidationPolicy policy_;
  bool derive_groups_ = false;
};

TEST_F(ConsolidateTest, TellsTheBillAndTheMove) {
  const absl::StatusOr<v1::PlanConsolidationResponse> plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NEAR(plan->bill().now(), 0.20, 1e-9);
  EXPECT_NEAR(plan->bill().bound(), 0.18, 1e-6);
  EXPECT_NEAR(plan->bill().reachable(), 0.18, 1e-9);
  ASSERT_THAT(plan->moves(), SizeIs(1));
  EXPECT_THAT(plan->moves(0).remove(), ElementsAre("a", "b"));
  ASSERT_THAT(plan->moves(0).add(), SizeIs(1));
  EXPECT_EQ(plan->moves(0).add(0).node_group(), "big");
  EXPECT_EQ(plan->moves(0).disrupted(), 4);
  EXPECT_EQ(plan->moves(0).pods(0).to(), "big#1");
}

// Two nodes of two cores and 16 GiB are one group, at base rates; a node of the control plane is in none.
TEST_F(ConsolidateTest, DerivesGroupsFromNodes) {
  k8s::v1::Node server = NodeOfCores("cp", "8");
  k8s::v1::StringEntry* const label = server.mutable_metadata()->add_labels();
  label->set_key("node-role.kubernetes.io/control-plane");
  label->set_value("true");
  builder_ = ChangesBuilder::FullList(1, 2);
  builder_.Node(0, NodeOfCores("a", "2"), {}).Node(1, NodeOfCores("b", "2"), {}).Node(2, server, {});
  ASSERT_TRUE(engine_.Sync(builder_).ok());
  *loop_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  loop_.clear_groups();
  derive_groups_ = true;
  const absl::StatusOr<v1::PlanConsolidationResponse> plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->derived_groups(), SizeIs(1));
  const v1::DerivedGroup& group = plan->derived_groups(0);
  EXPECT_EQ(group.node_group(), "2-cpu-16Gi");
  EXPECT_THAT(group.slots(), ElementsAre(0, 1));
  EXPECT_EQ(group.milli_cpu(), 2'000);
  EXPECT_EQ(group.memory_bytes(), int64_t{16} << 30);
  EXPECT_EQ(group.pods(), 20);
  EXPECT_EQ(plan->untyped_nodes(), 2);
  EXPECT_EQ(plan->other_nodes().control_plane(), 1);
  ASSERT_THAT(plan->other_nodes().first(), SizeIs(1));
  EXPECT_EQ(plan->other_nodes().first(0).node(), "cp");
  EXPECT_EQ(plan->bill().unpriced_nodes(), 0);
  ASSERT_THAT(plan->groups(), SizeIs(1));
  EXPECT_NEAR(plan->groups(0).usd_per_hour(), plan->bill().now(), 1e-9);
}

TEST_F(ConsolidateTest, DerivedGroupsKnowTheStartupTaintsOfTheQuestion) {
  k8s::v1::Node starting = NodeOfCores("b", "2");
  starting.mutable_spec()->add_taints()->set_key("example.com/starting");
  starting.mutable_spec()->mutable_taints(0)->set_effect("NoSchedule");
  builder_ = ChangesBuilder::FullList(1, 2);
  builder_.Node(0, NodeOfCores("a", "2"), {}).Node(1, starting, {});
  ASSERT_TRUE(engine_.Sync(builder_).ok());
  *loop_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  loop_.clear_groups();
  derive_groups_ = true;
  absl::StatusOr<v1::PlanConsolidationResponse> plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->derived_groups(), SizeIs(2));
  loop_.mutable_startup_taints()->add_startup("example.com/starting");
  plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->derived_groups(), SizeIs(1));
  EXPECT_THAT(plan->derived_groups(0).slots(), ElementsAre(0, 1));
}

// Both nodes are empty, but one is a minute old and waits for Cilium.
TEST_F(ConsolidateTest, ANodeThatStartsStays) {
  k8s::v1::Node starting = NodeOfCores("b", "2");
  starting.mutable_metadata()->mutable_creation_timestamp()->set_seconds(kConsolidateNowS - 60);
  starting.mutable_spec()->add_taints()->set_key("node.cilium.io/agent-not-ready");
  starting.mutable_spec()->mutable_taints(0)->set_effect("NoSchedule");
  builder_ = ChangesBuilder::FullList(1, 2);
  builder_.Node(0, NodeOfCores("a", "2"), {}).Node(1, starting, {});
  ASSERT_TRUE(engine_.Sync(builder_).ok());
  *loop_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  const absl::StatusOr<v1::PlanConsolidationResponse> plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NEAR(plan->bill().now(), 0.20, 1e-9);
  EXPECT_NEAR(plan->bill().fixed(), 0.10, 1e-9);
  EXPECT_NEAR(plan->bill().reachable(), 0.10, 1e-9);
  ASSERT_THAT(plan->moves(), SizeIs(1));
  EXPECT_THAT(plan->moves(0).remove(), ElementsAre("a"));
  ASSERT_THAT(plan->keep(), SizeIs(1));
  EXPECT_EQ(plan->keep(0).node(), "b");
  EXPECT_EQ(plan->keep(0).reason(), "NotStarted");
}

// Pods of a priority below the cutoff wait for no node.
// Advice is that of drains: of the two nodes of one reason, it names the pod and the value.
TEST_F(ConsolidateTest, TellsWhatWouldHelpEachNodeThatStays) {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}});
  auto* const annotation = pod.mutable_metadata()->add_annotations();
  annotation->set_key("karpenter.sh/do-not-disrupt");
  annotation->set_value("yes");
  ChangesBuilder changed = ChangesBuilder::FullList(2, 1);
  changed.Shape(0, pod);
  annotation->set_value("true");
  changed.Shape(1, pod)
      .Node(0, NodeOfCores("a", "2"), {{0, "web-0", "u0"}})
      .Node(1, NodeOfCores("b", "2"), {{1, "web-1", "u1"}});
  ASSERT_TRUE(engine_.Sync(changed).ok());
  *loop_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  const absl::StatusOr<v1::PlanConsolidationResponse> plan = Bill();
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->keep(), SizeIs(2));
  EXPECT_EQ(
      plan->keep(0).advice(),
      "correct karpenter.sh/do-not-disrupt: \"yes\" of pod default/web-0: nobody knows the value, and so "
      "it protects as \"true\" would");
  EXPECT_EQ(plan->keep(1).advice(),
            "take karpenter.sh/do-not-disrupt, or do-not-evict, off pod default/web-1");
}

TEST_F(ConsolidateTest, TellsHowManyPodsWait) {
  loop_.mutable_waiting()->set_expendable_priority_cutoff(-10);
  for (const auto& [priority, count] : std::vector<std::pair<int32_t, int32_t>>{{0, 2}, {5, 1}, {-100, 4}}) {
    k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}});
    pod.mutable_spec()->set_priority(priority);
    v1::PendingPods* const pods = loop_.add_pods();
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(count);
    pods->set_unschedulable(true);
  }
  const absl::StatusOr<v1::PlanConsolidationResponse> response = Bill();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->waiting_pods(), 3);
}

TEST_F(ConsolidateTest, RefusesAPolicyThatNamesNothing) {
  policy_.set_least_saving_percent(101);
  EXPECT_THAT(std::string(Bill().status().message()), HasSubstr("policy: least_saving_percent"));
  policy_.Clear();
  v1::TimeWindow* const window = policy_.mutable_windows()->add_windows();
  window->set_from_s(2);
  window->set_until_s(1);
  EXPECT_THAT(std::string(Bill().status().message()), HasSubstr("policy: windows.until_s"));
}

TEST_F(ConsolidateTest, TakesTheWindowsOfAYearAndNoMore) {
  for (int i = 0; i < 16'384; ++i) policy_.mutable_windows()->add_windows();
  EXPECT_TRUE(Bill().ok()) << Bill().status();
  policy_.mutable_windows()->add_windows();
  EXPECT_EQ(Bill().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Bill().status().message()), HasSubstr("windows"));
}

TEST_F(ConsolidateTest, ALoopBuysTheNewNodeAndRemembersTheMove) {
  absl::StatusOr<v1::PlanLoopResponse> plan = engine_.PlanLoop(loop_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->growth(), SizeIs(1));
  EXPECT_EQ(plan->growth(0).node_group(), "big");
  EXPECT_EQ(plan->growth(0).nodes_for_replacement(), 1);
  EXPECT_EQ(plan->replacement().begun(), 1);
  EXPECT_NEAR(plan->replacement().saves(), 0.02, 1e-9);
  ASSERT_THAT(plan->replacement().moves(), SizeIs(1));
  EXPECT_EQ(plan->replacement().moves(0).phase(), "ordered");
  EXPECT_THAT(plan->replacement().moves(0).remove(), ElementsAre("a", "b"));
  EXPECT_EQ(plan->replacement().moves(0).to_come(), 1);

  // The next loop, perhaps of another process, starts from the state.
  loop_.mutable_fleet()->set_state(plan->fleet().state());
  loop_.mutable_groups(1)->mutable_cloud()->set_target(1);
  plan = engine_.PlanLoop(loop_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->growth(), IsEmpty());
  EXPECT_EQ(plan->replacement().begun(), 0);
  EXPECT_THAT(plan->replacement().moves(), SizeIs(1));
}

TEST_F(ConsolidateTest, ObservingRemembersNoMove) {
  loop_.mutable_fleet()->set_acts(false);
  for (int loop = 0; loop < 2; ++loop) {
    const absl::StatusOr<v1::PlanLoopResponse> plan = engine_.PlanLoop(loop_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->replacement().begun(), 1) << "it is shown again";
    loop_.mutable_fleet()->set_state(plan->fleet().state());
  }
}

TEST_F(ConsolidateTest, ReplacingNeedsWhatCarriesItOut) {
  loop_.clear_decisions();
  loop_.add_decisions(v1::PlanLoopRequest::REPLACE);
  EXPECT_THAT(std::string(engine_.PlanLoop(loop_).status().message()), HasSubstr("REPLACE needs"));
}

}  // namespace
}  // namespace loadline
