// Autoscaler.EstimateScaleUp and Autoscaler.PlanScaleUp, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

k8s::v1::Node Template(const std::string& name, const std::string& cpu) {
  return MakeNode(name, {{"cpu", cpu}, {"memory", "16Gi"}, {"pods", "10"}});
}

// Ten pods of one CPU; groups "large" of 8 CPUs for 8 and "small" of 2 CPUs for 2.5; a view without nodes.
class ScaleUpPlanTest : public ::testing::Test {
 protected:
  ScaleUpPlanTest() {
    EXPECT_TRUE(engine_.Sync(ChangesBuilder::FullList(1, 1)).ok());
    problem_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
    AddPods("1", 10);
    AddGroup("large", "8", 8);
    AddGroup("small", "2", 2.5);
  }

  void AddPods(const std::string& cpu, int32_t count) {
    v1::PendingPods* const pods = problem_.add_pods();
    pods->mutable_pod()->set_pod(MakePod({}, {{"cpu", cpu}}).SerializeAsString());
    pods->set_count(count);
  }

  void AddGroup(const std::string& name, const std::string& cpu, double usd) {
    v1::ScalableGroup* const group = problem_.add_groups();
    group->set_node_group(name);
    group->set_template_node(Template(name, cpu).SerializeAsString());
    group->set_max_nodes(100);
    group->set_node_usd_per_hour(usd);
  }

  template <typename Response, typename Request>
  absl::StatusOr<Response> Ask(const std::string& method, Request request) {
    *request.mutable_problem() = problem_;
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes("/loadline.v1.Autoscaler/" + method, request.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    Response response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }
  absl::StatusOr<v1::PlanScaleUpResponse> Plan(v1::PlanScaleUpRequest request = {}) {
    return Ask<v1::PlanScaleUpResponse>("PlanScaleUp", std::move(request));
  }
  absl::StatusOr<v1::EstimateScaleUpResponse> Estimate(v1::EstimateScaleUpRequest request = {}) {
    return Ask<v1::EstimateScaleUpResponse>("EstimateScaleUp", std::move(request));
  }

  TypedEngine engine_;
  v1::ScaleUpProblem problem_;
};

TEST_F(ScaleUpPlanTest, EstimatesEachGroup) {
  const absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->groups_size(), 2);
  EXPECT_EQ(response->groups(0).node_group(), "large");
  EXPECT_EQ(response->groups(0).node_count(), 2);
  EXPECT_EQ(response->groups(1).node_count(), 5);
  ASSERT_EQ(response->groups(1).pods_size(), 1);
  EXPECT_EQ(response->groups(1).pods(0).pod(), 0);
  EXPECT_EQ(response->groups(1).pods(0).count(), 10);
  EXPECT_EQ(response->groups(1).end(), v1::GroupEstimate::COMPLETE);
}

// Pods of 9 CPUs fit neither node of 8 nor of 2; those of 3 fit the larger one.
TEST_F(ScaleUpPlanTest, TellsWhyAGroupTakesNoMoreIfThatIsAsked) {
  AddPods("9", 2);
  AddPods("3", 1);
  AddPods("9", 1);
  EXPECT_EQ(Estimate()->groups(0).refusals_size(), 0);
  v1::EstimateScaleUpRequest request;
  request.set_with_refusals(true);
  const absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate(request);
  ASSERT_TRUE(response.ok()) << response.status();
  const auto& large = response->groups(0).refusals();
  ASSERT_EQ(large.size(), 1);
  EXPECT_THAT(large[0].pods(), ElementsAre(1, 3));
  EXPECT_EQ(large[0].why().verdict(), v1::VerdictGroup::DOES_NOT_FIT);
  EXPECT_EQ(large[0].why().filter(), v1::VerdictGroup::NODE_RESOURCES_FIT);
  EXPECT_THAT(large[0].why().reasons(), ElementsAre("Insufficient cpu"));
  EXPECT_FALSE(large[0].daemons_in_the_way());
  ASSERT_EQ(response->groups(1).refusals_size(), 1);
  EXPECT_THAT(response->groups(1).refusals(0).pods(), ElementsAre(1, 3, 2));
}

// Rankings read a new node from the bytes of a node: it is what most nodes of the group share, whatever
// somebody has written on the first one.
TEST_F(ScaleUpPlanTest, TellsTheModelNodeOfAGroupWithoutTemplate) {
  ChangesBuilder builder = ChangesBuilder::FullList(2, 1);
  v1::ScalableGroup* const group = problem_.add_groups();
  group->set_node_group("grown");
  group->set_max_nodes(5);
  for (int32_t i = 0; i < 3; ++i) {
    k8s::v1::Node node = Template(absl::StrCat("n", i), i == 0 ? "16" : "4");
    const auto add = [&](k8s::v1::StringEntry* entry, const std::string& key, const std::string& value) {
      entry->set_key(key);
      entry->set_value(value);
    };
    k8s::v1::ObjectMeta* const metadata = node.mutable_metadata();
    add(metadata->add_labels(), "node.kubernetes.io/instance-type", i == 0 ? "by-hand" : "m5.xlarge");
    add(metadata->add_labels(), "lifecycle", "Ec2Spot");
    add(metadata->add_annotations(), "loadline.dev/node-usd-per-hour", i == 0 ? "9" : "0.25");
    node.mutable_spec()->set_provider_id("aws:///eu-west-1a/i-0");
    builder.Node(i, node);
    group->add_node_slots(i);
  }
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *problem_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  const absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->groups_size(), 3);
  k8s::v1::Node node;
  ASSERT_TRUE(node.ParseFromString(response->groups(0).model_node()));
  EXPECT_EQ(node.spec().provider_id(), "aws://") << "an empty group is of the cloud of the others";
  EXPECT_EQ(node.metadata().name(), "large") << "all else is as its template says";
  ASSERT_TRUE(node.ParseFromString(response->groups(2).model_node()));
  EXPECT_EQ(node.metadata().name(), "grown");
  EXPECT_EQ(node.spec().provider_id(), "aws://");
  std::map<std::string, std::string> words;
  for (const k8s::v1::StringEntry& label : node.metadata().labels()) words[label.key()] = label.value();
  EXPECT_EQ(words["node.kubernetes.io/instance-type"], "m5.xlarge");
  EXPECT_EQ(words["karpenter.sh/capacity-type"], "spot");
  for (const k8s::v1::QuantityEntry& amount : node.status().allocatable()) {
    words[amount.key()] = amount.value().string();
  }
  EXPECT_EQ(words["cpu"], "4000m");
  EXPECT_EQ(words["memory"], "17179869184");
  ASSERT_EQ(node.metadata().annotations_size(), 1);
  EXPECT_EQ(node.metadata().annotations(0).value(), "0.25");
}

// A loop and whoever asks beside it expect the same node: templates of 8 CPUs, and of a GPU, whose nodes show
// 5 CPUs and no GPU. The pods want 6 CPUs, and a GPU.
TEST_F(ScaleUpPlanTest, NodesCorrectTheTemplateOfTheirGroup) {
  const auto node = [](const std::string& name, const std::string& cpu, bool gpu) {
    Quantities amounts = {{"cpu", cpu}, {"memory", "16Gi"}, {"pods", "10"}};
    if (gpu) amounts.push_back({"nvidia.com/gpu", "1"});
    return MakeNode(name, amounts);
  };
  problem_.clear_pods();
  AddPods("6", 1);
  problem_.add_pods()->mutable_pod()->set_pod(MakePod({}, {{"nvidia.com/gpu", "1"}}).SerializeAsString());
  problem_.mutable_pods(1)->set_count(1);
  problem_.mutable_groups(1)->set_template_node(node("small", "2", /*gpu=*/true).SerializeAsString());
  ChangesBuilder builder = ChangesBuilder::FullList(2, 1);
  builder.Node(0, node("n0", "5", /*gpu=*/false)).Node(1, node("n1", "2", /*gpu=*/false));
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *problem_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->groups(0).node_count(), 1) << "no node of the group is known";
  EXPECT_EQ(response->groups(1).node_count(), 1);
  problem_.mutable_groups(0)->add_node_slots(0);
  problem_.mutable_groups(1)->add_node_slots(1);
  problem_.mutable_groups(1)->add_node_slots(7);  // there is no such node
  response = Estimate();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->groups(0).node_count(), 0);
  EXPECT_EQ(response->groups(1).node_count(), 0);
}

// A driver takes minutes to register the devices of a node. The first group has a template with a GPU and one
// node without it; the second has one old node with a GPU and two young ones without it.
TEST_F(ScaleUpPlanTest, ANodeThatIsYoungIsNoModelUntilItHasItsDevices) {
  constexpr int64_t kAskedS = 1'800'000'000;
  const auto node = [](const std::string& name, int64_t age_s, bool gpu) {
    Quantities amounts = {{"cpu", "2"}, {"memory", "16Gi"}, {"pods", "10"}};
    if (gpu) amounts.push_back({"nvidia.com/gpu", "1"});
    k8s::v1::Node made = MakeNode(name, amounts);
    made.mutable_metadata()->mutable_creation_timestamp()->set_seconds(kAskedS - age_s);
    return made;
  };
  problem_.clear_pods();
  problem_.clear_groups();
  problem_.add_pods()->mutable_pod()->set_pod(MakePod({}, {{"nvidia.com/gpu", "1"}}).SerializeAsString());
  problem_.mutable_pods(0)->set_count(9);
  AddGroup("stated", "2", 1);
  problem_.mutable_groups(0)->set_template_node(node("stated", 0, /*gpu=*/true).SerializeAsString());
  problem_.mutable_groups(0)->add_node_slots(0);
  AddGroup("shown", "2", 1);
  problem_.mutable_groups(1)->clear_template_node();
  for (const int32_t slot : {1, 2, 3}) problem_.mutable_groups(1)->add_node_slots(slot);
  ChangesBuilder builder = ChangesBuilder::FullList(2, 1);
  builder.Node(0, node("young", 60, /*gpu=*/false)).Node(1, node("old", 9'000, /*gpu=*/true));
  builder.Node(2, node("young2", 60, /*gpu=*/false)).Node(3, node("young3", 60, /*gpu=*/false));
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *problem_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  const auto nodes_at = [this](int64_t now_s) {
    problem_.set_now_seconds(now_s);
    const absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate();
    EXPECT_TRUE(response.ok()) << response.status();
    return std::make_pair(response->groups(0).node_count(), response->groups(1).node_count());
  };
  EXPECT_EQ(nodes_at(kAskedS), std::make_pair(8, 8)) << "the old node takes one of nine";
  EXPECT_EQ(nodes_at(kAskedS + 900), std::make_pair(0, 0)) << "they have had their 15 minutes";
  problem_.set_now_seconds(-1);
  EXPECT_THAT(Estimate().status().message(), HasSubstr("now_seconds"));
}

TEST_F(ScaleUpPlanTest, PlansAMix) {
  const absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_DOUBLE_EQ(response->usd_per_hour(), 10.5);
  ASSERT_EQ(response->groups_size(), 2);
  EXPECT_EQ(response->groups(0).node_group(), "large");
  EXPECT_EQ(response->groups(0).node_count(), 1);
  EXPECT_EQ(response->groups(1).node_count(), 1);
  EXPECT_EQ(response->best_single().node_group(), "small");
  EXPECT_DOUBLE_EQ(response->best_single().usd_per_hour(), 12.5);
  EXPECT_LE(response->lower_bound_usd_per_hour(), 10.5);
  EXPECT_EQ(response->unplaced_size(), 0);
  EXPECT_FALSE(response->cut_short());
  // The same bytes again.
  EXPECT_EQ(Plan()->SerializeAsString(), response->SerializeAsString());
}

TEST_F(ScaleUpPlanTest, EqualPodsOfSeveralEntriesAreToldApart) {
  AddPods("1", 1);
  problem_.mutable_pods(0)->set_count(2);
  problem_.mutable_groups()->DeleteSubrange(0, 1);
  const absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  std::vector<int32_t> counts(2, 0);
  for (const v1::PlannedNodes& nodes : response->nodes()) {
    for (const v1::PodRun& run : nodes.pods()) {
      counts[static_cast<size_t>(run.pod())] += run.count() * nodes.nodes();
    }
  }
  EXPECT_THAT(counts, ElementsAre(2, 1));
}

TEST_F(ScaleUpPlanTest, AClusterOfItsOwn) {
  const v1::Changes full = ChangesBuilder::FullList(1, 1).Node(3, Template("old", "4")).changes();
  problem_.mutable_own()->mutable_nodes()->CopyFrom(full.nodes());
  const absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->existing_size(), 1);
  EXPECT_EQ(response->existing(0).slot(), 3);
  EXPECT_EQ(response->existing(0).node(), "old");
  EXPECT_EQ(response->existing(0).pods().count(), 4);
  problem_.mutable_own()->set_view("test");
  EXPECT_THAT(Plan().status().message(), HasSubstr("own: states a view"));
  problem_.clear_own();
  EXPECT_EQ(Plan().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ScaleUpPlanTest, LimitsOfTheWholeCluster) {
  problem_.set_max_nodes_total(1);
  absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_DOUBLE_EQ(response->usd_per_hour(), 8);
  ASSERT_EQ(response->unplaced_size(), 1);
  EXPECT_EQ(response->unplaced(0).count(), 2);
  problem_.set_max_nodes_total(0);
  problem_.set_max_new_nodes(2);
  EXPECT_DOUBLE_EQ(Plan()->usd_per_hour(), 10.5);
}

// Each registered node counts, as for Cluster Autoscaler: of the control plane, and a virtual one.
TEST_F(ScaleUpPlanTest, AllNodesOfTheClusterCountAgainstItsLimit) {
  ChangesBuilder builder = ChangesBuilder::FullList(2, 1);
  int32_t slot = 0;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"pool", "workers"}, {"node-role.kubernetes.io/control-plane", ""}, {"type", "virtual-kubelet"}}) {
    k8s::v1::Node node = Template(absl::StrCat("n", slot), "100m");
    k8s::v1::StringEntry* const label = node.mutable_metadata()->add_labels();
    label->set_key(key);
    label->set_value(value);
    builder.Node(slot++, node);
  }
  ASSERT_TRUE(engine_.Sync(builder).ok());
  *problem_.mutable_changes() = ChangesBuilder::At(2, 1).changes();
  for (const auto& [total, nodes] :
       std::vector<std::pair<int32_t, int32_t>>{{3, 0}, {4, 1}, {5, 2}, {6, 2}}) {
    problem_.set_max_nodes_total(total);
    const absl::StatusOr<v1::EstimateScaleUpResponse> response = Estimate();
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->groups(0).node_count(), nodes) << total;
  }
}

TEST_F(ScaleUpPlanTest, GroupsWithoutPriceOrTemplateAreNamed) {
  problem_.mutable_groups(0)->clear_template_node();
  problem_.mutable_groups(1)->set_node_usd_per_hour(-1);
  v1::PlanScaleUpRequest request;
  request.mutable_prices()->set_last_source(v1::NodePrice::INSTANCE_TYPE);
  const absl::StatusOr<v1::PlanScaleUpResponse> response = Plan(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->groups_left_out(), ElementsAre("large", "small"));
  EXPECT_EQ(response->unplaced(0).count(), 10);
  EXPECT_FALSE(response->has_best_single());
  const absl::StatusOr<v1::EstimateScaleUpResponse> estimate = Estimate();
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  EXPECT_EQ(estimate->groups(0).end(), v1::GroupEstimate::NO_TEMPLATE);
}

TEST_F(ScaleUpPlanTest, NothingAskedNothingDone) {
  problem_.clear_pods();
  absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->usd_per_hour(), 0);
  EXPECT_EQ(response->gap(), 0);
  problem_.clear_groups();
  AddPods("1", 3);
  response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->unplaced(0).count(), 3);
}

TEST_F(ScaleUpPlanTest, BadQuestionsAreRefused) {
  const v1::ScaleUpProblem good = problem_;
  const auto refused = [&] {
    const absl::Status status = Plan().status();
    problem_ = good;
    return std::string(status.message());
  };
  problem_.mutable_pods(0)->set_count(-1);
  EXPECT_THAT(refused(), HasSubstr("pods[0]: count: -1 is negative"));
  problem_.mutable_groups(1)->set_node_group("large");
  EXPECT_THAT(refused(), HasSubstr("groups[1]: node_group \"large\" is named twice"));
  problem_.mutable_groups(1)->set_node_group("");
  EXPECT_THAT(refused(), HasSubstr("groups[1]: node_group: is empty"));
  problem_.set_max_work(-1);
  EXPECT_THAT(refused(), HasSubstr("max_work: -1 is negative"));
  v1::PlanScaleUpRequest request;
  request.set_usd_per_further_type(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(std::string(Plan(request).status().message()), HasSubstr("usd_per_further_type"));
}

// 200,000,000 equal pods of two entries, eight to a node: nodes of the first entry, one of both, nodes of the
// second.
TEST_F(ScaleUpPlanTest, MillionsOfEqualNodesAreFewEntries) {
  problem_.clear_pods();
  AddPods("1", 100'000'001);
  AddPods("1", 99'999'999);
  problem_.mutable_groups()->RemoveLast();
  problem_.mutable_groups(0)->set_max_nodes(0x7fffffff);
  const absl::StatusOr<v1::PlanScaleUpResponse> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->groups(0).node_count(), 25'000'000);
  ASSERT_EQ(plan->nodes_size(), 3);
  EXPECT_EQ(plan->nodes(0).nodes(), 12'500'000);
  EXPECT_EQ(plan->nodes(0).pods(0).pod(), 0);
  EXPECT_EQ(plan->nodes(0).pods(0).count(), 8);
  EXPECT_EQ(plan->nodes(1).nodes(), 1);
  ASSERT_EQ(plan->nodes(1).pods_size(), 2);
  EXPECT_EQ(plan->nodes(1).pods(0).count(), 1);
  EXPECT_EQ(plan->nodes(1).pods(1).count(), 7);
  EXPECT_EQ(plan->nodes(2).nodes(), 12'499'999);
  EXPECT_EQ(plan->nodes(2).pods(0).pod(), 1);
  EXPECT_EQ(plan->cut_short_by(), "");
}

TEST_F(ScaleUpPlanTest, CutShortIsSaid) {
  problem_.set_max_work(1);
  const absl::StatusOr<v1::PlanScaleUpResponse> response = Plan();
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(response->cut_short());
  EXPECT_EQ(response->cut_short_by(), "work");
  const absl::StatusOr<v1::EstimateScaleUpResponse> estimate = Estimate();
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  EXPECT_EQ(estimate->cut_short_by(), "work");
}

}  // namespace
}  // namespace loadline
