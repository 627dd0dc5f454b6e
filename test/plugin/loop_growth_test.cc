// The limits and the sharing of growth in Autoscaler.PlanLoop, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "loadline/v1/loop.pb.h"
#include "loadline/v1/scale_up.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

k8s::v1::Node GpuNode(const std::string& name, const std::string& gpu_label = "accelerator") {
  k8s::v1::Node node =
      MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}, {"nvidia.com/gpu", "2"}});
  auto* const label = node.mutable_metadata()->add_labels();
  label->set_key(gpu_label);
  label->set_value("t4");
  return node;
}

k8s::v1::Pod PodOfCores(const std::string& cores) { return MakePod({}, {{"cpu", cores}, {"memory", "1Gi"}}); }

// Node a of two cores and two GPUs in the group "workers" of at most nine.
class LoopGrowthMessageTest : public ::testing::Test {
 protected:
  LoopGrowthMessageTest() {
    request_.set_now_s(1'800'000'000);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("workers");
    group->mutable_growth()->set_template_node(GpuNode("template").SerializeAsString());
    group->mutable_growth()->set_current_nodes(1);
    group->mutable_growth()->set_max_nodes(9);
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    group->mutable_scale_down()->add_slots(0);
    request_.add_decisions(v1::PlanLoopRequest::SCALE_UP);
    ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
    builder.Node(0, GpuNode("a"));
    EXPECT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  }

  v1::PendingPods* Pending(const std::string& cores, int32_t count) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(PodOfCores(cores).SerializeAsString());
    pods->set_count(count);
    return pods;
  }
  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  TypedEngine engine_;
  v1::PlanLoopRequest request_;
};

// The same bytes again and again are read once, and reported entry by entry.
TEST_F(LoopGrowthMessageTest, EntriesThatRepeatAreToldEachByItself) {
  const std::vector<int32_t> counts = {1, 2, 3, 1, 1};
  for (size_t i = 0; i < counts.size(); ++i) Pending(i == 2 ? "900m" : "1", counts[i]);
  const v1::PlanLoopResponse plan = Plan();
  std::map<int32_t, int64_t> reported;
  for (const v1::ExistingPlacement& place : plan.existing())
    reported[place.pods().pod()] += place.pods().count();
  for (const v1::PlannedNodes& nodes : plan.scale_up().nodes()) {
    for (const v1::PodRun& run : nodes.pods()) reported[run.pod()] += nodes.nodes() * run.count();
  }
  for (const v1::PodRun& run : plan.scale_up().unplaced()) reported[run.pod()] += run.count();
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(reported[static_cast<int32_t>(i)], counts[i]) << i;
}

// The type is the value of the label that a provider of Cluster Autoscaler uses for it.
TEST_F(LoopGrowthMessageTest, GPUsHaveAMaximum) {
  Pending("2", 5);
  v1::GpuCount* const most = request_.add_max_gpus_total();
  most->set_gpu_type("t4");
  most->set_gpus(7);
  int64_t epoch = 1;
  for (const char* const label : {"accelerator", "cloud.google.com/gke-accelerator",
                                  "k8s.amazonaws.com/accelerator", "cluster-api/accelerator"}) {
    ChangesBuilder builder = ChangesBuilder::FullList(++epoch, 1);
    builder.Node(0, GpuNode("a", label));
    EXPECT_TRUE(engine_.Sync(builder).ok());
    *request_.mutable_changes() = ChangesBuilder::At(epoch, 1).changes();
    request_.mutable_groups(0)->mutable_growth()->set_template_node(
        GpuNode("template", label).SerializeAsString());
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2) << label << ": two are there, and seven may be";
    ASSERT_THAT(plan.at_maximum(), SizeIs(1)) << label;
    EXPECT_THAT(plan.at_maximum(0).resources(), ElementsAre("t4"));
  }
}

TEST_F(LoopGrowthMessageTest, SelectedNodesHaveAMaximum) {
  Pending("2", 5);
  const auto limit = [&](const std::string& value) {
    k8s::v1::LabelSelector selector;
    k8s::v1::StringEntry* const label = selector.add_match_labels();
    label->set_key("accelerator");
    label->set_value(value);
    request_.clear_maxima();
    v1::NodeMaximum* const most = request_.add_maxima();
    most->set_name("CapacityQuota/q");
    most->set_selector(selector.SerializeAsString());
    most->set_nodes(3);
  };
  limit("another");
  EXPECT_THAT(Plan().at_maximum(), IsEmpty());
  limit("t4");
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2) << "one is there, and three may be";
  ASSERT_THAT(plan.at_maximum(), SizeIs(1));
  EXPECT_THAT(plan.at_maximum(0).resources(), ElementsAre("nodes of CapacityQuota/q"));
}

TEST_F(LoopGrowthMessageTest, AMinimumIsEnforcedOnDemand) {
  request_.mutable_groups(0)->mutable_scale_down()->set_min_nodes(3);
  EXPECT_THAT(Plan().growth(), SizeIs(0));
  request_.set_enforce_min_sizes(true);
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).nodes_for_minimum(), 2);
  EXPECT_EQ(plan.growth(0).usd_per_hour(), 1.0);
}

TEST_F(LoopGrowthMessageTest, SimilarGroupsShare) {
  *request_.add_groups() = request_.groups(0);
  request_.mutable_groups(1)->mutable_growth()->set_node_group("others");
  request_.mutable_groups(1)->mutable_growth()->set_current_nodes(0);
  request_.mutable_groups(1)->mutable_scale_down()->clear_slots();
  request_.mutable_groups(1)->mutable_growth()->set_node_usd_per_hour(0.6);
  Pending("2", 4);
  EXPECT_THAT(Plan().growth(), SizeIs(1));
  request_.mutable_balance();
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.growth(), SizeIs(2));
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 1);
  EXPECT_EQ(plan.growth(1).nodes_for_pods(), 2);
}

TEST_F(LoopGrowthMessageTest, NodesThatAreNotBegunAreTakenBack) {
  *request_.add_groups() = request_.groups(0);
  v1::ScalableGroup* const large = request_.mutable_groups(1)->mutable_growth();
  large->set_node_group("large");
  large->set_template_node(
      MakeNode("large", {{"cpu", "8"}, {"memory", "32Gi"}, {"pods", "20"}}).SerializeAsString());
  large->set_current_nodes(0);
  request_.mutable_groups(1)->mutable_scale_down()->clear_slots();
  large->set_node_usd_per_hour(0.75);
  request_.mutable_groups(0)->mutable_growth()->set_current_nodes(3);
  request_.mutable_groups(0)->set_not_begun(2);
  Pending("2", 5);  // one on a, two on their way, and two more
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_THAT(plan.take_back(), SizeIs(1));
  EXPECT_EQ(plan.take_back(0).node_group(), "workers");
  EXPECT_EQ(plan.take_back(0).nodes(), 2);
  EXPECT_EQ(plan.take_back(0).usd_per_hour(), 1.0);
  ASSERT_THAT(plan.growth(), SizeIs(1));
  EXPECT_EQ(plan.growth(0).node_group(), "large");
}

TEST_F(LoopGrowthMessageTest, NominatedPodsNeedNoNewNode) {
  v1::PendingPods* const pods = Pending("2", 2);
  EXPECT_EQ(Plan().growth(0).nodes_for_pods(), 1);
  v1::NominatedPods* const nominated = pods->add_nominated();
  nominated->set_count(7);
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.growth(0).nodes_for_pods(), 1) << "one fits there, one does not";
  ASSERT_THAT(plan.existing(), SizeIs(1));
  nominated->set_slot(77);
  EXPECT_EQ(Plan().growth(0).nodes_for_pods(), 1) << "there is no such node";
}

TEST_F(LoopGrowthMessageTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(v1::PlanLoopRequest*)>>> cases = {
      {"max_gpus_total[0]: gpu_type",
       [](v1::PlanLoopRequest* request) { request->add_max_gpus_total()->set_gpus(1); }},
      {"max_gpus_total[0]: gpus",
       [](v1::PlanLoopRequest* request) {
         request->add_max_gpus_total()->set_gpu_type("t4");
         request->mutable_max_gpus_total(0)->set_gpus(-1);
       }},
      {"max_gpus_total[1]: gpu_type",
       [](v1::PlanLoopRequest* request) {
         request->add_max_gpus_total()->set_gpu_type("t4");
         request->add_max_gpus_total()->set_gpu_type("t4");
       }},
      {"min_gpus_total[0]: gpu_type",
       [](v1::PlanLoopRequest* request) { request->mutable_drain()->add_min_gpus_total(); }},
      {"maxima[0]: name", [](v1::PlanLoopRequest* request) { request->add_maxima(); }},
      {"maxima[0]: cores",
       [](v1::PlanLoopRequest* request) {
         request->add_maxima()->set_name("a");
         request->mutable_maxima(0)->set_cores(-1);
       }},
      {"maxima[1]: gpus[0]: gpu_type",
       [](v1::PlanLoopRequest* request) {
         request->add_maxima()->set_name("a");
         request->add_maxima()->set_name("b");
         request->mutable_maxima(1)->add_gpus();
       }},
      {"maxima[0]: selector: kubernetes.io/hostname",
       [](v1::PlanLoopRequest* request) {
         k8s::v1::LabelSelector selector;
         selector.add_match_labels()->set_key("kubernetes.io/hostname");
         request->add_maxima()->set_name("a");
         request->mutable_maxima(0)->set_selector(selector.SerializeAsString());
       }},
      {"balance: ignored_labels",
       [](v1::PlanLoopRequest* request) {
         request->mutable_balance()->add_labels("a");
         request->mutable_balance()->add_ignored_labels("b");
       }},
      {"balance: max_memory_difference",
       [](v1::PlanLoopRequest* request) { request->mutable_balance()->set_max_memory_difference(1.1); }},
      {"pods[0]: nominated.slot",
       [](v1::PlanLoopRequest* request) { request->mutable_pods(0)->add_nominated()->set_slot(-1); }},
      {"pods[0]: nominated.count",
       [](v1::PlanLoopRequest* request) { request->mutable_pods(0)->add_nominated()->set_count(-1); }},
      {"groups[0]: not_begun",
       [](v1::PlanLoopRequest* request) { request->mutable_groups(0)->set_not_begun(-1); }},
  };
  Pending("1", 1);
  const v1::PlanLoopRequest request = request_;
  for (const auto& [want, edit] : cases) {
    request_ = request;
    edit(&request_);
    EXPECT_THAT(std::string(engine_.PlanLoop(request_).status().message()), HasSubstr(want));
  }
}

// 9 cores in all, of which one pod requests 3: two suit so many, and the largest pod has to fit.
TEST(RunningDemandTest, ThePreferredNodeIsLearnedWithoutAView) {
  TypedEngine engine;
  v1::RankOptionsRequest request;
  request.mutable_policy()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  request.mutable_policy()->set_preferred_table(v1::RankPolicy::LEARNED);
  request.set_cluster_nodes(2);
  request.add_options()->set_node_group("g");
  request.mutable_running()->set_total_milli_cpu(9'000);
  request.mutable_running()->set_largest_milli_cpu(3'000);
  const auto ask = [&] {
    return engine.CallBytes("/loadline.v1.Autoscaler/RankOptions", request.SerializeAsString());
  };
  const absl::StatusOr<std::string> bytes = ask();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::RankOptionsResponse response;
  ASSERT_TRUE(response.ParseFromString(*bytes));
  EXPECT_EQ(response.preferred_node().milli_cpu(), 3'000);
  request.mutable_running()->set_largest_milli_cpu(-1);
  EXPECT_THAT(std::string(ask().status().message()), HasSubstr("running.largest_milli_cpu"));
}

}  // namespace
}  // namespace loadline
