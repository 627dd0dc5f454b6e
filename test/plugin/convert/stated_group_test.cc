// An odd value of one node group or node cannot fail a loop: it alone is left as it is, or its one option is.
#include "plugin/convert/stated_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/fleet_options.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kOddValuesNowS = 1'800'000'000;

k8s::v1::Node CoresFor(const std::string& name) {
  k8s::v1::Node node = MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}});
  node.mutable_metadata()->set_uid("uid-" + name);
  return node;
}

// Node a of two cores in group "workers", which is full; nodes b and c, which are empty, in group "odd". Two
// pods wait that need a node of "workers", which alone may grow.
class OddValuesTest : public ::testing::Test {
 protected:
  OddValuesTest() {
    v1::Changes* const own = request_.mutable_own();
    const char* const names[] = {"a", "b", "c"};
    for (int32_t slot = 0; slot < 3; ++slot) {
      v1::NodeRecord* const node = own->add_nodes();
      node->set_slot(slot);
      node->set_node(CoresFor(names[slot]).SerializeAsString());
    }
    request_.set_now_s(kOddValuesNowS);
    v1::LoopFleet* const fleet = request_.mutable_fleet();
    fleet->set_now_milliseconds(kOddValuesNowS * 1000);
    fleet->set_acts(true);
    SetFleetDefaults(fleet->mutable_options());
    v1::LoopGroup* const workers = AddGroup("workers", {0});
    workers->mutable_growth()->set_max_nodes(9);
    workers->mutable_scale_down()->set_min_nodes(1);
    AddGroup("odd", {1, 2});
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    request_.mutable_drain()->set_scale_down_unneeded_time_s(0);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_DOWN);
    v1::PendingPods* const pods = request_.add_pods();
    k8s::v1::Pod pod = MakePod({}, {{"cpu", "2"}, {"memory", "1Gi"}});
    (*pod.mutable_spec()->add_node_selector()).set_key("group");
    pod.mutable_spec()->mutable_node_selector(0)->set_value("workers");
    pods->mutable_pod()->set_pod(pod.SerializeAsString());
    pods->set_count(2);
  }

  v1::LoopGroup* AddGroup(const std::string& id, const std::vector<int32_t>& slots) {
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group(id);
    group->mutable_growth()->set_max_nodes(static_cast<int32_t>(slots.size()));
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    k8s::v1::Node node = CoresFor("template");
    k8s::v1::StringEntry* const label = node.mutable_metadata()->add_labels();
    label->set_key("group");
    label->set_value(id);
    group->mutable_growth()->set_template_node(node.SerializeAsString());
    group->mutable_cloud()->set_cloud_template(true);
    group->mutable_cloud()->set_target(static_cast<int32_t>(slots.size()));
    for (const int32_t slot : slots) {
      v1::CloudMachine* const machine = group->mutable_cloud()->add_machines();
      machine->set_id(absl::StrCat("machine-", slot));
      machine->set_state(v1::CloudMachine::RUNNING);
      machine->set_slot(slot);
    }
    return group;
  }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  // Nodes that go, by name.
  static std::vector<std::string> Removed(const v1::PlanLoopResponse& plan) {
    std::vector<std::string> names;
    for (const v1::NodeRemoval& node : plan.scale_down().remove()) names.push_back(node.node());
    return names;
  }

  // Returns the reasons that the answer gives for `name`.
  static std::string Reported(const v1::PlanLoopResponse& plan, const std::string& kind,
                              const std::string& name) {
    std::string text;
    for (const v1::LeftOut& object : plan.left_out()) {
      if (object.kind() == kind && object.name() == name) absl::StrAppend(&text, object.reason(), "\n");
    }
    return text;
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

struct OddValue {
  std::string name;
  std::function<void(v1::LoopGroup*)> change;
  std::string reported;
  bool left_alone = false;  // else its nodes go as they do without
};

TEST_F(OddValuesTest, AGroupIsJudgedValueByValue) {
  ASSERT_THAT(Removed(Plan()), testing::UnorderedElementsAre("b", "c"));
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const auto threshold = [](double value) {
    return
        [value](v1::LoopGroup* g) { g->mutable_scale_down()->set_scale_down_utilization_threshold(value); };
  };
  const std::vector<OddValue> values = {
      {"odd", threshold(1.5), "scale_down_utilization_threshold: 1.5 is not in [0, 1]"},
      {"odd", threshold(-0.1), "scale_down_utilization_threshold: -0.1 is not in [0, 1]"},
      {"odd", threshold(nan), "scale_down_utilization_threshold: nan is not in [0, 1]"},
      {"odd", threshold(inf), "scale_down_utilization_threshold: inf is not in [0, 1]"},
      {"odd", [&](auto* g) { g->mutable_scale_down()->set_scale_down_gpu_utilization_threshold(nan); },
       "scale_down_gpu_utilization_threshold: nan"},
      {"odd", [](auto* g) { g->mutable_scale_down()->set_scale_down_unneeded_time_s(-1); },
       "scale_down_unneeded_time_s: -1 is not in"},
      {"odd", [](auto* g) { g->mutable_scale_down()->set_scale_down_unready_time_s(INT64_MAX); },
       "scale_down_unready_time_s: 9223372036854775807 is not in"},
      {"odd", [](auto* g) { g->mutable_cloud()->set_max_node_provision_milliseconds(-1); },
       "cloud.max_node_provision_milliseconds: -1 is not in"},
      {"odd", [](auto* g) { g->mutable_cloud()->set_max_node_startup_milliseconds(INT64_MAX); },
       "cloud.max_node_startup_milliseconds"},
      {"odd", [](auto* g) { g->mutable_cloud()->mutable_machines(0)->set_id("a b"); },
       "cloud.machines[0]: id: is not a name: the machine is called a\\x20b~"},
      {"odd", [](auto* g) { g->mutable_cloud()->set_target(-5); }, "cloud.target: -5 is negative", true},
      {"odd", [](auto* g) { g->mutable_growth()->set_max_nodes(-3); }, "max_nodes: -3 is negative", true},
      {"odd", [](auto* g) { g->mutable_scale_down()->set_min_nodes(-1); }, "min_nodes: -1 is negative", true},
      {"odd", [](auto* g) { g->mutable_scale_down()->set_min_nodes(3); },
       "max_nodes: 2 is below min_nodes, 3", true},
      {"a\\x1b-~", [](auto* g) { g->mutable_growth()->set_node_group("a\x1b-"); },
       R"(node_group: "a\x1b-" is not the id of a group: it has characters that do not print)", true},
      {std::string(32, 'x'), [](auto* g) { g->mutable_growth()->set_node_group(std::string(254, 'x')); },
       "is not the id of a group: it has 254 bytes", true},
  };
  const v1::PlanLoopRequest good = request_;
  for (const OddValue& value : values) {
    SCOPED_TRACE(value.reported);
    request_ = good;
    value.change(request_.mutable_groups(1));
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.growth(0).node_group(), "workers");
    EXPECT_THAT(Removed(plan), SizeIs(value.left_alone ? 0 : 2));
    std::string reported;
    for (const v1::LeftOut& object : plan.left_out()) {
      EXPECT_EQ(object.kind(), "NodeGroup");
      EXPECT_THAT(object.name(), testing::StartsWith(value.name));
      absl::StrAppend(&reported, object.reason(), "\n");
    }
    EXPECT_THAT(reported, HasSubstr(value.reported));
    EXPECT_GE(plan.left_out_total(), 1);
  }
}

// Clouds allow such names: the group is planned as any other.
TEST_F(OddValuesTest, AnIdMayHaveSpacesAndLettersOfAnyScript) {
  for (const std::string& id : std::vector<std::string>{"my asg", "gr\xc3\xbcn", std::string(253, 'x')}) {
    request_.mutable_groups(0)->mutable_growth()->set_node_group(id);
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.growth(0).node_group(), id);
    EXPECT_EQ(plan.left_out_total(), 0);
  }
}

TEST_F(OddValuesTest, LongTextsOfACloudAreCut) {
  request_.mutable_groups(1)->mutable_cloud()->set_problem(std::string(5'000, 'p'));
  v1::MachineFault* const fault =
      request_.mutable_groups(1)->mutable_cloud()->mutable_machines(0)->mutable_fault();
  fault->set_code(std::string(2'000, 'c'));
  fault->set_message(std::string(2'000, 'm'));
  v1::ActionOutcome* const outcome = request_.mutable_fleet()->add_outcomes();
  outcome->set_result(v1::ActionOutcome::FAILED);
  outcome->set_error(std::string(5'000, 'e'));
  EXPECT_THAT(Plan().growth(), SizeIs(1));
}

TEST_F(OddValuesTest, AMarkIsJudgedByItself) {
  struct OddMark {
    int64_t since_s;
    int64_t deleting_s;
    bool acknowledged;
    bool continues;  // its deletion; else the node is given back, or drained anew
    std::string reported;
  };
  const int64_t huge = int64_t{1} << 62;
  const std::vector<OddMark> marks = {
      {huge, 0, false, false, "the mark of its removal: since_s: 4611686018427387904 is not in"},
      {-1, 0, false, false, "since_s: -1 is not in"},
      {kOddValuesNowS, huge, false, false, "deleting_s: 4611686018427387904 is not in"},
      {kOddValuesNowS, huge, true, true, "deleting_s: 4611686018427387904 is not in"},
      {kOddValuesNowS, kOddValuesNowS - 1, false, true, ""},
  };
  for (const OddMark& odd : marks) {
    SCOPED_TRACE(odd.reported);
    v1::NodeMark* const mark = request_.mutable_fleet()->add_marks();
    mark->set_slot(1);
    mark->set_since_s(odd.since_s);
    mark->set_deleting_s(odd.deleting_s);
    mark->set_acknowledged(odd.acknowledged);
    const v1::PlanLoopResponse plan = Plan();
    request_.mutable_fleet()->clear_marks();
    EXPECT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.fleet().groups(1).going(), odd.continues ? 1 : 0);
    EXPECT_THAT(Reported(plan, "Node", "b"), HasSubstr(odd.reported));
    EXPECT_EQ(plan.left_out_total(), odd.reported.empty() ? 0 : 1);
  }
}

TEST_F(OddValuesTest, AMarkWithoutANodeAndASecondOneAreLeftOut) {
  request_.mutable_fleet()->add_marks()->set_slot(9);
  for (int i = 0; i < 2; ++i) {
    v1::NodeMark* const mark = request_.mutable_fleet()->add_marks();
    mark->set_slot(1);
    mark->set_deleting_s(kOddValuesNowS);
  }
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.fleet().groups(1).going(), 1);
  EXPECT_THAT(Reported(plan, "Node", "marks[0]"), HasSubstr("slot: there is no node in 9"));
  EXPECT_THAT(Reported(plan, "Node", "b"), HasSubstr("marks[2]: the node has a mark already"));
}

}  // namespace
}  // namespace loadline
