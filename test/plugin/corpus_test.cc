// The seeds of the fuzz targets of the engine. They are made here, so that they follow the messages; run with
// LOADLINE_WRITE_CORPUS=1 to write them after a change.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "loadline/v1/drain.pb.h"
#include "loadline/v1/loop.pb.h"
#include "loadline/v1/size.pb.h"
#include "loadline/v1/slack.pb.h"
#include "test/plugin/messages.h"
#include "test/plugin/random_cluster.h"
#include "test/plugin/score_messages.h"

namespace loadline {
namespace {

using Seeds = std::map<std::string, std::vector<std::string>>;  // file -> requests

// Frames requests as the fuzz targets take them apart: two bytes of length before each.
std::string Framed(const std::vector<std::string>& requests) {
  std::string bytes;
  for (const std::string& request : requests) {
    EXPECT_LT(request.size(), 65536U);
    bytes += static_cast<char>(request.size() % 256);
    bytes += static_cast<char>(request.size() / 256);
    bytes += request;
  }
  return bytes;
}

std::vector<std::string> SyncsOf(const std::vector<ChangesBuilder>& batches) {
  std::vector<std::string> requests;
  for (const ChangesBuilder& batch : batches) requests.push_back(batch.Sync().SerializeAsString());
  return requests;
}

k8s::v1::Pod PodWithEverything() {
  k8s::v1::Pod pod =
      MakePod({{"cpu", "1500m"}, {"memory", "1.5Gi"}, {"nvidia.com/gpu", "1"}}, {{"cpu", "1e2m"}});
  pod.mutable_spec()->clear_containers();
  *pod.mutable_spec()->add_containers() = MakePod({{"cpu", "2"}}, {{"cpu", "250m"}}).spec().containers(0);
  k8s::v1::Container* const sidecar = pod.mutable_spec()->add_init_containers();
  sidecar->set_name("sidecar");
  sidecar->set_restart_policy("Always");
  AddEntries({{"memory", "64Mi"}}, sidecar->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "10m"}}, pod.mutable_spec()->mutable_overhead());
  AddEntries({{"memory", "1G"}}, pod.mutable_spec()->mutable_resources()->mutable_limits());
  k8s::v1::ContainerStatus* const status = pod.mutable_status()->add_container_statuses();
  status->set_name("app");
  AddEntries({{"cpu", "3"}}, status->mutable_resources()->mutable_limits());
  AddEntries({{"cpu", "300m"}}, status->mutable_allocated_resources());
  k8s::v1::PodCondition* const condition = pod.mutable_status()->add_conditions();
  condition->set_type("PodResizePending");
  condition->set_reason("Infeasible");
  return pod;
}

Seeds SyncSeeds() {
  Seeds seeds;
  const k8s::v1::Node node = MakeNode("c", {{"cpu", "4"}, {"memory", "16Gi"}, {"pods", "110"}});
  seeds["delta"] = SyncsOf({ChangesBuilder::Delta(1, 1, 2)
                                .Shape(1, PodWithEverything())
                                .Node(2, node, {{1, "web-0", "uid"}, {0, "web-1", ""}})
                                .Remove(1)});
  seeds["full_list"] =
      SyncsOf({ChangesBuilder::FullList(2, 1).Shape(0, PodWithEverything()).Node(0, node, {{0, "p", ""}})});
  seeds["chunks"] = SyncsOf({ChangesBuilder::Chunk(3, 5, 0, false).Shape(0, MakePod({{"cpu", "8Ei"}})),
                             ChangesBuilder::Chunk(3, 5, 1, false).Node(0, node, {{0, "p", ""}}),
                             ChangesBuilder::Chunk(3, 5, 2, true), ChangesBuilder::Delta(3, 5, 6).Remove(0)});
  seeds["swap"] =
      SyncsOf({ChangesBuilder::Delta(1, 1, 2).Node(0, MakeNode("b", {})).Node(1, MakeNode("a", {}))});
  seeds["second_view"] = SyncsOf({ChangesBuilder::FullList(1, 1).View("other/view-2").Node(7, node)});
  seeds["refused"] =
      SyncsOf({ChangesBuilder::Delta(1, 1, 2).Node(5, MakeNode("a", {})), ChangesBuilder::Delta(1, 3, 4),
               ChangesBuilder::Delta(1, 1, 2).Shape(1, MakePod({{"cpu", "-1"}}))});
  RandomCluster cluster(3);
  RandomClient client(cluster, 4);
  std::vector<ChangesBuilder> history = client.FullList(2, 1);
  for (int64_t revision = 1; revision < 6; ++revision) {
    history.push_back(client.Delta(2, revision, revision + 1, cluster.Change()));
    client.Acknowledge();
  }
  seeds["history"] = SyncsOf(history);
  return seeds;
}

Seeds ScoreSeeds() {
  Seeds seeds;
  const v1::Changes here = ChangesBuilder::At(1, 1).changes();
  const v1::ScorePolicy strict = Preset(v1::ScorePolicy::STRICT);
  seeds["all_nodes"] = {ScoreOf(here, MakePod({{"cpu", "1"}}), strict).SerializeAsString()};
  seeds["some_slots"] = {
      ScoreOf(here, PodWithEverything(), Preset(v1::ScorePolicy::KEP217), {1, 0}).SerializeAsString()};
  v1::ScorePolicy policy = Preset(v1::ScorePolicy::STRICT);
  for (const char* const resource : {"nvidia.com/gpu", "cpu"}) {
    v1::ResourceWeight* const weight = policy.add_resources();
    weight->set_resource(resource);
    weight->set_weight(3);
    v1::MissingLimitRule* const rule = policy.add_missing_limits();
    rule->set_pods(v1::MissingLimitRule::OTHERS);
    rule->set_resource(resource);
    rule->set_rule(v1::MissingLimitRule::FIXED);
    rule->set_fixed("500m");
  }
  policy.set_max_limit_ratio(-1);
  policy.set_arithmetic(v1::ScorePolicy::TRUNCATING);
  policy.set_aggregate(v1::ScorePolicy::WEIGHTED_MEAN);
  policy.set_normalization(v1::ScorePolicy::ABSOLUTE);
  const ChangesBuilder changes =
      ChangesBuilder::Delta(1, 1, 2)
          .Shape(1, MakePod({{"nvidia.com/gpu", "2"}, {"cpu", "1e30"}}))
          .Node(2, MakeNode("c", {{"cpu", "64"}, {"nvidia.com/gpu", "8"}}), {{1, "p", ""}, {1, "q", ""}});
  seeds["changes_and_options"] = {ScoreOf(changes.changes(), PodWithEverything(), policy).SerializeAsString(),
                                  ScoreOf(here, MakePod({}), strict, {0}).SerializeAsString()};
  seeds["full_list"] = {
      ScoreOf(ChangesBuilder::FullList(2, 1).Node(0, MakeNode("x", {{"memory", "8Ei"}})).changes(),
              MakePod({}), strict)
          .SerializeAsString()};
  return seeds;
}

v1::MeasureUtilizationRequest Sizing(v1::SizeOptions::Mode mode) {
  v1::MeasureUtilizationRequest request;
  k8s::v1::Node node = MakeNode("c", {{"cpu", "2"}, {"memory", "8Gi"}});
  auto* const label = node.mutable_metadata()->add_labels();
  label->set_key("pool");
  label->set_value("a");
  *request.mutable_changes() = ChangesBuilder::Delta(1, 1, 2)
                                   .Shape(1, PodWithEverything())
                                   .Node(2, node, {{1, "p", ""}, {1, "q", ""}})
                                   .changes();
  request.set_now_milliseconds(1'700'000'000'000);
  v1::SizedGroup* const group = request.add_groups();
  group->set_node_group("a");
  group->add_labels()->set_key("pool");
  group->mutable_labels(0)->set_value("a");
  group->set_catch_all(true);
  group->set_template_node(MakeNode("t", {{"cpu", "2"}}).SerializeAsString());
  v1::SizeOptions* const options = group->mutable_options();
  options->set_mode(mode);
  options->set_max_nodes(9);
  options->set_scale_up_percent(70);
  options->set_taint_upper_percent(60);
  options->set_taint_lower_percent(40);
  options->set_fast_rate(2);
  options->set_soft_grace_milliseconds(1);
  options->set_hard_grace_milliseconds(2);
  options->set_cool_down_milliseconds(60'000);
  options->set_scale_on_starve(true);
  options->set_unhealthy_grace_milliseconds(1);
  options->set_newest_percent(50);
  v1::WaitingPods* const pods = request.add_pods();
  pods->set_pod(MakePod({}, {{"cpu", "1500m"}, {"memory", "1Gi"}}).SerializeAsString());
  pods->set_count(3);
  return request;
}

// Returns a question about nodes that are in one group, with pods of no owner, which its options let move.
v1::PlanDrainRequest Draining() {
  v1::PlanDrainRequest request;
  k8s::v1::Pod pod = PodWithEverything();
  auto* const annotation = pod.mutable_metadata()->add_annotations();
  annotation->set_key("cluster-autoscaler.kubernetes.io/safe-to-evict");
  annotation->set_value("true");
  *request.mutable_changes() =
      ChangesBuilder::Delta(1, 1, 2)
          .Shape(1, pod)
          .Node(2, MakeNode("c", {{"cpu", "64"}, {"memory", "256Gi"}}), {{1, "p", "u"}})
          .Node(3, MakeNode("d", {{"cpu", "64"}, {"memory", "256Gi"}}))
          .changes();
  request.set_now_s(1'700'000'000);
  v1::DrainGroup* const group = request.add_groups();
  group->set_node_group("a");
  group->add_slots(2);
  group->add_slots(3);
  group->set_node_usd_per_hour(0.5);
  v1::DrainOptions* const options = request.mutable_options();
  options->set_scale_down_unneeded_time_s(0);
  for (const v1::ObjectKind kind :
       {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
    options->add_may_be_incomplete(kind);
  }
  v1::DrainPlaceholder* const placeholder = request.add_placeholders();
  placeholder->set_name("slack-0");
  placeholder->set_node("d");
  placeholder->set_pod(MakePod({}, {{"cpu", "1"}}).SerializeAsString());
  return request;
}

v1::PlanDrainRequest DrainingWithState() {
  v1::PlanDrainRequest request = Draining();
  v1::UnneededNode* const unneeded = request.mutable_state()->add_unneeded();
  unneeded->set_node("c");
  unneeded->set_since_s(1'699'999'000);
  v1::DestinationHint* const hint = unneeded->add_hints();
  hint->set_pod("u");
  hint->set_node("d");
  v1::FailedNode* const failed = request.mutable_state()->add_failed();
  failed->set_node("d");
  failed->set_reason("BlockedByPod");
  request.mutable_state()->set_at_s(1'699'999'990);
  v1::OwnerPods* const pods = request.mutable_state()->add_pods();
  pods->set_owner(7);
  pods->set_pods(1);
  request.mutable_state()->set_nodes(2);
  v1::EvictedPod* const evicted = request.mutable_progress()->add_evicted();
  evicted->set_pod(MakePod({}, {{"cpu", "2"}}).SerializeAsString());
  evicted->set_at_s(1'699'999'999);
  return request;
}

v1::PlanSlackRequest KeepingSlack() {
  v1::PlanSlackRequest request;
  *request.mutable_changes() = Draining().changes();
  request.set_now_seconds(1'700'000'000);
  request.mutable_policy()->set_extra_capacity_min_rate(0.25);
  request.mutable_policy()->set_reserve(v1::SlackPolicy::HULL);
  request.set_groups_known(true);
  v1::ScalableGroup* const group = request.add_groups();
  group->set_node_group("a");
  group->set_template_node(MakeNode("t", {{"cpu", "64"}, {"memory", "256Gi"}}).SerializeAsString());
  group->set_current_nodes(2);
  group->set_max_nodes(9);
  v1::PendingPods* const pods = request.add_pods();
  pods->mutable_pod()->set_pod(PodWithEverything().SerializeAsString());
  pods->set_count(2);
  return request;
}

v1::SlackState SomeSlack() {
  v1::SlackState state;
  state.set_next_id(8);
  v1::Placeholder* const placeholder = state.add_placeholders();
  placeholder->set_id(7);
  placeholder->set_kind(v1::Placeholder::STANDARD);
  placeholder->set_owner("a");
  placeholder->set_milli_cpu(500);
  placeholder->set_memory_bytes(1 << 20);
  placeholder->set_node("d");
  return state;
}

v1::PlanLoopRequest Looping() {
  const v1::PlanDrainRequest drain = Draining();
  const v1::PlanSlackRequest slack = KeepingSlack();
  v1::PlanLoopRequest request;
  *request.mutable_changes() = drain.changes();
  request.set_now_s(drain.now_s());
  v1::LoopGroup* const group = request.add_groups();
  *group->mutable_growth() = slack.groups(0);
  group->mutable_growth()->set_current_nodes(3);
  group->mutable_growth()->set_node_usd_per_hour(0.5);
  group->mutable_scale_down()->add_slots(2);
  group->mutable_scale_down()->add_slots(3);
  *request.mutable_slack() = slack.policy();
  *request.mutable_drain() = drain.options();
  return request;
}

v1::PlanLoopRequest RankingLoop() {
  v1::PlanLoopRequest request = Looping();
  v1::PendingPods* const pods = request.add_pods();
  pods->mutable_pod()->set_pod(MakePod({}, {{"cpu", "40"}}).SerializeAsString());
  pods->set_count(9);
  v1::LoopGroup* const more = request.add_groups();
  *more->mutable_growth() = request.groups(0).growth();
  more->mutable_growth()->set_node_group("b");
  more->set_priority(7);
  more->set_held("back-off");
  request.add_daemon_pods(MakePod({}, {{"cpu", "100m"}}).SerializeAsString());
  request.mutable_ranking()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  request.mutable_ranking()->add_strategies(v1::RankPolicy::LEAST_WASTE);
  *request.mutable_state()->mutable_slack() = SomeSlack();
  *request.mutable_state()->mutable_drain() = DrainingWithState().state();
  request.mutable_progress()->add_started("c");
  return request;
}

// A group that grows by how full it is.
v1::PlanLoopRequest SizingLoop() {
  const v1::MeasureUtilizationRequest sizing = Sizing(v1::SizeOptions::DEFAULT);
  v1::PlanLoopRequest request = Looping();
  *request.mutable_changes() = sizing.changes();
  v1::LoopGroup* const group = request.mutable_groups(0);
  group->mutable_growth()->set_current_nodes(1);
  group->mutable_scale_down()->clear_slots();
  group->mutable_scale_down()->add_slots(2);
  *request.add_sized() = sizing.groups(0);
  request.mutable_sized(0)->clear_template_node();  // that of `groups` holds
  v1::PendingPods* const pods = request.add_pods();
  pods->mutable_pod()->set_pod(sizing.pods(0).pod());
  pods->set_count(sizing.pods(0).count());
  return request;
}

// A group with a machine of each kind, a removal that nobody continues, and how an action ended.
v1::PlanLoopRequest FleetLoop() {
  v1::PlanLoopRequest request = Looping();
  v1::LoopFleet* const fleet = request.mutable_fleet();
  fleet->set_now_milliseconds(request.now_s() * 1000);
  fleet->set_acts(true);
  v1::FleetOptions* const options = fleet->mutable_options();
  options->set_max_node_provision_milliseconds(900'000);
  options->set_max_node_startup_milliseconds(900'000);
  options->set_initial_back_off_milliseconds(300'000);
  options->set_max_back_off_milliseconds(1'800'000);
  options->set_max_deletions(3);
  options->set_max_soft_taints(2);
  v1::LoopGroup* const group = request.mutable_groups(0);
  group->mutable_growth()->clear_current_nodes();
  group->clear_held();
  const int32_t slot = group->scale_down().slots(0);
  group->mutable_scale_down()->clear_slots();
  v1::CloudGroup* const cloud = group->mutable_cloud();
  cloud->set_target(4);
  cloud->set_cloud_template(true);
  cloud->add_machines()->set_id("coming");
  cloud->mutable_machines(0)->set_state(v1::CloudMachine::CREATING);
  cloud->add_machines()->set_id("failed");
  cloud->mutable_machines(1)->mutable_fault()->set_code("STOCK_OUT");
  cloud->add_machines()->set_id("ready");
  cloud->mutable_machines(2)->set_slot(slot);
  v1::ActionOutcome* const outcome = fleet->add_outcomes();
  outcome->set_id(1);
  outcome->set_result(v1::ActionOutcome::FAILED);
  fleet->add_removals()->set_node_group("g");
  fleet->add_acknowledged("uid");
  fleet->add_marks()->set_slot(slot);
  fleet->add_under_way()->set_node_group("g");
  return request;
}

// The method is before each request, as a letter.
Seeds PlannerSeeds() {
  Seeds seeds;
  v1::MeasureUtilizationRequest with_state = Sizing(v1::SizeOptions::DEFAULT);
  v1::GroupSizeState* const state = with_state.mutable_state()->add_groups();
  state->set_node_group("a");
  state->mutable_cached_node()->set_milli_cpu(1000);
  state->set_locked_milliseconds(1'699'999'990'000);
  seeds["size"] = {"s" + Sizing(v1::SizeOptions::DEFAULT).SerializeAsString(),
                   "s" + Sizing(v1::SizeOptions::COMPAT).SerializeAsString()};
  seeds["size_with_state"] = {"s" + with_state.SerializeAsString()};
  seeds["drain"] = {"d" + Draining().SerializeAsString()};
  v1::PlanSlackRequest slack_with_state = KeepingSlack();
  *slack_with_state.mutable_state() = SomeSlack();
  seeds["slack"] = {"k" + KeepingSlack().SerializeAsString()};
  seeds["slack_with_state"] = {"k" + slack_with_state.SerializeAsString()};
  seeds["loop"] = {"l" + Looping().SerializeAsString()};
  seeds["loop_with_state"] = {"l" + RankingLoop().SerializeAsString()};
  seeds["loop_sized"] = {"l" + SizingLoop().SerializeAsString()};
  seeds["loop_of_a_fleet"] = {"l" + FleetLoop().SerializeAsString()};
  seeds["drain_with_state"] = {"d" + DrainingWithState().SerializeAsString()};
  return seeds;
}

void ExpectSeeds(const std::string& target, const Seeds& seeds) {
  const std::filesystem::path folder =
      std::filesystem::path(LOADLINE_SOURCE_DIR) / "test" / "fuzz" / "corpus" / target;
  for (const auto& [name, requests] : seeds) {
    const std::string expected = Framed(requests);
    if (std::getenv("LOADLINE_WRITE_CORPUS") != nullptr) {
      std::filesystem::create_directories(folder);
      std::ofstream(folder / name, std::ios::binary) << expected;
    }
    std::ifstream file(folder / name, std::ios::binary);
    const std::string stored(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(stored, expected) << folder / name;
  }
}

TEST(CorpusTest, HoldsTheSeeds) {
  ExpectSeeds("sync", SyncSeeds());
  ExpectSeeds("score", ScoreSeeds());
  ExpectSeeds("planner", PlannerSeeds());
}

}  // namespace
}  // namespace loadline
