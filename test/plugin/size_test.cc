// Autoscaler.MeasureUtilization, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "loadline/v1/size.pb.h"
#include "test/plugin/messages.h"
#include "test/plugin/size_question.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SizeTest = SizeQuestion;

std::vector<v1::SizeWarning::Kind> Kinds(const v1::GroupSize& group) {
  std::vector<v1::SizeWarning::Kind> kinds;
  for (const v1::SizeWarning& warning : group.warnings()) kinds.push_back(warning.kind());
  return kinds;
}

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<v1::SizedNode>& nodes) {
  std::vector<std::string> names;
  for (const v1::SizedNode& node : nodes) names.push_back(node.node());
  return names;
}

// Two nodes, one pod of 500m and 100 MB on each; the other eight of Escalator's example wait.
ChangesBuilder WorkedExample() {
  return ChangesBuilder::FullList(2, 1)
      .Shape(0, PoolPod())
      .Node(0, PoolNode("n0"), {{0, "p0", ""}})
      .Node(3, PoolNode("n3"), {{0, "p1", ""}});
}

TEST_F(SizeTest, EscalatorsWorkedExample) {
  Load(WorkedExample());
  Wait(PoolPod(), 8);
  for (const v1::SizeOptions::Mode mode : {v1::SizeOptions::DEFAULT, v1::SizeOptions::COMPAT}) {
    SetMode(mode);
    request_.mutable_state()->Clear();
    const v1::GroupSize size = Size();
    EXPECT_EQ(size.action(), v1::GroupSize::SCALE_UP);
    EXPECT_EQ(size.reason(), v1::GroupSize::ABOVE_SCALE_UP);
    EXPECT_EQ(size.reason_text(), "above the scale-up threshold");
    EXPECT_EQ(size.delta(), 6);
    EXPECT_EQ(size.ask_cloud(), 6);
    EXPECT_EQ(size.utilization().kind(), v1::Utilization::PERCENT);
    EXPECT_EQ(size.utilization().cpu_percent(), 250);
    EXPECT_EQ(size.utilization().memory_percent(), 12.5);
    EXPECT_EQ(size.utilization_after().cpu_percent(), 62.5);
    EXPECT_EQ(size.utilization_after().memory_percent(), 3.125);
    EXPECT_EQ(size.requested_milli_cpu(), 5000);
    EXPECT_EQ(size.capacity_memory_bytes(), 8'000'000'000);
    EXPECT_EQ(size.pods(), 10);
    EXPECT_EQ(size.pending_pods(), 8);
    EXPECT_EQ(size.untainted_nodes(), 2);
    EXPECT_THAT(Kinds(size), IsEmpty());
  }
}

TEST_F(SizeTest, FromZeroByCachedNodeByTemplateAndByNeither) {
  Wait(PoolPod("450m", "1M"), 4);
  request_.mutable_state();
  v1::GroupSize size = Size();
  EXPECT_EQ(size.delta(), 1);
  EXPECT_EQ(size.reason(), v1::GroupSize::FROM_ZERO);
  EXPECT_EQ(size.utilization().kind(), v1::Utilization::FROM_ZERO);
  EXPECT_FALSE(size.has_utilization_after());
  EXPECT_THAT(Kinds(size), ElementsAre(v1::SizeWarning::NO_NODES));
  request_.mutable_groups(0)->set_template_node(PoolNode("t", "500m").SerializeAsString());
  EXPECT_EQ(Size().delta(), 6);  // 1800 / 500 / 70 % = 5.14
  v1::GroupSizeState* const state = request_.mutable_state()->add_groups();
  state->set_node_group("a");
  state->mutable_cached_node()->set_milli_cpu(1000);
  state->mutable_cached_node()->set_memory_bytes(4'000'000'000);
  EXPECT_EQ(Size().delta(), 3);  // the cached node before the template: 1.8 / 70 % = 2.57
  SetMode(v1::SizeOptions::COMPAT);
  EXPECT_EQ(Size().delta(), 3);
  request_.mutable_state()->clear_groups();
  EXPECT_EQ(Size().delta(), 1);  // which has no template
}

TEST_F(SizeTest, TheEngineKeepsTheStateWithTheView) {
  Load(WorkedExample());
  Wait(PoolPod(), 8);
  const absl::StatusOr<v1::MeasureUtilizationResponse> first = Ask();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->state().groups_size(), 1);
  EXPECT_EQ(first->state().groups(0).node_group(), "a");
  EXPECT_EQ(first->state().groups(0).cached_node().milli_cpu(), 1000);
  EXPECT_EQ(first->state().groups(0).locked_milliseconds(), kNowMs);
  EXPECT_EQ(first->state().groups(0).requested(), 6);
  EXPECT_EQ(first->state().groups(0).expected(), 8);
  request_.set_now_milliseconds(kNowMs + 119'999);
  EXPECT_EQ(Size().reason(), v1::GroupSize::LOCKED);
  request_.set_now_milliseconds(kNowMs + 120'000);
  EXPECT_EQ(Size().reason(), v1::GroupSize::WAITING);  // six are on their way
  // A question that is refused changes nothing.
  request_.mutable_groups(0)->mutable_options()->set_min_nodes(-1);
  EXPECT_THAT(Refusal(), HasSubstr("min_nodes"));
  options()->set_min_nodes(0);
  // A state that is handed in holds instead, also an empty one.
  *request_.mutable_state() = first->state();
  request_.set_now_milliseconds(kNowMs + 1);
  EXPECT_EQ(Size().reason(), v1::GroupSize::LOCKED);
  request_.mutable_state()->Clear();
  EXPECT_EQ(Size().delta(), 6);
  // And from there: the nodes are gone, what they offered is known.
  request_.clear_state();
  Load(ChangesBuilder::FullList(3, 1));
  request_.set_now_milliseconds(kNowMs + 10'000'000);
  request_.clear_pods();
  Wait(PoolPod("450m", "1M"), 4);
  EXPECT_EQ(Size().wanted_delta(), 3);
}

TEST_F(SizeTest, DaemonSetAndStaticPodsAreNoDemand) {
  k8s::v1::Pod daemon = PoolPod("100m"), fixed = PoolPod("100m");
  OwnedBy("DaemonSet", &daemon);
  auto* const source = fixed.mutable_metadata()->add_annotations();
  source->set_key("kubernetes.io/config.source");
  source->set_value("file");
  Load(ChangesBuilder::FullList(2, 1)
           .Shape(0, daemon)
           .Shape(1, fixed)
           .Shape(2, PoolPod("500m"))
           .Node(0, PoolNode("n0"), {{0, "d", ""}, {1, "s", ""}, {2, "p", ""}}));
  v1::GroupSize size = Size();
  EXPECT_EQ(size.pods(), 1);
  EXPECT_EQ(size.requested_milli_cpu(), 500);
  EXPECT_EQ(size.capacity_milli_cpu(), 800);
  EXPECT_THAT(Kinds(size), IsEmpty());
  options()->set_ignore_daemon_sets(true);
  EXPECT_EQ(Size().capacity_milli_cpu(), 1000);
  options()->set_ignore_daemon_sets(false);
  SetMode(v1::SizeOptions::COMPAT);
  EXPECT_EQ(Size().capacity_milli_cpu(), 1000);
}

// New nodes of 500m: 1800 / 400 / 70 % = 6.4 with 100m of a DaemonSet on each, and 1800 / 500 / 70 % = 5.1
// if its pods give way. Of a node of 1000m that is there, it takes nothing then either.
TEST_F(SizeTest, ExpendableDaemonSetsTakeNothing) {
  k8s::v1::Pod daemon = PoolPod("100m");
  OwnedBy("DaemonSet", &daemon);
  Wait(PoolPod("300m", "1M"), 6);
  request_.mutable_state();
  request_.mutable_groups(0)->set_template_node(PoolNode("t", "500m").SerializeAsString());
  for (const auto& [priority, wanted] : {std::pair(-10, 7), std::pair(-11, 6)}) {
    daemon.mutable_spec()->set_priority(priority);
    request_.clear_daemon_pods();
    request_.add_daemon_pods(daemon.SerializeAsString());
    EXPECT_EQ(Size().delta(), wanted);
  }
  int64_t epoch = 1;
  for (const auto& [priority, capacity] : {std::pair(-10, 900), std::pair(-11, 1000)}) {
    daemon.mutable_spec()->set_priority(priority);
    Load(ChangesBuilder::FullList(++epoch, 1).Shape(0, daemon).Node(0, PoolNode("n0"), {{0, "d", ""}}));
    EXPECT_EQ(Size().capacity_milli_cpu(), capacity);
  }
}

TEST_F(SizeTest, WarnsOfWhatMakesNumbersWorthLess) {
  k8s::v1::Pod daemon = MakePod({}, {{"cpu", "301m"}, {"memory", "1M"}});
  OwnedBy("DaemonSet", &daemon);
  k8s::v1::Pod empty = PoolPod();
  empty.mutable_spec()->mutable_containers(0)->clear_resources();
  k8s::v1::Node shared = PoolNode("n1", "2");
  auto* const label = shared.mutable_metadata()->add_labels();
  label->set_key("disk");
  label->set_value("ssd");
  Load(ChangesBuilder::FullList(2, 1)
           .Shape(0, daemon)
           .Shape(1, empty)
           .Shape(2, MakePod({}, {{"cpu", "1m"}}))
           .Node(0, PoolNode("n0"), {{0, "d0", ""}, {1, "e0", ""}, {1, "e1", ""}, {2, "foreign", ""}})
           .Node(1, shared, {{0, "d1", ""}, {0, "d2", ""}, {0, "d3", ""}}));
  v1::SizedGroup* const other = AddGroup("b", "x");
  other->mutable_labels(0)->set_key("disk");
  other->mutable_labels(0)->set_value("ssd");
  const v1::GroupSize size = Size();
  EXPECT_THAT(Kinds(size), ElementsAre(v1::SizeWarning::MIXED_NODES, v1::SizeWarning::DAEMON_SHARE,
                                       v1::SizeWarning::PODS_WITHOUT_REQUESTS, v1::SizeWarning::SHARED_NODES,
                                       v1::SizeWarning::UNCOUNTED_PODS));
  EXPECT_EQ(size.warnings(2).count(), 2);
  EXPECT_EQ(size.warnings(3).count(), 1);
  EXPECT_EQ(size.warnings(3).node_group(), "b");
  EXPECT_EQ(size.warnings(4).count(), 1);
}

TEST_F(SizeTest, NodesOfEachKind) {
  k8s::v1::Node cordoned = PoolNode("cordoned"), tainted = PoolNode("tainted"), forced = PoolNode("forced"),
                kept = PoolNode("kept"), untold = PoolNode("untold"),
                other = MakeNode("other", {{"cpu", "1"}});
  cordoned.mutable_spec()->set_unschedulable(true);
  AddTaint("atlassian.com/escalator", "1", &cordoned);
  const std::string long_ago = std::to_string(kNowMs / 1000 - 61);
  AddTaint("atlassian.com/escalator", long_ago, &tainted);
  AddTaint("atlassian.com/escalator-force", "", &forced);
  AddTaint("atlassian.com/escalator", long_ago, &kept);
  auto* const keep = kept.mutable_metadata()->add_annotations();
  keep->set_key("atlassian.com/no-delete");
  keep->set_value("because");
  AddTaint("atlassian.com/escalator", "yesterday", &untold);
  ChangesBuilder cluster = ChangesBuilder::FullList(2, 1);
  cluster.Shape(0, PoolPod("500m")).Node(9, PoolNode("n0"), {{0, "p", ""}});
  int32_t slot = 0;
  for (const k8s::v1::Node* node : {&cordoned, &tainted, &forced, &kept, &untold, &other}) {
    cluster.Node(slot++, *node);
  }
  Load(cluster);
  options()->set_max_unhealthy_percent(99);  // not read
  const v1::GroupSize size = Size();
  EXPECT_EQ(size.untainted_nodes(), 1);
  EXPECT_EQ(size.tainted_nodes(), 3);
  EXPECT_EQ(size.force_tainted_nodes(), 1);
  EXPECT_EQ(size.cordoned_nodes(), 1);
  EXPECT_THAT(Names(size.remove()), ElementsAre("forced", "tainted"));
  EXPECT_EQ(size.remove(0).slot(), 2);
  EXPECT_EQ(size.capacity_milli_cpu(), 1000);
}

// A pod that asks for no group keeps a node in the default mode; Escalator does not see it.
TEST_F(SizeTest, WhatKeepsATaintedNode) {
  k8s::v1::Node tainted = PoolNode("tainted");
  AddTaint("atlassian.com/escalator", std::to_string(kNowMs / 1000 - 61), &tainted);
  Load(ChangesBuilder::FullList(2, 1)
           .Shape(0, PoolPod("500m"))
           .Shape(1, MakePod({}, {{"cpu", "1m"}}))
           .Node(0, PoolNode("n0"), {{0, "p", ""}})
           .Node(1, tainted, {{1, "foreign", ""}}));
  EXPECT_THAT(Names(Size().remove()), IsEmpty());
  SetMode(v1::SizeOptions::COMPAT);
  EXPECT_THAT(Names(Size().remove()), ElementsAre("tainted"));
}

// (700m, 3 GB) fits neither (900m, 1 GB) nor (100m, 4 GB); Escalator mixes the two nodes.
TEST_F(SizeTest, StarvingIsJudgedOnOnePodAndOneNode) {
  Load(ChangesBuilder::FullList(2, 1)
           .Shape(0, PoolPod("100m", "3000M"))
           .Shape(1, PoolPod("900m", "1M"))
           .Node(0, PoolNode("n0"), {{0, "p0", ""}})
           .Node(1, PoolNode("n1"), {{1, "p1", ""}}));
  options()->set_scale_on_starve(true);
  options()->set_scale_up_percent(500);
  options()->set_taint_upper_percent(2);
  options()->set_taint_lower_percent(1);
  v1::WaitingPods* const waiting = Wait(PoolPod("700m", "3000M"), 1);
  const auto reason = [&](v1::SizeOptions::Mode mode) {
    SetMode(mode);
    request_.mutable_state()->Clear();
    return Size().reason();
  };
  EXPECT_EQ(reason(v1::SizeOptions::DEFAULT), v1::GroupSize::STARVED);
  EXPECT_EQ(reason(v1::SizeOptions::COMPAT), v1::GroupSize::WITHIN_THRESHOLDS);
  // A pod that would not fit on a new node either helps nobody; Escalator asks for nodes until it may not.
  waiting->set_pod(PoolPod("1001m", "1M").SerializeAsString());
  EXPECT_EQ(reason(v1::SizeOptions::DEFAULT), v1::GroupSize::WITHIN_THRESHOLDS);
  EXPECT_EQ(reason(v1::SizeOptions::COMPAT), v1::GroupSize::STARVED);
  // On a node already, it starts up: Escalator cannot tell.
  waiting->set_waits_for(v1::WaitingPods::START);
  EXPECT_EQ(Size().pods(), 2);
  EXPECT_EQ(reason(v1::SizeOptions::COMPAT), v1::GroupSize::STARVED);
  EXPECT_EQ(reason(v1::SizeOptions::DEFAULT), v1::GroupSize::WITHIN_THRESHOLDS);
  waiting->set_waits_for(v1::WaitingPods::GATE);
  EXPECT_EQ(Size().pods(), 2);
  SetMode(v1::SizeOptions::COMPAT);
  EXPECT_EQ(Size().pods(), 3);
}

// A sidecar of 300m runs beside 200m; Escalator takes the larger one, and both add the overhead.
TEST_F(SizeTest, SidecarsCountInTheDefaultMode) {
  k8s::v1::Pod pod = PoolPod("200m");
  auto* const sidecar = pod.mutable_spec()->add_init_containers();
  sidecar->set_name("sidecar");
  sidecar->set_restart_policy("Always");
  AddEntries({{"cpu", "300m"}}, sidecar->mutable_resources()->mutable_requests());
  AddEntries({{"cpu", "50m"}}, pod.mutable_spec()->mutable_overhead());
  Wait(pod, 2);
  EXPECT_EQ(Size().requested_milli_cpu(), 1100);
  SetMode(v1::SizeOptions::COMPAT);
  EXPECT_EQ(Size().requested_milli_cpu(), 700);
}

TEST_F(SizeTest, CatchAllTakesPodsThatAskForNothing) {
  request_.mutable_groups(0)->set_catch_all(true);
  AddGroup("b", "b");
  Wait(MakePod({}, {{"cpu", "1"}}), 1);
  Wait(PoolPod(), 1);
  k8s::v1::Pod preferring = MakePod({}, {{"cpu", "1"}});
  preferring.mutable_spec()->mutable_affinity();
  Wait(preferring, 1);
  k8s::v1::Pod for_b = PoolPod("3");
  for_b.mutable_spec()->mutable_node_selector(0)->set_value("b");
  Wait(for_b, 2);
  const absl::StatusOr<v1::MeasureUtilizationResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->groups(0).pods(), 1);
  EXPECT_EQ(response->groups(1).pods(), 2);
  EXPECT_EQ(response->groups(1).requested_milli_cpu(), 6000);
}

TEST_F(SizeTest, AClusterOfItsOwn) {
  const v1::Changes cluster = WorkedExample().changes();
  request_.mutable_own()->mutable_nodes()->CopyFrom(cluster.nodes());
  request_.mutable_own()->mutable_pod_shapes()->CopyFrom(cluster.pod_shapes());
  Wait(PoolPod(), 8);
  EXPECT_EQ(Size().delta(), 6);
  // It leaves nothing behind.
  EXPECT_EQ(Size().delta(), 6);
  request_.mutable_own()->set_view("test");
  EXPECT_THAT(Refusal(), HasSubstr("own: states a view"));
}

TEST_F(SizeTest, NodesWithoutCpuEndThePass) {
  Load(ChangesBuilder::FullList(2, 1).Shape(0, PoolPod()).Node(0, PoolNode("n0", "0"), {{0, "p", ""}}));
  const v1::GroupSize size = Size();
  EXPECT_EQ(size.action(), v1::GroupSize::NOTHING);
  EXPECT_EQ(size.reason(), v1::GroupSize::NO_CAPACITY);
  EXPECT_EQ(size.utilization().kind(), v1::Utilization::NO_CAPACITY);
}

TEST_F(SizeTest, NothingAtAllIsEmpty) {
  const v1::GroupSize size = Size();
  EXPECT_EQ(size.action(), v1::GroupSize::NOTHING);
  EXPECT_EQ(size.reason(), v1::GroupSize::EMPTY);
  EXPECT_EQ(size.utilization().cpu_percent(), 0);
  request_.clear_groups();
  ASSERT_TRUE(Ask().ok());
}

struct RefusedCase {
  std::string name;
  std::function<void(v1::MeasureUtilizationRequest*)> change;
  std::string text;
};
class RefusedSizeTest : public SizeTest, public ::testing::WithParamInterface<RefusedCase> {};

TEST_P(RefusedSizeTest, NamesTheField) {
  GetParam().change(&request_);
  EXPECT_THAT(Refusal(), HasSubstr(GetParam().text));
}

template <typename Change>
auto InOptions(Change change) {
  return [change](v1::MeasureUtilizationRequest* request) {
    change(request->mutable_groups(0)->mutable_options());
  };
}
template <typename Change>
auto InGroup(Change change) {
  return [change](v1::MeasureUtilizationRequest* request) { change(request->mutable_groups(0)); };
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RefusedSizeTest,
    ::testing::ValuesIn(std::vector<RefusedCase>{
        {"NoView", [](auto* r) { r->clear_changes(); }, "has neither changes nor a cluster of its own"},
        {"NoTime", [](auto* r) { r->clear_now_milliseconds(); }, "now_milliseconds: 0 is not in [1,"},
        {"NoName", InGroup([](auto* g) { g->clear_node_group(); }), "groups[0]: node_group: is empty"},
        {"NoLabel", InGroup([](auto* g) { g->clear_labels(); }), "groups[0]: labels: has none"},
        {"NoKey", InGroup([](auto* g) { g->mutable_labels(0)->clear_key(); }), "labels: a key is empty"},
        {"Hostname", InGroup([](auto* g) { g->mutable_labels(0)->set_key("kubernetes.io/hostname"); }),
         "labels: kubernetes.io/hostname is of one node"},
        {"KeyTwice", InGroup([](auto* g) { *g->add_labels() = g->labels(0); }),
         "groups[0]: labels: key \"pool\" occurs twice"},
        {"LabelTwice",
         [](auto* r) {
           *r->add_groups() = r->groups(0);
           r->mutable_groups(1)->set_node_group("b");
         },
         "groups[1]: labels: are those of node group \"a\""},
        {"NameTwice",
         [](auto* r) {
           *r->add_groups() = r->groups(0);
           r->mutable_groups(1)->mutable_labels(0)->set_value("b");
         },
         "groups[1]: node_group \"a\" is named twice"},
        {"NoOptions", InGroup([](auto* g) { g->clear_options(); }), "groups[0]: options: missing"},
        {"NegativeTarget", InGroup([](auto* g) { g->set_cloud_target(-1); }), "cloud_target: -1 is negative"},
        {"Template", InGroup([](auto* g) { g->set_template_node("\xff"); }), "groups[0]: template_node"},
        {"Mode", InOptions([](auto* o) { o->set_mode(static_cast<v1::SizeOptions::Mode>(7)); }),
         "options: mode: 7 is not known"},
        {"MinAboveMax", InOptions([](auto* o) { o->set_min_nodes(101); }),
         "options: min_nodes: 101 is more than max_nodes, 100"},
        {"UpperAtScaleUp", InOptions([](auto* o) { o->set_taint_upper_percent(70); }),
         "taint_upper_percent: 70 is not less than scale_up_percent, 70"},
        {"LowerAboveUpper", InOptions([](auto* o) { o->set_taint_lower_percent(61); }),
         "taint_lower_percent: 61 is not less than taint_upper_percent, 60"},
        {"LowerZero", InOptions([](auto* o) { o->set_taint_lower_percent(0); }),
         "taint_lower_percent: 0 is not in [1, 1000000]"},
        {"ScaleUpTooLarge", InOptions([](auto* o) { o->set_scale_up_percent(1'000'001); }),
         "scale_up_percent: 1000001 is not in"},
        {"SlowAboveFast", InOptions([](auto* o) { o->set_slow_rate(5); }),
         "slow_rate: 5 is more than fast_rate, 4"},
        {"SlowNegative", InOptions([](auto* o) { o->set_slow_rate(-1); }), "slow_rate: -1 is not in [0,"},
        {"SoftAtHard", InOptions([](auto* o) { o->set_soft_grace_milliseconds(600'000); }),
         "soft_grace_milliseconds: 600000 is not less than hard_grace_milliseconds, 600000"},
        {"NoCoolDown", InOptions([](auto* o) { o->set_cool_down_milliseconds(0); }),
         "cool_down_milliseconds: 0 is not in [1,"},
        {"NegativeAge", InOptions([](auto* o) { o->set_max_node_age_milliseconds(-1); }),
         "max_node_age_milliseconds: -1 is not in [0,"},
        {"NewestZero", InOptions([](auto* o) { o->set_unhealthy_grace_milliseconds(1); }),
         "newest_percent: 0 is not in [1, 100]"},
        {"UnhealthyHundred", InOptions([](auto* o) {
           o->set_unhealthy_grace_milliseconds(1);
           o->set_newest_percent(1);
           o->set_max_unhealthy_percent(100);
         }),
         "max_unhealthy_percent: 100 is not in [0, 99]"},
        {"Count", [](auto* r) { r->add_pods()->set_count(-1); }, "pods[0]: count: -1 is negative"},
        {"WaitsFor", [](auto* r) { r->add_pods()->set_waits_for(static_cast<v1::WaitingPods::For>(9)); },
         "pods[0]: waits_for: 9 is not known"},
        {"State", [](auto* r) { r->mutable_state()->add_groups()->set_requested(-1); },
         "state: groups[0]: requested: -1 is not in"},
        {"CachedNode",
         [](auto* r) { r->mutable_state()->add_groups()->mutable_cached_node()->set_milli_cpu(-1); },
         "state: groups[0]: cached_node.milli_cpu: -1 is not in"},
        {"StateTwice",
         [](auto* r) {
           r->mutable_state()->add_groups();
           r->mutable_state()->add_groups();
         },
         "state: groups[1]: node_group \"\" is named twice"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace loadline
