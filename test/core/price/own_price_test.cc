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
                                    "# region: us-east-1\n# os: linux\n"
                                    "instance_type,capacity_vcpu,on_demand_usd_per_hour,spot_usd_per_hour,"
                                    "on_demand_usd_per_hour@eu-west-1\n"
                                    "m5.large,2,0.1,0.04,0.15\nm5.2xlarge,8,0.4,,0.5\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  model.catalogues.push_back(std::make_shared<const PriceCatalogue>(*std::move(parsed)));
  return model;
}

constexpr char kSystemLabel[] = "kubernetes.io/os";

// One group, and the nodes that tests add. New nodes are m5.large in us-east-1 on demand.
class OwnPriceTest : public ::testing::Test {
 protected:
  Slot Add(std::vector<Label> labels, std::string stated = "", int64_t milli_cpu = 2000,
           int64_t memory = 8 * kGi, int64_t gpus = 0) {
    FitNode node{.name = absl::StrCat("n", nodes_),
                 .allocatable = {{"cpu", milli_cpu}, {"memory", memory}, {"pods", 110}}};
    if (gpus > 0) node.allocatable.push_back({"amd.com/gpu", gpus});
    node.labels = std::move(labels);
    node.traits.stated_price = std::move(stated);
    cluster_.Add(node);
    const Slot slot{nodes_++};
    group_of_.Set(slot, GroupIndex{0});
    return slot;
  }

  // A group whose new nodes are like the node of a slot, and `node_` for prices.
  const NodeGroup& LikeNode(Slot slot) {
    NodeGroup& group = groups_.emplace_back();
    group.model.emplace();
    group.model->shape = cluster_.state().node_shape(slot);
    group.priced = node_;
    group.price = PriceNode(model_, node_);
    group.usd_per_hour = group.node_price = group.price.price;
    PriceOtherKinds(model_, group_of_, cluster_.state(), &groups_);
    return group;
  }
  // One whose template states type, region, capacity type and system.
  const NodeGroup& Group() {
    return LikeNode(Add({{kMachineLabel, node_.instance_type},
                         {kRegionLabel, node_.region},
                         {kBoughtLabel, node_.spot ? "spot" : "on-demand"},
                         {kSystemLabel, "linux"}}));
  }

  PriceModel model_ = ListModel();
  PricedNode node_{
      .instance_type = "m5.large", .region = "us-east-1", .milli_cpu = 2000, .memory_bytes = 8 * kGi};
  FitCluster cluster_;
  GroupsOfNodes group_of_;
  NodeGroups groups_;
  int32_t nodes_ = 0;
};

double Usd(const NodeGroup& group, Slot slot) { return UsdOf(group, slot).value_or(-1); }

TEST_F(OwnPriceTest, LabelsOfTheNodeDecide) {
  const Slot alike =
      Add({{kMachineLabel, "m5.large"}, {kRegionLabel, "us-east-1"}, {kBoughtLabel, "on-demand"}});
  const Slot nameless = Add({});
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "", 8000);
  const Slot spot = Add({{kBoughtLabel, "spot"}});
  const Slot abroad = Add({{kRegionLabel, "eu-west-1"}});
  const Slot all =
      Add({{kMachineLabel, "m5.2xlarge"}, {kRegionLabel, "eu-west-1"}, {kBoughtLabel, "spot"}}, "", 8000);
  const Slot windows = Add({{kSystemLabel, "windows"}});
  const NodeGroup& group = Group();
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.4);
  EXPECT_DOUBLE_EQ(Usd(group, spot), 0.04);
  EXPECT_DOUBLE_EQ(Usd(group, abroad), 0.15);
  EXPECT_DOUBLE_EQ(Usd(group, all), 0.5 * kAverageSpotRatio);
  EXPECT_DOUBLE_EQ(Usd(group, windows), 0.1 + 2 * kWindowsCpu);
  EXPECT_EQ(SavedPrice(group, large), UsdOf(group, large));
  EXPECT_TRUE(OtherKindOf(group, all)->node.spot);
  for (const Slot same : {alike, nameless}) EXPECT_EQ(OtherKindOf(group, same), nullptr);
}

// Templates of Cluster API and of several servers name no machine. Nodes with a type that a list has would
// cost something else than new ones, which are the same, and replacement would go on for ever.
TEST_F(OwnPriceTest, NodeDiffersFromNothingThatTheTemplateLeavesOpen) {
  node_.instance_type = node_.region = "";
  const Slot made = Add({{kMachineLabel, "m5.2xlarge"},
                         {kRegionLabel, "eu-west-1"},
                         {kBoughtLabel, "spot"},
                         {kSystemLabel, "windows"}});
  const NodeGroup& group = LikeNode(Add({}));
  EXPECT_EQ(group.price.source, PriceSource::kBaseRates);
  EXPECT_EQ(OtherKindOf(group, made), nullptr);
  EXPECT_EQ(UsdOf(group, made), group.usd_per_hour);
}

// The price that the cloud states for a new node is that of no other machine.
TEST_F(OwnPriceTest, PriceOfTheProviderIsOfNewNodes) {
  node_.provider = 0.09;
  const Slot alike = Add({{kMachineLabel, "m5.large"}});
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "", 8000);
  const Slot unlisted = Add({{kMachineLabel, "x8"}}, "", 8000);
  const NodeGroup& group = Group();
  EXPECT_DOUBLE_EQ(Usd(group, alike), 0.09);
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.4);
  EXPECT_DOUBLE_EQ(Usd(group, unlisted), 0.09) << "an estimate does not replace it";
}

TEST_F(OwnPriceTest, GivenPriceHoldsForAll) {
  node_.given = 3;
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "2", 8000);
  EXPECT_DOUBLE_EQ(Usd(Group(), large), 3);
}

// k3s names itself where other clouds name the machine.
TEST_F(OwnPriceTest, UnknownTypeDoesNotReplaceAKnownOne) {
  const Slot node = Add({{kMachineLabel, "k3s"}}, "", 4000);
  EXPECT_DOUBLE_EQ(Usd(Group(), node), 0.1);
}

// By hand: 0.033174 USD for each CPU, 0.004446 for each GiB and 0.7 for each GPU.
TEST_F(OwnPriceTest, EstimatesAreOfTheNode) {
  node_.instance_type = "x2";
  const Slot large = Add({{kMachineLabel, "x8"}}, "", 8000);
  const Slot gpus = Add({{kMachineLabel, "x2-gpu"}}, "", 2000, 8 * kGi, 2);
  const NodeGroup& group = Group();
  EXPECT_DOUBLE_EQ(*group.usd_per_hour, 0.033174 * 2 + 0.004446 * 8);
  EXPECT_DOUBLE_EQ(Usd(group, large), 0.033174 * 8 + 0.004446 * 8);
  EXPECT_DOUBLE_EQ(Usd(group, gpus), 0.033174 * 2 + 0.004446 * 8 + 0.7 * 2);
}

// One name for machines of several sizes, which no list has. The machine of a template may be a little larger
// or smaller than those that it makes: a quarter is no difference, and a little more is one.
TEST_F(OwnPriceTest, SizeOfAnUnlistedTypeCounts) {
  node_.instance_type = "k3s";
  node_.gpus = 1;
  const auto add = [&](int64_t milli_cpu, int64_t memory, int64_t gpus) {
    return Add({{kMachineLabel, "k3s"}}, "", milli_cpu, memory, gpus);
  };
  const std::vector<Slot> alike = {add(2500, 10 * kGi, 1), add(1600, 8 * kGi, 1), add(2000, 8 * kGi, 0)};
  const Slot cpus = add(2501, 8 * kGi, 1), memory = add(2000, 10 * kGi + 1, 1), gpus = add(2000, 8 * kGi, 2);
  const NodeGroup& group = LikeNode(add(2000, 8 * kGi, 1));
  for (const Slot slot : alike) EXPECT_EQ(OtherKindOf(group, slot), nullptr);
  EXPECT_DOUBLE_EQ(Usd(group, cpus), 0.033174 * 2.501 + 0.004446 * 8 + 0.7);
  EXPECT_GT(Usd(group, memory), 0.033174 * 2 + 0.004446 * 10 + 0.7);
  EXPECT_DOUBLE_EQ(Usd(group, gpus), 0.033174 * 2 + 0.004446 * 8 + 1.4);
}

// GCE attaches GPUs to machines of its first generation: a list prices the type without them. A node that
// offers none may have yet to register them.
TEST_F(OwnPriceTest, GpusAttachedToAListedTypeCount) {
  auto list = ParsePriceCatalogue("own", "instance_type,on_demand_usd_per_hour\nn1-standard-2,0.1\n");
  ASSERT_TRUE(list.ok()) << list.status();
  model_.catalogues = {std::make_shared<const PriceCatalogue>(*std::move(list))};
  node_.instance_type = "n1-standard-2";
  const Slot attached = Add({{kMachineLabel, "n1-standard-2"}}, "", 2000, 8 * kGi, 2);
  const Slot alike = Add({{kMachineLabel, "n1-standard-2"}});
  const NodeGroup& group = Group();
  EXPECT_DOUBLE_EQ(Usd(group, attached), 0.1 + 2 * 0.7);
  EXPECT_EQ(OtherKindOf(group, alike), nullptr);
}

// A list prices a type, and the size says nothing new of it.
TEST_F(OwnPriceTest, SizeOfAListedTypeDoesNotCount) {
  const Slot node = Add({{kMachineLabel, "m5.large"}}, "", 8000);
  EXPECT_EQ(OtherKindOf(Group(), node), nullptr);
}

TEST_F(OwnPriceTest, GroupWithoutAPriceHasNone) {
  const Slot large = Add({{kMachineLabel, "m5.2xlarge"}}, "1", 8000);
  NodeGroup& group = groups_.emplace_back();
  group.model.emplace();
  group.node_price = 7;  // in a currency of its own
  PriceOtherKinds(model_, group_of_, cluster_.state(), &groups_);
  EXPECT_EQ(UsdOf(group, large), std::nullopt);
  EXPECT_EQ(SavedPrice(group, large), 7);
}

// By hand: a machine of 2 with a risk of a fifth costs 2 / (1 - 0.2) = 2.5, and 0.1 beside it.
TEST_F(OwnPriceTest, StatedAmountHoldsForItsNode) {
  model_.interruption_risk = 0.2;
  model_.surcharge = 0.1;
  node_.spot = true;
  const Slot stated = Add({}, "2");
  const Slot other_kind = Add({{kMachineLabel, "m5.2xlarge"}}, "2", 8000);
  const Slot unreadable = Add({}, "$0.5");
  const NodeGroup& group = Group();
  EXPECT_EQ(OtherKindOf(group, stated)->price.source, PriceSource::kNodeAnnotation);
  EXPECT_DOUBLE_EQ(Usd(group, stated), 2.6);
  EXPECT_DOUBLE_EQ(Usd(group, other_kind), 2.6);
  EXPECT_EQ(Usd(group, unreadable), *group.usd_per_hour);
}

}  // namespace
}  // namespace loadline
