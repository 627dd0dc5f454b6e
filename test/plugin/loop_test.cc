// Autoscaler.PlanLoop, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
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
    LoadCluster();
    *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  }

  void LoadCluster() {
    ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
    builder.Shape(0, OneCore()).Node(0, TwoCores("a"), {{0, "web-0", "u0"}}).Node(1, TwoCores("b"));
    EXPECT_TRUE(engine_.Sync(builder).ok());
  }

  void Pending(int32_t count) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(OneCore().SerializeAsString());
    pods->set_count(count);
  }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  std::string Refusal() { return std::string(engine_.PlanLoop(request_).status().message()); }

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

// Twice what pods request is kept, then none is wanted any more: it stays for as long as slack is kept at
// least, also where another process asks meanwhile, of an engine that knows nothing.
TEST_F(LoopHandlerTest, SlackOutlivesTheProcess) {
  v1::FleetOptions* const options = request_.mutable_fleet()->mutable_options();
  options->set_max_node_provision_milliseconds(900'000);
  options->set_initial_back_off_milliseconds(1);
  options->set_max_back_off_milliseconds(1);
  v1::LoopGroup* const group = request_.mutable_groups(0);
  group->mutable_growth()->clear_current_nodes();
  group->mutable_scale_down()->clear_slots();
  group->mutable_cloud()->set_target(2);
  for (const int32_t slot : {0, 1}) {
    v1::CloudMachine* const machine = group->mutable_cloud()->add_machines();
    machine->set_id(slot == 0 ? "a" : "b");
    machine->set_slot(slot);
  }
  const auto plan_at = [&](int64_t seconds) {
    request_.set_now_s(kNow + seconds);
    request_.mutable_fleet()->set_now_milliseconds((kNow + seconds) * 1000);
    v1::PlanLoopResponse plan = Plan();
    request_.mutable_fleet()->set_state(plan.fleet().state());
    int64_t placeholders = 0;
    for (const v1::ShapeSlack& shape : plan.slack().shapes()) placeholders += shape.count();
    return placeholders;
  };
  request_.mutable_slack()->set_extra_capacity_min_rate(2);
  request_.mutable_slack()->set_removal_delay_seconds(600);
  const int64_t most = plan_at(0);
  EXPECT_GT(most, 1);
  request_.mutable_slack()->set_extra_capacity_min_rate(0);
  EXPECT_EQ(plan_at(1), most);

  ASSERT_TRUE(engine_.Drop("test").ok());
  LoadCluster();
  EXPECT_EQ(plan_at(600), most);
  EXPECT_EQ(plan_at(601), 0);
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
  // A node on which pods are expected is not removed, and one that could be waits.
  EXPECT_EQ(plan.scale_down().status(), "ScaleDownNoCandidates");
  EXPECT_THAT(plan.scale_down().remove(), SizeIs(0));
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
  EXPECT_EQ(plan.no_scale_down(), "");
  EXPECT_TRUE(plan.has_scale_down());
}

// Two nodes are there and one is on its way; pods need two more.
TEST_F(LoopHandlerTest, NodesOnTheirWayCountTowardsTheMaximumOfTheCluster) {
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(3);
  request_.mutable_groups(0)->mutable_growth()->set_max_nodes(10);
  request_.clear_slack();
  Pending(9);  // 3 + 2 find a place, 4 need two nodes
  const auto new_nodes = [&] {
    const v1::PlanLoopResponse plan = Plan();
    int64_t nodes = 0;
    for (const v1::LoopGrowth& growth : plan.growth()) {
      nodes += growth.nodes_for_pods() + growth.nodes_for_slack();
    }
    return nodes;
  };
  request_.set_max_nodes_total(5);
  EXPECT_EQ(new_nodes(), 2);
  request_.set_max_nodes_total(4);
  EXPECT_EQ(new_nodes(), 1);
  request_.set_max_nodes_total(3);
  EXPECT_EQ(new_nodes(), 0);
}

// a and b offer four cores and 16 GiB; pods need two nodes more.
TEST_F(LoopHandlerTest, MaximaOfTheClusterHoldGrowth) {
  Pending(6);
  request_.set_max_cores_total(8);
  request_.set_max_memory_total(int64_t{32} << 30);
  v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
  ASSERT_THAT(plan.at_maximum(), SizeIs(1));
  EXPECT_EQ(plan.at_maximum(0).node_group(), "workers");
  EXPECT_THAT(plan.at_maximum(0).resources(), ElementsAre("cpu", "memory"));
  request_.set_max_cores_total(7);
  plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 1);
  EXPECT_THAT(plan.at_maximum(0).resources(), ElementsAre("cpu"));
  request_.clear_max_cores_total();
  request_.set_max_memory_total(0);
  plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(0)) << "0 is a limit";
  EXPECT_THAT(plan.at_maximum(0).resources(), ElementsAre("memory"));
  request_.clear_max_memory_total();
  plan = Plan();
  EXPECT_THAT(plan.growth(), SizeIs(1));
  EXPECT_THAT(plan.at_maximum(), SizeIs(0));
}

// Entries of equal pods are one kind of pods: the first and the last of all of them count.
TEST_F(LoopHandlerTest, GrowthWaitsForPodsThatComeTogether) {
  Pending(3);
  Pending(3);
  const auto ages = [&](int entry, int64_t first, int64_t last) {
    request_.mutable_pods(entry)->set_first_age_milliseconds(first);
    request_.mutable_pods(entry)->set_last_age_milliseconds(last);
  };
  request_.set_batch_idle_milliseconds(1'000);
  request_.set_batch_max_milliseconds(10'000);
  ages(0, 4'000, 4'000);
  ages(1, 700, 300);
  v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.batch_wait_milliseconds(), 700);
  EXPECT_THAT(plan.growth(), SizeIs(0));
  EXPECT_EQ(plan.no_scale_down(), "groups grow");
  ages(0, 9'900, 4'000);
  EXPECT_EQ(Plan().batch_wait_milliseconds(), 100);
  request_.mutable_pods(0)->clear_first_age_milliseconds();
  request_.mutable_pods(0)->clear_last_age_milliseconds();
  plan = Plan();
  EXPECT_EQ(plan.batch_wait_milliseconds(), 0) << "they came long ago";
  EXPECT_THAT(plan.growth(), SizeIs(1));
  request_.set_since_growth_milliseconds(9'800);
  EXPECT_EQ(Plan().batch_wait_milliseconds(), 200);
  request_.set_batch_idle_milliseconds(0);
  EXPECT_THAT(Plan().growth(), SizeIs(1));
}

// Beside "workers" a group of nodes of one core for 0.2 and one of four cores for 1.2, without a limit that
// counts. a and b take three of seven pods: four are left.
TEST_F(LoopHandlerTest, TheOptionThatRanksBestGrows) {
  const auto add = [&](const std::string& name, const std::string& cpu, double usd) {
    v1::ScalableGroup* const group = request_.add_groups()->mutable_growth();
    group->set_node_group(name);
    group->set_template_node(
        MakeNode(name, {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "10"}}).SerializeAsString());
    group->set_max_nodes(100);
    group->set_node_usd_per_hour(usd);
  };
  add("small", "1", 0.2);
  add("large", "4", 1.2);
  request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  Pending(7);
  const auto grows = [&] {
    const v1::PlanLoopResponse plan = Plan();
    std::string text;
    for (const v1::LoopGrowth& growth : plan.growth()) {
      text += growth.node_group() + " " + std::to_string(growth.nodes_for_pods());
    }
    EXPECT_EQ(plan.ranking().options_size(), request_.has_ranking() ? 3 : 0);
    EXPECT_EQ(plan.scale_up().unplaced_size(), 0);
    return text;
  };
  EXPECT_EQ(grows(), "small 4") << "four for 0.2 are the cheapest mix";

  request_.mutable_ranking()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  request_.mutable_ranking()->add_strategies(v1::RankPolicy::LEAST_NODES);
  EXPECT_EQ(grows(), "large 1");
  // 8 GiB for one pod of 1 GiB leave more over than 8 GiB for four.
  request_.mutable_ranking()->set_strategies(0, v1::RankPolicy::LEAST_WASTE);
  EXPECT_EQ(grows(), "large 1");
  request_.mutable_ranking()->set_strategies(0, v1::RankPolicy::PRIORITY);
  request_.mutable_groups(0)->set_priority(5);
  request_.mutable_groups(1)->set_priority(10);
  EXPECT_EQ(grows(), "small 4");
  request_.mutable_groups(0)->set_priority(20);
  EXPECT_EQ(grows(), "workers 2");
  EXPECT_EQ(Plan().ranking().options(0).option(), 0);
  EXPECT_EQ(Plan().ranking().cluster_nodes(), 2);
  // Two nodes: one core is preferred. The price of small is 4 * 0.2 with unfitness 1, that of large 1.2 with
  // a larger one.
  request_.mutable_ranking()->set_strategies(0, v1::RankPolicy::PRICE);
  EXPECT_EQ(grows(), "small 4");
  EXPECT_EQ(Plan().ranking().preferred_node().milli_cpu(), 1000);
  // A group that may not grow is no option.
  request_.mutable_groups(1)->set_held("back-off");
  EXPECT_EQ(Plan().ranking().options_size(), 2);
}

TEST_F(LoopHandlerTest, OneGroupPerLoopGrowsByRanking) {
  request_.mutable_ranking()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  v1::ScalableGroup* const group = request_.add_groups()->mutable_growth();
  *group = request_.groups(0).growth();
  group->set_node_group("more");
  group->set_current_nodes(0);
  group->set_node_usd_per_hour(0.6);
  request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  Pending(9);  // 3 on a and b, 4 on the two nodes that "workers" may still have
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  // With six pods on three nodes "more" costs 1.8, with four on two "workers" costs 1: by cost per what is
  // asked for the latter is cheaper, and two pods are left for the next loop.
  EXPECT_EQ(plan.growth(0).node_group(), "workers");
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
  ASSERT_THAT(plan.scale_up().unplaced(), SizeIs(1));
  EXPECT_EQ(plan.scale_up().unplaced(0).count(), 2);
}

TEST_F(LoopHandlerTest, AGroupWithoutAPriceGrowsByRankingOnly) {
  request_.mutable_groups(0)->mutable_growth()->clear_node_usd_per_hour();
  request_.mutable_prices()->set_last_source(v1::NodePrice::GIVEN);
  request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
  Pending(6);
  EXPECT_THAT(Plan().growth(), SizeIs(0));
  request_.mutable_ranking()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
  EXPECT_EQ(plan.ranking().options(0).outcome(), v1::RankedOption::NO_PRICE);
}

// The pod is expected on a, whose cluster does not have that name: the drain of b, where it could go as well,
// asks for its room by the cluster's names.
TEST_F(LoopHandlerTest, APodThatWaitsMayAskForNoneOfWhatTheClusterDoesNotHave) {
  v1::PendingPods* const pods = request_.add_pods();
  pods->mutable_pod()->set_pod(MakePod({}, {{"cpu", "100m"}, {"example.com/foo", "0"}}).SerializeAsString());
  pods->set_count(1);
  for (int loop = 0; loop < 2; ++loop) {
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.existing(), SizeIs(1));
    EXPECT_EQ(plan.existing(0).pods().count(), 1);
    EXPECT_THAT(plan.growth(), SizeIs(0));
    ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
    EXPECT_EQ(plan.scale_down().remove(0).node(), "b");
  }
}

TEST_F(LoopHandlerTest, ACompactAnswerLeavesOutWhatIsKnown) {
  EXPECT_TRUE(Plan().has_state());
  request_.set_compact(true);
  const v1::PlanLoopResponse compact = Plan();
  EXPECT_FALSE(compact.has_state());
  ASSERT_THAT(compact.scale_down().remove(), SizeIs(1));
  EXPECT_EQ(compact.scale_down().remove(0).slot(), 1);
  ASSERT_THAT(compact.slack().shapes(), SizeIs(1));
  EXPECT_EQ(compact.slack().shapes(0).placed(), 1);
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

// Slack names the nodes that are no machines in a loop that removes no nodes.
TEST_F(LoopHandlerTest, NodesThatAreNoMachinesAreNamedOnce) {
  k8s::v1::Node server = TwoCores("server");
  server.mutable_metadata()->add_labels()->set_key("node-role.kubernetes.io/control-plane");
  ChangesBuilder builder = ChangesBuilder::FullList(1, 2);
  builder.Shape(0, OneCore()).Node(0, TwoCores("a"), {{0, "web-0", "u0"}}).Node(1, TwoCores("b"));
  ASSERT_TRUE(engine_.Sync(builder.Node(2, server)).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 2).changes();
  v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.scale_down().other_nodes().control_plane(), 1);
  EXPECT_FALSE(plan.slack().has_other_nodes());
  request_.add_decisions(v1::PlanLoopRequest::SLACK);
  plan = Plan();
  EXPECT_EQ(plan.slack().other_nodes().control_plane(), 1);
  ASSERT_THAT(plan.slack().other_nodes().first(), SizeIs(1));
  EXPECT_EQ(plan.slack().other_nodes().first(0).node(), "server");
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

struct BadInput {
  std::string refusal;  // a part of it
  std::function<void(v1::PlanLoopRequest*)> change;
};

TEST_F(LoopHandlerTest, BadInputNamesTheField) {
  const BadInput cases[] = {
      {"has neither changes nor a cluster of its own", [](auto* r) { r->clear_changes(); }},
      {"own: states a view", [](auto* r) { r->mutable_own()->set_view("x"); }},
      {"changes: view", [](auto* r) { r->mutable_changes()->set_view("A"); }},
      {"now_s", [](auto* r) { r->set_now_s(0); }},
      {"now_s", [](auto* r) { r->set_now_s((int64_t{1} << 40) + 1); }},
      {"seen_s", [](auto* r) { r->set_seen_s(-1); }},
      {"decisions[0]: 0 is not a decision",
       [](auto* r) { r->add_decisions(v1::PlanLoopRequest::DECISION_UNSPECIFIED); }},
      {"groups: has 1001 entries",
       [](auto* r) {
         for (int i = 0; i < 1000; ++i) r->add_groups();
       }},
      {"groups[1]: node_group: is empty", [](auto* r) { r->add_groups(); }},
      {"groups[1]: node_group \"workers\" is named twice",
       [](auto* r) { r->add_groups()->mutable_growth()->set_node_group("workers"); }},
      {"groups[0]: scale_down: states the name, target",
       [](auto* r) { r->mutable_groups(0)->mutable_scale_down()->set_target(3); }},
      {"groups[0] \"workers\": slot 7 holds no node",
       [](auto* r) { r->mutable_groups(0)->mutable_scale_down()->add_slots(7); }},
      {"pods[0]: count: -1 is negative", [](auto* r) { r->add_pods()->set_count(-1); }},
      {"prices: spot_factor", [](auto* r) { r->mutable_prices()->set_spot_factor(2); }},
      {"usd_per_further_type", [](auto* r) { r->set_usd_per_further_type(-1); }},
      {"usd_per_further_type", [](auto* r) { r->set_usd_per_further_type(std::nan("")); }},
      {"max_new_nodes: -1 is negative", [](auto* r) { r->set_max_new_nodes(-1); }},
      {"max_nodes_total: -1 is negative", [](auto* r) { r->set_max_nodes_total(-1); }},
      {"max_cores_total: -1 is not in [0, 2147483647]", [](auto* r) { r->set_max_cores_total(-1); }},
      {"max_cores_total: 2147483648", [](auto* r) { r->set_max_cores_total(int64_t{1} << 31); }},
      {"max_memory_total: 4611686018427387905",
       [](auto* r) { r->set_max_memory_total((int64_t{1} << 62) + 1); }},
      {"batch_idle_milliseconds: -1", [](auto* r) { r->set_batch_idle_milliseconds(-1); }},
      {"batch_max_milliseconds: -1", [](auto* r) { r->set_batch_max_milliseconds(-1); }},
      {"since_growth_milliseconds: -1", [](auto* r) { r->set_since_growth_milliseconds(-1); }},
      {"pods[0]: first_age_milliseconds: -1", [](auto* r) { r->add_pods()->set_first_age_milliseconds(-1); }},
      {"pods[0]: last_age_milliseconds: 1", [](auto* r) { r->add_pods()->set_last_age_milliseconds(1); }},
      {"slack: extra_capacity_min_rate",
       [](auto* r) { r->mutable_slack()->set_extra_capacity_min_rate(-1); }},
      {"drain: scale_down_utilization_threshold",
       [](auto* r) { r->mutable_drain()->set_scale_down_utilization_threshold(2); }},
      {"pools[0]: slot 7 holds no node",
       [](auto* r) {
         r->add_pools()->set_name("p");
         r->mutable_pools(0)->set_slot(7);
       }},
      {"fit", [](auto* r) { r->mutable_fit()->set_added_affinity("x"); }},
      {"state.slack: next_id", [](auto* r) { r->mutable_state()->mutable_slack()->add_placeholders(); }},
      {"state: unneeded[0].since_s",
       [](auto* r) { r->mutable_state()->mutable_drain()->add_unneeded()->set_since_s(-1); }},
      {"progress: evicted[0]: at_s: -1", [](auto* r) { r->mutable_progress()->add_evicted()->set_at_s(-1); }},
      {"max_work: -1 is out of range", [](auto* r) { r->set_max_work(-1); }},
      {"max_work: 4611686018427387905", [](auto* r) { r->set_max_work((int64_t{1} << 62) + 1); }},
      {"max_milliseconds: 3600001 is out of range", [](auto* r) { r->set_max_milliseconds(3'600'001); }},
      {"ranking: preset", [](auto* r) { r->mutable_ranking(); }},
      {"ranking: suppression_divisor",
       [](auto* r) {
         r->mutable_ranking()->set_preset(v1::RankPolicy::PROPOSAL);
         r->mutable_ranking()->set_suppression_divisor(-1);
       }},
  };
  const v1::PlanLoopRequest good = request_;
  for (const BadInput& input : cases) {
    request_ = good;
    input.change(&request_);
    EXPECT_THAT(Refusal(), HasSubstr(input.refusal));
  }
  request_ = good;
  EXPECT_TRUE(engine_.PlanLoop(request_).ok()) << "a question that was refused leaves nothing behind";
}

}  // namespace
}  // namespace loadline
