// Every option of MeasureUtilization that bears on a decision: a case that it turns, and on which side of the
// turn it lies. All numbers follow from 1000m a node and what the pods of a node request.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/plugin/size_question.h"

namespace loadline {
namespace {

struct OptionCase {
  std::string name;
  // The cluster: so many nodes, each with a pod that requests so much, and more as `setup` adds.
  int nodes;
  int milli_cpu;
  std::function<void(v1::MeasureUtilizationRequest*)> setup;
  std::string before;
  std::function<void(v1::MeasureUtilizationRequest*)> change;
  std::string after;
  // Changes of node 0: not ready; and of all nodes: with a DaemonSet pod of 100m. One more node that was
  // tainted so long ago.
  bool not_ready = false;
  bool daemons = false;
  int tainted_s = 0;
  bool tainted_empty = true;
};

std::string Summary(const v1::GroupSize& size) {
  std::string text = absl::StrCat(size.reason_text(), ": ", size.delta());
  const auto add = [&](absl::string_view what, int64_t count) {
    if (count > 0) absl::StrAppend(&text, ", ", what, " ", count);
  };
  add("ask", size.ask_cloud());
  add("unhealthy", size.taint_unhealthy_size());
  add("untaint", size.untaint_size());
  add("taint", size.taint_size());
  add("remove", size.remove_size());
  return text;
}

class SizeOptionsTest : public SizeQuestion, public ::testing::WithParamInterface<OptionCase> {
 protected:
  void LoadCluster() {
    const OptionCase& c = GetParam();
    k8s::v1::Pod daemon = MakePod({}, {{"cpu", "100m"}});
    OwnedBy("DaemonSet", &daemon);
    ChangesBuilder cluster = ChangesBuilder::FullList(2, 1);
    cluster.Shape(0, PoolPod(absl::StrCat(c.milli_cpu, "m"))).Shape(1, daemon).Shape(2, PoolPod("0"));
    for (int i = 0; i < c.nodes; ++i) {
      k8s::v1::Node node = PoolNode(absl::StrCat("n", i));
      if (i == 0 && c.not_ready) {
        auto* const condition = node.mutable_status()->add_conditions();
        condition->set_type("Ready");
        condition->set_status("False");
      }
      std::vector<PodOnNode> pods = {{0, absl::StrCat("p", i), ""}};
      if (c.daemons) pods.push_back({1, absl::StrCat("d", i), ""});
      cluster.Node(i, node, pods);
    }
    if (c.tainted_s > 0) {
      k8s::v1::Node node = PoolNode("tainted");
      AddTaint("atlassian.com/escalator", absl::StrCat(kNowMs / 1000 - c.tainted_s), &node);
      std::vector<PodOnNode> pods;
      if (!c.tainted_empty) pods.push_back({2, "left", ""});
      cluster.Node(c.nodes, node, pods);
    }
    Load(cluster);
  }
};

TEST_P(SizeOptionsTest, TurnsTheDecision) {
  LoadCluster();
  request_.mutable_state();
  if (GetParam().setup) GetParam().setup(&request_);
  EXPECT_EQ(Summary(Size()), GetParam().before);
  GetParam().change(&request_);
  EXPECT_EQ(Summary(Size()), GetParam().after);
}

template <typename Change>
auto Options(Change change) {
  return [change](v1::MeasureUtilizationRequest* request) {
    change(request->mutable_groups(0)->mutable_options());
  };
}
template <typename Change>
auto Group(Change change) {
  return [change](v1::MeasureUtilizationRequest* request) { change(request->mutable_groups(0)); };
}
// Changes the state of the group.
template <typename Change>
auto State(Change change) {
  return [change](v1::MeasureUtilizationRequest* request) {
    request->mutable_state()->Clear();
    v1::GroupSizeState* const state = request->mutable_state()->add_groups();
    state->set_node_group("a");
    change(state);
  };
}
auto Waits(const k8s::v1::Pod& pod, int32_t count = 1) {
  return [pod, count](v1::MeasureUtilizationRequest* request) {
    request->add_pods()->set_pod(pod.SerializeAsString());
    request->mutable_pods(0)->set_count(count);
  };
}
void Cached(v1::GroupSizeState* state) {
  state->mutable_cached_node()->set_milli_cpu(1000);
  state->mutable_cached_node()->set_memory_bytes(4'000'000'000);
}
void Healthy(int32_t newest, int32_t most, v1::SizeOptions* options) {
  options->set_unhealthy_grace_milliseconds(1);
  options->set_newest_percent(newest);
  options->set_max_unhealthy_percent(most);
}

// 90 % on ten nodes: 9000 / 700 = 12.9, three more.
constexpr char kThreeMore[] = "above the scale-up threshold: 3, ask 3";
constexpr char kAtRest[] = "within thresholds: 0";
constexpr char kUnhealthy[] = "too many nodes are not ready: 0, unhealthy 1";

INSTANTIATE_TEST_SUITE_P(
    Cases, SizeOptionsTest,
    ::testing::ValuesIn(std::vector<OptionCase>{
        // 2100m at 70 % of 1000m are exactly three nodes; doubles say 3.0000000000000004.
        {"Mode", 0, 0,
         [](auto* r) {
           Waits(PoolPod("700m"), 3)(r);
           State(Cached)(r);
         },
         "pods and no node: 3, ask 3", Options([](auto* o) { o->set_mode(v1::SizeOptions::COMPAT); }),
         "pods and no node: 4, ask 4"},
        {"MinNodes", 10, 100, nullptr, "below the lower taint threshold: -4, taint 4",
         Options([](auto* o) { o->set_min_nodes(8); }), "below the lower taint threshold: -2, taint 2"},
        {"MaxNodes", 10, 100, nullptr, "below the lower taint threshold: -4, taint 4",
         Options([](auto* o) { o->set_max_nodes(3); }), "above the maximum: -7, taint 7"},
        {"CloudMin", 10, 100, nullptr, "below the lower taint threshold: -4, taint 4",
         Options([](auto* o) { o->set_cloud_min(9); }), "below the lower taint threshold: -1, taint 1"},
        {"CloudMax", 10, 900, nullptr, kThreeMore, Options([](auto* o) { o->set_cloud_max(11); }),
         "above the scale-up threshold: 1, ask 1"},
        {"ScaleUpPercent", 10, 900, nullptr, kThreeMore,
         Options([](auto* o) { o->set_scale_up_percent(90); }), kAtRest},
        {"TaintUpperPercent", 10, 500, nullptr, "below the upper taint threshold: -1, taint 1",
         Options([](auto* o) { o->set_taint_upper_percent(50); }), kAtRest},
        {"TaintLowerPercent", 10, 300, nullptr, "below the lower taint threshold: -4, taint 4",
         Options([](auto* o) { o->set_taint_lower_percent(30); }),
         "below the upper taint threshold: -1, taint 1"},
        {"SlowRate", 10, 500, nullptr, "below the upper taint threshold: -1, taint 1",
         Options([](auto* o) { o->set_slow_rate(2); }), "below the upper taint threshold: -2, taint 2"},
        {"FastRate", 10, 100, nullptr, "below the lower taint threshold: -4, taint 4",
         Options([](auto* o) { o->set_fast_rate(5); }), "below the lower taint threshold: -5, taint 5"},
        {.name = "SoftGrace",
         .nodes = 10,
         .milli_cpu = 650,
         .before = "within thresholds: 0, remove 1",
         .change = Options([](auto* o) { o->set_soft_grace_milliseconds(61'000); }),
         .after = kAtRest,
         .tainted_s = 61},
        {.name = "HardGrace",
         .nodes = 10,
         .milli_cpu = 650,
         .before = "within thresholds: 0, remove 1",
         .change = Options([](auto* o) { o->set_hard_grace_milliseconds(601'000); }),
         .after = kAtRest,
         .tainted_s = 601,
         .tainted_empty = false},
        {"CoolDown", 10, 900, State([](auto* s) { s->set_locked_milliseconds(kNowMs - 120'000); }),
         kThreeMore, Options([](auto* o) { o->set_cool_down_milliseconds(120'001); }),
         "scaled up a short time ago: 0"},
        // 69 %; what waits needs 400m, and 350m are left on each node.
        {"ScaleOnStarve", 10, 650, Waits(PoolPod("400m")), kAtRest,
         Options([](auto* o) { o->set_scale_on_starve(true); }), "a pending pod fits on no node: 1, ask 1"},
        {"MaxNodeAge", 10, 650, Options([](auto* o) { o->set_min_nodes(10); }), kAtRest,
         Options([](auto* o) { o->set_max_node_age_milliseconds(kHourS * 1000 - 1); }),
         "a node is too old: 1, ask 1"},
        // Without its node that is not ready the group lacks four; it is left alone nonetheless.
        {.name = "UnhealthyGrace",
         .nodes = 10,
         .milli_cpu = 900,
         .setup = Options([](auto* o) {
           Healthy(100, 9, o);
           o->set_unhealthy_grace_milliseconds(0);
         }),
         .before = kThreeMore,
         .change = Options([](auto* o) { o->set_unhealthy_grace_milliseconds(1); }),
         .after = kUnhealthy,
         .not_ready = true},
        {.name = "NewestPercent",
         .nodes = 10,
         .milli_cpu = 900,
         .setup = Options([](auto* o) { Healthy(10, 50, o); }),
         .before = kUnhealthy,
         .change = Options([](auto* o) { o->set_newest_percent(100); }),
         .after = "above the scale-up threshold: 4, ask 4, unhealthy 1",
         .not_ready = true},
        {.name = "MaxUnhealthyPercent",
         .nodes = 10,
         .milli_cpu = 900,
         .setup = Options([](auto* o) { Healthy(100, 9, o); }),
         .before = kUnhealthy,
         .change = Options([](auto* o) { o->set_max_unhealthy_percent(10); }),
         .after = "above the scale-up threshold: 4, ask 4, unhealthy 1",
         .not_ready = true},
        // 6500 of 9000 are 72.2 %; of 9900 65.7 %.
        {.name = "IgnoreDaemonSets",
         .nodes = 10,
         .milli_cpu = 650,
         .before = "above the scale-up threshold: 1, ask 1",
         .change = Options([](auto* o) { o->set_ignore_daemon_sets(true); }),
         .after = kAtRest,
         .daemons = true},
        {"CloudTarget", 10, 900, nullptr, kThreeMore, Group([](auto* g) { g->set_cloud_target(13); }),
         "the nodes that it lacks are on their way: 0"},
        {"TemplateNode", 0, 0, Waits(PoolPod("450m"), 4), "pods and no node: 1, ask 1",
         Group([](auto* g) { g->set_template_node(PoolNode("t", "500m").SerializeAsString()); }),
         "pods and no node: 6, ask 6"},
        {"Labels", 10, 900, nullptr, kThreeMore, Group([](auto* g) { g->mutable_labels(0)->set_value("b"); }),
         "neither nodes nor pods: 0"},
        {"CatchAll", 0, 0, Waits(MakePod({}, {{"cpu", "1"}})), "neither nodes nor pods: 0",
         Group([](auto* g) { g->set_catch_all(true); }), "pods and no node: 1, ask 1"},
        {"CachedNode", 0, 0, Waits(PoolPod("450m"), 4), "pods and no node: 1, ask 1", State(Cached),
         "pods and no node: 3, ask 3"},
        {"Expected", 10, 900, nullptr, kThreeMore, State([](auto* s) {
           s->set_expected(13);
           s->set_locked_milliseconds(kNowMs - 899'999);
         }),
         "the nodes that it lacks are on their way: 0"},
        {"ExpectedTooLong", 10, 900, nullptr, kThreeMore, State([](auto* s) {
           s->set_expected(13);
           s->set_locked_milliseconds(kNowMs - 900'000);
         }),
         kThreeMore},
        {"Locked", 10, 900, nullptr, kThreeMore,
         State([](auto* s) { s->set_locked_milliseconds(kNowMs - 1); }), "scaled up a short time ago: 0"},
        {"Requested", 10, 900,
         [](auto* r) {
           Options([](auto* o) { o->set_mode(v1::SizeOptions::COMPAT); })(r);
           State([](auto* s) { s->set_locked_milliseconds(kNowMs - 1); })(r);
         },
         "scaled up a short time ago: 0",
         [](auto* r) { r->mutable_state()->mutable_groups(0)->set_requested(5); },
         "scaled up a short time ago: 5"},
    }),
    [](const auto& info) { return info.param.name; });

// The placeholders of this engine are in "shop": one that waits there is no demand, its like elsewhere is.
TEST(SizePlaceholdersTest, AreThoseOfTheNamespaceOfTheEngine) {
  EngineLimits limits;
  limits.slack_namespace = "shop";
  for (const auto& [name, demand] : {std::pair("shop", 0), {"loadline-slack", 1}}) {
    TypedEngine engine(limits);
    ASSERT_TRUE(engine.Sync(ChangesBuilder::FullList(1, 1).Node(0, PoolNode("a"))).ok());
    k8s::v1::Pod pod = PoolPod();
    pod.mutable_metadata()->set_namespace_(name);
    OwnedBy("ReplicaSet", &pod);
    pod.mutable_metadata()->mutable_owner_references(0)->set_api_version("apps/v1");
    pod.mutable_spec()->set_priority(-10);
    pod.mutable_metadata()->add_labels()->set_key("loadline.dev/placeholder");
    v1::MeasureUtilizationRequest request;
    *request.mutable_changes() = ChangesBuilder::At(1, 1).changes();
    request.set_now_milliseconds(kNowMs);
    v1::SizedGroup* const group = request.add_groups();
    group->set_node_group("a");
    group->add_labels()->set_key("pool");
    group->mutable_labels(0)->set_value("a");
    *group->mutable_options() = SizeTestOptions();
    request.add_pods()->set_pod(pod.SerializeAsString());
    request.mutable_pods(0)->set_count(1);
    const absl::StatusOr<std::string> bytes =
        engine.CallBytes("/loadline.v1.Autoscaler/MeasureUtilization", request.SerializeAsString());
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    v1::MeasureUtilizationResponse response;
    ASSERT_TRUE(response.ParseFromString(*bytes));
    EXPECT_EQ(response.groups(0).pods(), demand) << name;
  }
}

}  // namespace
}  // namespace loadline
