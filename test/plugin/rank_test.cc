// Autoscaler.RankOptions, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/scale_up.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRankOptions[] = "/loadline.v1.Autoscaler/RankOptions";
constexpr char kTable[] =
    "instance_type,capacity_vcpu,on_demand_usd_per_hour\nm5.large,2,0.096\nm5.xlarge,4,0.192\n";
constexpr char kGce[] =
    "kind,key,usd_per_hour_or_factor\nconstant,base_gpu_hour,0.7\nmachine_hour,n1-standard-8,0.38\n"
    "preemptible_machine_hour,n1-standard-8,0.08\nconstant,local_ssd_per_gib_hour,0.0001\n"
    "constant,spot_local_ssd_per_gib_hour,0.00005\ngpu_hour,t4,0.35\npreemptible_gpu_hour,t4,0.11\n"
    "boot_disk_per_gib_hour,pd-balanced,0.0001\nboot_disk_per_gib_hour,pd-ssd,0.0002\n";

using Pairs = std::vector<std::pair<std::string, std::string>>;

k8s::v1::Node Template(const Quantities& capacity, const Pairs& labels = {}, const Pairs& annotations = {}) {
  k8s::v1::Node node;
  node.mutable_metadata()->set_name("template");
  AddEntries(capacity, node.mutable_status()->mutable_capacity());
  for (const auto& [key, value] : labels) {
    k8s::v1::StringEntry* const entry = node.mutable_metadata()->add_labels();
    entry->set_key(key);
    entry->set_value(value);
  }
  for (const auto& [key, value] : annotations) {
    k8s::v1::StringEntry* const entry = node.mutable_metadata()->add_annotations();
    entry->set_key(key);
    entry->set_value(value);
  }
  return node;
}

k8s::v1::Node OfType(const std::string& type, const std::string& cpu) {
  return Template({{"cpu", cpu}, {"memory", "8Gi"}}, {{"node.kubernetes.io/instance-type", type}});
}

class RankTest : public ::testing::Test {
 protected:
  RankTest() {
    request_.mutable_policy()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
    request_.add_pods(MakePod({}, {{"cpu", "1"}, {"memory", "4Gi"}}).SerializeAsString());
  }

  v1::ExpansionOption* Add(const std::string& group, const k8s::v1::Node& node, int32_t nodes = 1,
                           int32_t pods = 1) {
    v1::ExpansionOption* const option = request_.add_options();
    option->set_node_group(group);
    option->set_node_count(nodes);
    option->set_template_node(node.SerializeAsString());
    option->add_pods()->set_count(pods);
    return option;
  }

  void AddCatalogue(const std::string& name, const std::string& csv) {
    v1::PriceCatalogue* const catalogue = request_.mutable_prices()->add_catalogues();
    catalogue->set_name(name);
    catalogue->set_csv(csv);
  }

  absl::StatusOr<v1::RankOptionsResponse> Ask() {
    const absl::StatusOr<std::string> bytes = engine_.CallBytes(kRankOptions, request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::RankOptionsResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }

  v1::RankOptionsResponse MustAsk() {
    const absl::StatusOr<v1::RankOptionsResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::RankOptionsResponse();
  }

  std::vector<std::string> Groups() {
    std::vector<std::string> groups;
    const v1::RankOptionsResponse response = MustAsk();
    for (const v1::RankedOption& ranked : response.options()) {
      groups.push_back(request_.options(ranked.option()).node_group());
    }
    return groups;
  }

  void ExpectError(absl::StatusCode code, const std::string& text) {
    const absl::StatusOr<v1::RankOptionsResponse> response = Ask();
    EXPECT_EQ(response.status().code(), code) << response.status();
    EXPECT_THAT(std::string(response.status().message()), HasSubstr(text));
  }
  void ExpectInvalid(const std::string& text) { ExpectError(absl::StatusCode::kInvalidArgument, text); }

  TypedEngine engine_;
  v1::RankOptionsRequest request_;
};

TEST_F(RankTest, RanksAndExplains) {
  AddCatalogue("aws.csv", kTable);
  request_.set_cluster_nodes(10);
  Add("large", OfType("m5.large", "2"), 1, 1);
  Add("xlarge", OfType("m5.xlarge", "4"), 1, 1);
  const v1::RankOptionsResponse response = MustAsk();
  ASSERT_EQ(response.options_size(), 2);
  EXPECT_EQ(response.cluster_nodes(), 10);
  EXPECT_EQ(response.preferred_node().milli_cpu(), 4000);
  // X = 0.5 * 0.033174 + 500/1024 * 0.004446; T = 0.033174 + 4 * 0.004446.
  const double x = 0.5 * 0.033174 + 500.0 / 1024 * 0.004446;
  const double t = 0.033174 + 4 * 0.004446;
  const v1::RankedOption& best = response.options(0);
  EXPECT_EQ(best.option(), 1);
  EXPECT_EQ(best.outcome(), v1::RankedOption::SCORED);
  EXPECT_DOUBLE_EQ(best.score(), (0.192 + x) / (t + x));
  EXPECT_DOUBLE_EQ(best.damper_usd_per_hour(), x);
  EXPECT_DOUBLE_EQ(best.theoretical_cost_usd_per_hour(), t);
  EXPECT_DOUBLE_EQ(best.cost_usd_per_hour(), 0.192);
  EXPECT_EQ(best.pods(), 1);
  EXPECT_EQ(best.node_price().source(), v1::NodePrice::INSTANCE_TYPE);
  EXPECT_EQ(best.node_price().catalogue(), "aws.csv");
  EXPECT_EQ(best.node_price().key(), "m5.xlarge");
  EXPECT_DOUBLE_EQ(best.waste(), 0.75 + 0.5);
  const v1::RankedOption& second = response.options(1);
  EXPECT_EQ(second.unfitness(), 2);
  EXPECT_EQ(second.score(), second.suppressed_unfitness() * second.cost_ratio() * second.creation_factor());
}

// Pods of 4 Gi with limits of 12 Gi: on nodes of 8 Gi each counts as 8, so that under 1.5 ten of them need
// seven; on nodes of 64 Gi as 12, and ten need two.
TEST_F(RankTest, CountsNodesUnderTheLoadLine) {
  request_.set_pods(0,
                    MakePod({{"memory", "12Gi"}}, {{"cpu", "100m"}, {"memory", "4Gi"}}).SerializeAsString());
  Add("small", Template({{"cpu", "4"}, {"memory", "8Gi"}}), 5, 10)->set_node_usd_per_hour(0.10);
  Add("large", Template({{"cpu", "4"}, {"memory", "64Gi"}}), 1, 10)->set_node_usd_per_hour(0.55);
  EXPECT_THAT(Groups(), ElementsAre("small", "large"));
  v1::LineResource* const line = request_.mutable_load_line()->add_resources();
  line->set_resource("memory");
  line->set_max_limits_over_allocatable("1.5");
  v1::RankOptionsResponse response = MustAsk();
  ASSERT_EQ(response.options_size(), 2);
  EXPECT_EQ(response.options(0).option(), 0);
  EXPECT_EQ(response.options(0).nodes(), 7);
  EXPECT_DOUBLE_EQ(response.options(0).cost_usd_per_hour(), 0.7);
  EXPECT_EQ(response.options(1).nodes(), 2);
  EXPECT_DOUBLE_EQ(response.options(1).cost_usd_per_hour(), 1.1);
  // 120 Gi fit on one node at 1.875: now it is the cheaper one.
  line->set_max_limits_over_allocatable("1.875");
  EXPECT_THAT(Groups(), ElementsAre("large", "small"));
  // At 0.5 a small node takes none of them.
  line->set_max_limits_over_allocatable("0.5");
  response = MustAsk();
  EXPECT_EQ(response.options(1).outcome(), v1::RankedOption::HELPS_NO_POD);
  EXPECT_EQ(response.options(1).option(), 0);
  request_.mutable_load_line()->add_exempt_namespaces("default");
  EXPECT_THAT(Groups(), ElementsAre("small", "large"));
  line->set_max_limits_over_allocatable("none");
  ExpectInvalid("load_line: ");
}

TEST_F(RankTest, ThePolicyComesBackComplete) {
  v1::RankPolicy policy = MustAsk().policy();
  EXPECT_THAT(policy.strategies(), ElementsAre(v1::RankPolicy::PRICE));
  EXPECT_EQ(policy.gpu_unfitness(), 1000);
  EXPECT_EQ(policy.creation_factor(), 2);
  EXPECT_EQ(policy.suppression_divisor(), 15);
  EXPECT_EQ(policy.preferred_table(), v1::RankPolicy::TABLE_CLUSTER_AUTOSCALER);
  EXPECT_EQ(policy.unfitness_resources(), v1::RankPolicy::CPU);
  EXPECT_DOUBLE_EQ(policy.pod_rates().ephemeral_gib_usd_per_hour(), 0.10 / 720);
  request_.mutable_policy()->set_preset(v1::RankPolicy::PROPOSAL);
  policy = MustAsk().policy();
  EXPECT_EQ(policy.gpu_unfitness(), 0);
  EXPECT_EQ(policy.creation_factor(), 1);
  EXPECT_EQ(policy.preferred_table(), v1::RankPolicy::TABLE_PROPOSAL);
  EXPECT_DOUBLE_EQ(policy.damper_usd_per_hour(), 0.5 * 0.033174);
  EXPECT_EQ(policy.pod_rates().ephemeral_flat_usd_per_hour(), 0.01);
  // The returned policy, sent again, means the same.
  *request_.mutable_policy() = policy;
  EXPECT_EQ(MustAsk().policy().SerializeAsString(), policy.SerializeAsString());
}

TEST_F(RankTest, DamperFollowsThePodRates) {
  request_.mutable_policy()->mutable_pod_rates()->set_cpu_usd_per_hour(1);
  request_.mutable_policy()->mutable_pod_rates()->set_memory_gib_usd_per_hour(0);
  EXPECT_EQ(MustAsk().policy().damper_usd_per_hour(), 0.5);
  request_.mutable_policy()->set_damper_usd_per_hour(0);
  EXPECT_EQ(MustAsk().policy().damper_usd_per_hour(), 0);
}

TEST_F(RankTest, TheViewTellsTheSizeOfTheCluster) {
  ChangesBuilder changes = ChangesBuilder::FullList(1, 1);
  changes.Shape(0, MakePod({}, {{"cpu", "11"}, {"memory", "22Gi"}}));
  for (int32_t i = 0; i < 3; ++i)
    changes.Node(i, MakeNode("n" + std::to_string(i), {{"cpu", "16"}}), {{0, "p", ""}});
  *request_.mutable_changes() = changes.changes();
  Add("a", OfType("x", "4"), 1, 1);
  v1::RankOptionsResponse response = MustAsk();
  EXPECT_EQ(response.cluster_nodes(), 3);
  EXPECT_EQ(response.preferred_node().milli_cpu(), 2000);
  // Running 33 CPUs and 66 GiB, pending 1 CPU and 4 GiB: the row of 4 CPUs, raised to the largest pod's 11.
  request_.mutable_policy()->set_preferred_table(v1::RankPolicy::LEARNED);
  response = MustAsk();
  EXPECT_EQ(response.preferred_node().milli_cpu(), 11'000);
  EXPECT_NEAR(static_cast<double>(response.preferred_node().memory_bytes()), 11.0 * 70 / 34 * (1 << 30), 4);
  request_.set_cluster_nodes(5);
  ExpectInvalid("cluster_nodes: must be unset with a view");
  request_.clear_cluster_nodes();
  *request_.mutable_changes() = ChangesBuilder::At(1, 1).View("never-sent").changes();
  ExpectError(absl::StatusCode::kFailedPrecondition, "");
}

TEST_F(RankTest, WithoutClusterSizeUnfitnessIsOne) {
  Add("a", OfType("x", "4"));
  const v1::RankOptionsResponse response = MustAsk();
  EXPECT_FALSE(response.has_preferred_node());
  EXPECT_EQ(response.cluster_nodes(), -1);
  EXPECT_EQ(response.options(0).unfitness(), 1);
  EXPECT_EQ(response.options(0).node_price().source(), v1::NodePrice::BASE_RATES);
  request_.mutable_policy()->mutable_preferred_node()->set_milli_cpu(1000);
  EXPECT_EQ(MustAsk().options(0).unfitness(), 4);
}

TEST_F(RankTest, ReadsNodesAsCloudsMarkThem) {
  AddCatalogue("gce.csv", kGce);
  k8s::v1::Node node = Template({{"cpu", "8"}, {"memory", "30Gi"}, {"nvidia.com/gpu", "2"}},
                                {{"beta.kubernetes.io/instance-type", "n1-standard-8"},
                                 {"cloud.google.com/gke-accelerator", "t4"},
                                 {"cloud.google.com/gke-boot-disk", "pd-ssd"},
                                 {"cloud.google.com/gke-spot", "true"}},
                                {{"cluster-autoscaler/gce/boot-disk-size", "50"},
                                 {"cluster-autoscaler/gce/boot-disk-type", "pd-balanced"},
                                 {"cluster-autoscaler/gce/ephemeral-storage-local-ssd", "true"},
                                 {"cluster-autoscaler/gce/local-ssd-count", "2"}});
  Add("a", node);
  const v1::RankedOption ranked = MustAsk().options(0);
  EXPECT_TRUE(ranked.node_price().spot());
  EXPECT_TRUE(ranked.has_gpu());
  EXPECT_TRUE(ranked.gpu_unneeded());
  EXPECT_EQ(ranked.suppressed_unfitness(), 1000);
  EXPECT_DOUBLE_EQ(ranked.node_price().usd_per_hour(), 0.08 + 2 * 375 * 0.00005 + 50 * 0.0002 + 2 * 0.11);
  ASSERT_EQ(ranked.node_price().parts_size(), 4);
  EXPECT_EQ(ranked.node_price().parts(3).kind(), v1::NodePrice::Part::GPU);
  request_.mutable_options(0)->set_spot(false);
  EXPECT_DOUBLE_EQ(MustAsk().options(0).node_price().usd_per_hour(),
                   0.38 + 2 * 375 * 0.0001 + 50 * 0.0002 + 2 * 0.35);
}

TEST_F(RankTest, AStatedSpotNodeIsNotReserved) {
  AddCatalogue("aws.csv", "instance_type,on_demand_usd_per_hour\nx,0.5\n");
  Add("a", Template({{"cpu", "2"}},
                    {{"node.kubernetes.io/instance-type", "x"}, {"karpenter.sh/capacity-type", "reserved"}}));
  EXPECT_EQ(MustAsk().options(0).node_price().basis(), v1::NodePrice::ESTIMATE);
  request_.mutable_options(0)->set_spot(true);
  const v1::NodePrice price = MustAsk().options(0).node_price();
  EXPECT_EQ(price.basis(), v1::NodePrice::SPOT_RATIO);
  EXPECT_DOUBLE_EQ(price.usd_per_hour(), 0.5 * 0.4);
}

TEST_F(RankTest, SpotLabelsOfOtherClouds) {
  for (const auto& [key, value] : Pairs{{"eks.amazonaws.com/capacityType", "SPOT"},
                                        {"karpenter.sh/capacity-type", "spot"},
                                        {"kubernetes.azure.com/scalesetpriority", "spot"},
                                        {"node.kubernetes.io/lifecycle", "spot"},
                                        {"node-role.kubernetes.io/spot-worker", "true"},
                                        {"lifecycle", "Ec2Spot"},
                                        {"cloud.google.com/gke-preemptible", "true"}}) {
    request_.clear_options();
    Add("a", Template({{"cpu", "2"}}, {{key, value}}));
    EXPECT_TRUE(MustAsk().options(0).node_price().spot()) << key;
  }
}

TEST_F(RankTest, SaysWherePricesComeFrom) {
  AddCatalogue(
      "azure.csv",
      "# provider: azure\n# region: eastus\n# date: 2026-06\n# os: linux\n"
      "instance_type,on_demand_usd_per_hour,on_demand_usd_per_hour@westeurope\nStandard_D2,0.1,0.125\n");
  const Pairs type = {{"node.kubernetes.io/instance-type", "Standard_D2"}};
  const auto with = [&](std::pair<std::string, std::string> label) {
    Pairs labels = type;
    labels.push_back(std::move(label));
    return Template({{"cpu", "2"}, {"memory", "8Gi"}}, labels);
  };
  Add("a-region", with({"topology.kubernetes.io/region", "westeurope"}));
  Add("b-spot", with({"kubernetes.azure.com/scalesetpriority", "spot"}));
  Add("c-reserved", with({"karpenter.sh/capacity-type", "reserved"}));
  Add("d-windows", with({"kubernetes.io/os", "windows"}));
  Add("e-given", Template({{"cpu", "2"}}, type))->set_node_usd_per_hour(1);
  for (v1::ExpansionOption& option : *request_.mutable_options()) option.set_node_count(2);
  const v1::RankOptionsResponse response = MustAsk();
  std::map<int, v1::NodePrice> prices;
  for (const v1::RankedOption& ranked : response.options()) prices[ranked.option()] = ranked.node_price();
  EXPECT_EQ(prices[0].region(), "westeurope");
  EXPECT_EQ(prices[0].date(), "2026-06");
  EXPECT_EQ(prices[0].basis(), v1::NodePrice::LISTED);
  EXPECT_DOUBLE_EQ(prices[1].usd_per_hour(), 0.1 * 0.4);
  EXPECT_EQ(prices[1].basis(), v1::NodePrice::SPOT_RATIO);
  EXPECT_EQ(prices[1].spot_ratio(), 0.4);
  EXPECT_EQ(prices[2].basis(), v1::NodePrice::ESTIMATE);
  EXPECT_DOUBLE_EQ(prices[3].usd_per_hour(), 0.1 + 2 * 0.046);
  EXPECT_EQ(prices[4].basis(), v1::NodePrice::STATED);
  const v1::PriceSources& sources = response.price_sources();
  EXPECT_DOUBLE_EQ(sources.list_usd_per_hour(), 2 * 0.125 + 2 * 0.1);
  EXPECT_DOUBLE_EQ(sources.spot_ratio_usd_per_hour(), 2 * 0.04);
  EXPECT_EQ(sources.estimate_usd_per_hour(), 0) << "no price rests on CPU and memory";
  EXPECT_DOUBLE_EQ(sources.reserved_usd_per_hour(), 2 * 0.1);
  EXPECT_DOUBLE_EQ(sources.licence_usd_per_hour(), 2 * 2 * 0.046);
  EXPECT_DOUBLE_EQ(sources.given_usd_per_hour(), 2);
  EXPECT_FALSE(sources.mostly_known()) << "0.384 of 2.914";
}

TEST_F(RankTest, PricesThatAreStated) {
  Add("annotated", Template({{"cpu", "2"}}, {{"loadline.dev/node-usd-per-hour", "9"}},
                            {{"loadline.dev/node-usd-per-hour", "0.5"}}));
  Add("labelled", Template({{"cpu", "2"}}, {{"loadline.dev/node-usd-per-hour", "0.6"}}));
  Add("given", OfType("m5.large", "2"))->set_node_usd_per_hour(0.7);
  EXPECT_THAT(Groups(), ElementsAre("annotated", "labelled", "given"));
  const v1::RankOptionsResponse response = MustAsk();
  for (const v1::RankedOption& ranked : response.options()) {
    EXPECT_EQ(ranked.node_price().source(),
              ranked.option() == 2 ? v1::NodePrice::GIVEN : v1::NodePrice::NODE_ANNOTATION);
    EXPECT_DOUBLE_EQ(ranked.node_price().usd_per_hour(), 0.5 + 0.1 * ranked.option());
  }
}

TEST_F(RankTest, WrongPricesArePassedOverAndTold) {
  Add("a", Template({{"cpu", "2"}}, {}, {{"loadline.dev/node-usd-per-hour", "cheap"}}));
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    request_.mutable_options(0)->set_node_usd_per_hour(wrong);
    const v1::NodePrice price = MustAsk().options(0).node_price();
    EXPECT_EQ(price.source(), v1::NodePrice::BASE_RATES);
    EXPECT_THAT(price.remarks(),
                ElementsAre(v1::NodePrice::GIVEN_PRICE_INVALID, v1::NodePrice::ANNOTATION_INVALID,
                            v1::NodePrice::NO_INSTANCE_TYPE));
  }
  request_.mutable_options(0)->set_node_usd_per_hour(0);  // it may be free
  EXPECT_EQ(MustAsk().options(0).node_price().source(), v1::NodePrice::GIVEN);
}

TEST_F(RankTest, EveryOptionHasAPlace) {
  Add("same", OfType("x", "2"));
  Add("same", OfType("x", "2"));
  Add("no-nodes", OfType("x", "2"), 0, 1);
  Add("no-pods", OfType("x", "2"), 1, 0);
  Add("no-template", OfType("x", "2"))->clear_template_node();
  Add("priced", OfType("x", "2"))->clear_template_node();
  request_.mutable_options(5)->set_node_usd_per_hour(0.01);
  EXPECT_THAT(Groups(), ElementsAre("same", "same", "no-template", "priced", "no-nodes", "no-pods"));
  const v1::RankOptionsResponse response = MustAsk();
  EXPECT_EQ(response.options(0).option(), 0);
  EXPECT_EQ(response.options(2).outcome(), v1::RankedOption::NO_PRICE);
  EXPECT_THAT(response.options(2).node_price().remarks(), ElementsAre(v1::NodePrice::NO_TEMPLATE));
  EXPECT_EQ(response.options(3).outcome(), v1::RankedOption::NO_TEMPLATE);
  EXPECT_EQ(response.options(4).outcome(), v1::RankedOption::HELPS_NO_POD);
}

TEST_F(RankTest, NoOptions) { EXPECT_THAT(MustAsk().options(), IsEmpty()); }

TEST_F(RankTest, Strategies) {
  v1::RankPolicy* const policy = request_.mutable_policy();
  policy->add_strategies(v1::RankPolicy::PRIORITY);
  policy->add_strategies(v1::RankPolicy::MOST_PODS);
  Add("unmatched", OfType("x", "2"), 1, 9);
  Add("few", OfType("x", "2"), 1, 1)->set_priority(10);
  Add("many", OfType("x", "2"), 1, 2)->set_priority(10);
  EXPECT_THAT(Groups(), ElementsAre("many", "few", "unmatched"));
  policy->add_strategies(v1::RankPolicy::PRIORITY);
  ExpectInvalid("policy: strategies[2]: occurs twice");
}

TEST_F(RankTest, ABrokenCatalogueNamesItsLine) {
  AddCatalogue("aws.csv", std::string(kTable) + "m5.2xlarge,8,dear\n");
  ExpectInvalid("prices: catalogues[0] \"aws.csv\": line 4: \"dear\" is not a price");
  request_.mutable_prices()->clear_catalogues();
  AddCatalogue("aws.csv", kTable);
  AddCatalogue("aws.csv", kTable);
  ExpectInvalid("catalogues[1]: name: \"aws.csv\" is that of a catalogue before");
}

TEST_F(RankTest, RefusesWrongFields) {
  const v1::RankOptionsRequest good = request_;
  const auto expect = [&](const std::string& text, auto change) {
    request_ = good;
    Add("a", OfType("x", "2"));
    change(request_);
    ExpectInvalid(text);
  };
  using Request = v1::RankOptionsRequest;
  const double nan = std::nan("");
  expect("policy: preset: required", [](Request& r) { r.clear_policy(); });
  expect("policy: preset: there is no value 9",
         [](Request& r) { r.mutable_policy()->set_preset(static_cast<v1::RankPolicy::Preset>(9)); });
  expect("policy: damper_usd_per_hour: nan",
         [&](Request& r) { r.mutable_policy()->set_damper_usd_per_hour(nan); });
  expect("policy: pod_rates: cpu_usd_per_hour: -1",
         [](Request& r) { r.mutable_policy()->mutable_pod_rates()->set_cpu_usd_per_hour(-1); });
  expect("policy: suppression_divisor: 0 ",
         [](Request& r) { r.mutable_policy()->set_suppression_divisor(0); });
  expect("policy: gpu_unfitness: 0.5", [](Request& r) { r.mutable_policy()->set_gpu_unfitness(0.5); });
  expect("policy: creation_factor: 0.5", [](Request& r) { r.mutable_policy()->set_creation_factor(0.5); });
  expect("policy: preferred_node.milli_cpu: 0",
         [](Request& r) { r.mutable_policy()->mutable_preferred_node(); });
  expect("policy: strategies[0]: there is no value 0",
         [](Request& r) { r.mutable_policy()->add_strategies(v1::RankPolicy::STRATEGY_UNSPECIFIED); });
  expect("prices: spot_factor: is 0", [](Request& r) { r.mutable_prices()->set_spot_factor(0); });
  expect("prices: interruption_risk: is 1", [](Request& r) { r.mutable_prices()->set_interruption_risk(1); });
  const auto risk_of = [](Request& r, const std::string& instance, double risk) {
    v1::InterruptionRisk* const entry = r.mutable_prices()->add_interruption_risks();
    entry->set_instance(instance);
    entry->set_risk(risk);
  };
  expect("prices: interruption_risks[0].risk: is 1", [&](Request& r) { risk_of(r, "m5", 1); });
  expect("prices: interruption_risks[0].instance: is empty", [&](Request& r) { risk_of(r, "", 0.5); });
  expect("prices: interruption_risks[1].instance: occurs twice", [&](Request& r) {
    risk_of(r, "m5", 0.5);
    risk_of(r, "m5", 0.4);
  });
  expect("prices: interruption_risk: nan",
         [&](Request& r) { r.mutable_prices()->set_interruption_risk(nan); });
  expect("prices: node_surcharge_usd_per_hour: -1",
         [](Request& r) { r.mutable_prices()->set_node_surcharge_usd_per_hour(-1); });
  expect("prices: commitments[0]: unused_milli_cpu: -1",
         [](Request& r) { r.mutable_prices()->add_commitments()->set_unused_milli_cpu(-1); });
  expect("prices: last_source: there is no value 9",
         [](Request& r) { r.mutable_prices()->set_last_source(static_cast<v1::NodePrice::Source>(9)); });
  expect("prices: base_rates: ephemeral_flat_usd_per_hour",
         [](Request& r) { r.mutable_prices()->mutable_base_rates()->set_ephemeral_flat_usd_per_hour(1); });
  expect("options[0]: template_node is not a k8s.io.api.core.v1.Node",
         [](Request& r) { r.mutable_options(0)->set_template_node("\xff"); });
  expect("options[0]: node_count: -1 is negative",
         [](Request& r) { r.mutable_options(0)->set_node_count(-1); });
  expect("options[0]: pods[0]: pod: 1 is none of the 1 pods",
         [](Request& r) { r.mutable_options(0)->mutable_pods(0)->set_pod(1); });
  expect("options[0]: pods[0]: pod: -1 is none",
         [](Request& r) { r.mutable_options(0)->mutable_pods(0)->set_pod(-1); });
  expect("options[0]: pods[0]: count: -1 is negative",
         [](Request& r) { r.mutable_options(0)->mutable_pods(0)->set_count(-1); });
  expect("cluster_nodes: -1 is negative", [](Request& r) { r.set_cluster_nodes(-1); });
}

TEST_F(RankTest, TooManyOptions) {
  for (int i = 0; i < 1'000'000; ++i) request_.add_options();
  ExpectError(absl::StatusCode::kResourceExhausted, "options: has 1000000 entries, the limit is 10000");
  request_.mutable_options()->DeleteSubrange(10'000, 990'000);
  EXPECT_EQ(MustAsk().options_size(), 10'000);
}

TEST_F(RankTest, TheSameBytesEachTime) {
  for (int i = 0; i < 50; ++i)
    Add("g" + std::to_string(i % 7), OfType("x", std::to_string(1 + i % 5)), i % 4, i % 3);
  const std::string question = request_.SerializeAsString();
  const absl::StatusOr<std::string> first = engine_.CallBytes(kRankOptions, question);
  const absl::StatusOr<std::string> second = engine_.CallBytes(kRankOptions, question);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

}  // namespace
}  // namespace loadline
