#include "core/price/own_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

constexpr char kMachineLabel[] = "node.kubernetes.io/instance-type";
constexpr char kRegionLabel[] = "topology.kubernetes.io/region";
constexpr char kBoughtLabel[] = "karpenter.sh/capacity-type";

PriceModel ListModel() {
  PriceModel model;
  auto parsed = ParsePriceCatalogue("aws",
                                    "# region: us-east-1\n"
                                    "instance_type,capacity_vcpu,on_demand_usd_per_hour,spot_usd_per_hour,"
                                    "on_demand_usd_per_hour@eu-west-1\n"
                                    "m5.large,2,0.1,0.04,0.15\nm5.2xlarge,8,0.4,,0.5\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  model.catalogues.push_back(std::make_shared<const PriceCatalogue>(*std::move(parsed)));
  return model;
}

// One group, whose new nodes are m5.large in us-east-1 on demand, and the nodes that tests add.
class OwnPriceTest : public ::testing::Test {
 protected:
  Slot Add(std::vector<Label> labels, std::string stated = "", int64_t cpus = 2) {
    FitNode node{.name = absl::StrCat("n", nodes_),
                 .allocatable = {{"cpu", cpus * 1000}, {"memory", 8 * kGi}, {"pods", 110}}};
    node.labels = std::move(labels);
    node.traits.stated_price = std::move(stated);
    cluster_.Add(node);
    const Slot slot{nodes_++};
    group_of_.Set(slot, GroupIndex{0});
    return slot;
  }
  const NodeGroup& Priced() {
    NodeGroup& group = groups_.emplace_back();
    group.priced = node_;
    group.price = PriceNode(model_, node_);
    group.usd_per_hour = group.node_price = group.price.price;
    PriceOtherKinds(model_, group_of_, cluster_.state(), &groups_);
    return group;
  }
  double Usd(const NodeGroup& group, Slot slot) { return UsdOf(group, cluster_.state(), slot).value_or(-1); }

  PriceModel model_ = ListModel();
  PricedNode node_{
      .instance_type = "m5.large", .region = "us-east-1", .milli_cpu = 2000, .memory_bytes = 8 * kGi};
  FitCluster cluster_;
  GroupsOfNodes group_of_;
  NodeGroups groups_;
  int32_t nodes_ = 0;
};

TEST_F(OwnPriceTest, LabelsOfTheNodeDecide) {
  const Slot alike =
      Add({{kMachineLabel, "m5.large"}, {kRegionLabel, "us-east-1"}, {kBoughtLabel, "on-demand"}});
  const Slot nameless = Add({});
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "", 8);
  const Slot spot = Add({{kBoughtLabel, "spot"}});
  const Slot abroad = Add({{kRegionLabel, "eu-west-1"}});
  const Slot all =
      Add({{kMachineLabel, "m5.2xlarge"}, {kRegionLabel, "eu-west-1"}, {kBoughtLabel, "spot"}}, "", 8);
  const NodeGroup& group = Priced();
  EXPECT_DOUBLE_EQ(Usd(group, alike), 0.1);
  EXPECT_DOUBLE_EQ(Usd(group, nameless), 0.1);
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.4);
  EXPECT_DOUBLE_EQ(Usd(group, spot), 0.04);
  EXPECT_DOUBLE_EQ(Usd(group, abroad), 0.15);
  EXPECT_DOUBLE_EQ(Usd(group, all), 0.5 * kAverageSpotRatio);
  EXPECT_EQ(SavedPrice(group, cluster_.state(), large), UsdOf(group, cluster_.state(), large));
  EXPECT_EQ(group.other_prices.size(), 4);
}

// The price that the cloud states for a new node is that of no other machine.
TEST_F(OwnPriceTest, PriceOfTheProviderIsOfNewNodes) {
  node_.provider = 0.09;
  const Slot alike = Add({});
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "", 8);
  const NodeGroup& group = Priced();
  EXPECT_DOUBLE_EQ(Usd(group, alike), 0.09);
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.4);
}

TEST_F(OwnPriceTest, GivenPriceHoldsForAll) {
  node_.given = 3;
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "2", 8);
  EXPECT_DOUBLE_EQ(Usd(Priced(), large), 3);
}

// k3s names itself where other clouds name the machine.
TEST_F(OwnPriceTest, UnknownTypeDoesNotReplaceAKnownOne) {
  const Slot node = Add({{kMachineLabel, "k3s"}}, "", 4);
  EXPECT_DOUBLE_EQ(Usd(Priced(), node), 0.1);
}

// Nodes of several types that no list has: each by its own size. By hand: 0.033174 * CPUs + 0.004446 * 8 GiB.
TEST_F(OwnPriceTest, EstimatesAreOfTheNode) {
  node_.instance_type = "x2";
  const Slot small = Add({{kMachineLabel, "x2"}});
  const Slot large = Add({{kMachineLabel, "x8"}}, "", 8);
  const NodeGroup& group = Priced();
  EXPECT_DOUBLE_EQ(Usd(group, small), 0.033174 * 2 + 0.004446 * 8);
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.033174 * 8 + 0.004446 * 8);
}

TEST_F(OwnPriceTest, GroupWithoutAPriceHasNone) {
  model_.last_source = PriceSource::kProvider;
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "", 8);
  NodeGroup& group = groups_.emplace_back();
  group.node_price = 7;  // in a currency of its own
  PriceOtherKinds(model_, group_of_, cluster_.state(), &groups_);
  EXPECT_EQ(UsdOf(group, cluster_.state(), large), std::nullopt);
  EXPECT_EQ(SavedPrice(group, cluster_.state(), large), 7);
}

// By hand: a machine of 2 with a risk of a fifth costs 2 / (1 - 0.2) = 2.5, and 0.1 beside it.
TEST_F(OwnPriceTest, StatedAmountHoldsForItsNode) {
  model_.interruption_risk = 0.2;
  model_.surcharge = 0.1;
  node_.spot = true;
  const Slot stated = Add({}, "2");
  const Slot other_kind = Add({{kMachineLabel, "m5.2xlarge"}}, "2", 8);
  std::vector<Slot> unreadable;
  for (const char* wrong : {"-1", "abc", "0,5", "$0.5", "NaN", "Inf", "1e300"}) {
    unreadable.push_back(Add({}, wrong));
  }
  const NodeGroup& group = Priced();
  EXPECT_EQ(PriceOfNode(group, cluster_.state(), stated).source, PriceSource::kNodeAnnotation);
  EXPECT_DOUBLE_EQ(Usd(group, stated), 2.6);
  EXPECT_DOUBLE_EQ(Usd(group, other_kind), 2.6);
  for (const Slot slot : unreadable) EXPECT_DOUBLE_EQ(Usd(group, slot), *group.usd_per_hour);
}

}  // namespace
}  // namespace loadline
