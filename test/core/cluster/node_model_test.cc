#include "core/cluster/node_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGpu[] = "nvidia.com/gpu";

// Nodes of one group.
class Group {
 public:
  Slot Add(FitNode node, const std::vector<FitPod>& pods = {}) {
    if (node.name.empty()) node.name = absl::StrCat("n", nodes_.size());
    cluster_.Add(node, pods);
    nodes_.push_back(Slot{static_cast<int32_t>(nodes_.size())});
    return nodes_.back();
  }
  NodeModel Model(const NodeShape* stated = nullptr) {
    const std::optional<NodeModel> model =
        ModelOfNewNode(cluster_.state(), {stated, nodes_, lacking_}, startup_taints_, cluster_.names());
    return model.value_or(NodeModel());
  }
  std::string LabelOf(const NodeModel& model, const std::string& key) {
    const std::string* const value = model.shape.labels.Find(key);
    return value == nullptr ? "" : *value;
  }
  int64_t Amount(const NodeModel& model, const std::string& resource) {
    return model.shape.allocatable.Get(*cluster_.names().Find(resource));
  }

  FitCluster cluster_;
  std::vector<Slot> nodes_;
  std::vector<Slot> lacking_;
  StartupTaints startup_taints_;
};

class NodeModelTest : public ::testing::Test, public Group {};

TEST_F(NodeModelTest, NobodyKnows) {
  EXPECT_FALSE(ModelOfNewNode(cluster_.state(), {}, {}, cluster_.names()).has_value());
}

TEST_F(NodeModelTest, ALabelOrTaintOfOneNodeOfManyIsItsOwn) {
  for (int i = 0; i < 5; ++i) Add({.labels = {{"pool", "a"}}, .taints = {{"dedicated", "x", "NoSchedule"}}});
  Add({.labels = {{"pool", "a"}, {"role", "special"}},
       .taints = {{"dedicated", "x", "NoSchedule"}, {"maintenance", "disk", "NoSchedule"}}});
  const NodeModel model = Model();
  EXPECT_EQ(model.source, ModelSource::kShared);
  EXPECT_EQ(model.nodes, 6);
  EXPECT_EQ(model.shape.labels, Labels(std::vector<Label>{{"pool", "a"}}));
  EXPECT_THAT(model.shape.taints, ElementsAre(Taint{"dedicated", "x", "NoSchedule"}));
}

TEST_F(NodeModelTest, HalfOfTheNodesAreNotMost) {
  Add({.labels = {{"role", "special"}}});
  Add({});
  EXPECT_EQ(LabelOf(Model(), "role"), "");
  Add({.labels = {{"role", "special"}}});
  EXPECT_EQ(LabelOf(Model(), "role"), "special");
}

TEST_F(NodeModelTest, TheOnlyNodeIsTheModelButForItsName) {
  Add({.name = "only", .labels = {{"pool", "a"}, {"disk/node", "only"}}, .unschedulable = true});
  const NodeModel model = Model();
  EXPECT_EQ(model.source, ModelSource::kSingle);
  EXPECT_EQ(model.shape.labels, Labels(std::vector<Label>{{"pool", "a"}}));
  EXPECT_FALSE(model.shape.unschedulable);
  EXPECT_EQ(model.shape.csi_node, "only");
}

// Static pods of kube-proxy differ by name, age and labels. Two of three nodes have it, one has it twice.
TEST_F(NodeModelTest, StaticPodsOfMostNodesCount) {
  const auto proxy = [](int64_t created_s) {
    FitPod pod{.namespace_name = "kube-system", .requests = {{"cpu", 100}}};
    pod.traits.mirror = true;
    pod.traits.created_s = created_s;
    return pod;
  };
  FitPod forged = proxy(5);  // anybody may write the annotations
  forged.namespace_name = "evil";
  FitPod of_admins = forged;
  of_admins.namespace_name = "logs";
  of_admins.traits.owner = PodOwner{"Node", "v1", "a", "uid-a"};
  of_admins.traits.mirror = false;
  of_admins.traits.static_pod = true;
  Add({.name = "a"}, {proxy(1), proxy(2), forged, of_admins});
  Add({.name = "b"}, {proxy(3), forged, of_admins});
  FitPod ordinary = proxy(4);
  ordinary.traits.mirror = false;
  Add({.name = "c"}, {ordinary});
  const NodeModel model = Model();
  ASSERT_EQ(model.static_pods.size(), 1U);
  EXPECT_EQ(model.static_pods[0].requests.Get(kCpu), 100);
  EXPECT_NE(model.Fingerprint(), model.shape.fingerprint);
  Snapshot snapshot(cluster_.state());
  const NodeIndex node = AddNodeOf(model, "new", &snapshot);
  EXPECT_EQ(snapshot.amount(node, kCpu).requested, 100);
  EXPECT_EQ(snapshot.pods(node).size(), 1U);
}

// The name of a machine is no property of its group; of a disk kind or a rack a new node has one or another.
TEST_F(NodeModelTest, AValueThatDiffersByNodeIsOneOfSeveral) {
  constexpr char kMachine[] = "alpha.eksctl.io/instance-id";
  for (const char* const id : {"i-1", "i-2", "i-3"})
    Add({.labels = {{kMachine, id}, {"rack", "r1"}, {"disk", id}}});
  Add({.labels = {{kMachine, "i-4"}, {"rack", "r2"}, {"disk", "i-3"}}});
  NodeModel model = Model();
  EXPECT_EQ(LabelOf(model, kMachine), "");
  EXPECT_EQ(LabelOf(model, "rack"), "r1") << "three of four";
  EXPECT_EQ(LabelOf(model, "disk"), kOneOfSeveral) << "two of four";
  for (int i = 0; i < 4; ++i) Add({});
  model = Model();
  EXPECT_EQ(LabelOf(model, "disk"), "") << "half of them have none";
}

TEST_F(NodeModelTest, OfSeveralTypesTheMostFrequentOneCounts) {
  constexpr char kType[] = "node.kubernetes.io/instance-type";
  for (const char* const type : {"m5", "m5a", "m5a", "m6i", "m5"}) Add({.labels = {{kType, type}}});
  EXPECT_EQ(LabelOf(Model(), kType), "m5") << "the first by name among equals";
  Add({.labels = {{kType, "m5a"}}});
  EXPECT_EQ(LabelOf(Model(), kType), "m5a");
}

// One node is schedulable, the others are cordoned: what somebody has put on it by hand is still its own.
TEST_F(NodeModelTest, CordonedNodesCountForLabelsAndTaints) {
  for (int i = 0; i < 4; ++i) Add({.labels = {{"pool", "a"}}, .unschedulable = true});
  Add({.labels = {{"pool", "a"}, {"special", "yes"}}, .taints = {{"disk", "full", "NoSchedule"}}});
  const NodeModel model = Model();
  EXPECT_EQ(model.source, ModelSource::kShared);
  EXPECT_EQ(model.nodes, 1);
  EXPECT_EQ(model.shape.labels, Labels(std::vector<Label>{{"pool", "a"}}));
  EXPECT_THAT(model.shape.taints, IsEmpty());
}

// A maintenance taint on most nodes does not count either while the healthy ones lack it.
TEST_F(NodeModelTest, TaintsOfCordonedNodesAreTheirs) {
  for (int i = 0; i < 3; ++i) Add({.taints = {{"maintenance", "", "NoSchedule"}}, .unschedulable = true});
  Add({});
  EXPECT_THAT(Model().shape.taints, IsEmpty());
}

TEST_F(NodeModelTest, TheCloudCountsCordonedMachinesOfAZone) {
  for (const char* const zone : {"a", "a", "b", "b"}) Add({.labels = {{kZone, zone}}});
  Add({.labels = {{kZone, "c"}}, .unschedulable = true});
  EXPECT_EQ(LabelOf(Model(), kZone), "c");
}

TEST_F(NodeModelTest, TheNextNodeComesToTheZoneWithTheFewest) {
  const auto in = [&](const std::string& zone) {
    Add({.labels = {{kZone, zone},
                    {"topology.ebs.csi.aws.com/zone", zone},
                    {"topology.k8s.aws/zone-id", "id-" + zone},
                    {"topology.kubernetes.io/region", "r"}}});
  };
  for (const char* const zone : {"a", "b", "c", "a", "b"}) in(zone);
  NodeModel model = Model();
  EXPECT_EQ(LabelOf(model, kZone), "c");
  EXPECT_EQ(LabelOf(model, "topology.ebs.csi.aws.com/zone"), "c");
  EXPECT_EQ(LabelOf(model, "topology.k8s.aws/zone-id"), "id-c");
  EXPECT_EQ(LabelOf(model, "topology.kubernetes.io/region"), "r");
  EXPECT_THAT(model.zones, ElementsAre("a", "b", "c"));
  in("c");
  EXPECT_EQ(LabelOf(Model(), kZone), "a") << "the first by name among equals";
}

TEST_F(NodeModelTest, OneZoneIsNoChoice) {
  for (int i = 0; i < 3; ++i) Add({.labels = {{kZone, "a"}}});
  Add({});  // not labelled yet
  const NodeModel model = Model();
  EXPECT_EQ(LabelOf(model, kZone), "a");
  EXPECT_THAT(model.zones, IsEmpty());
}

TEST_F(NodeModelTest, TheLeastAmountOfThoseThatOfferIt) {
  for (const int64_t memory : {1000, 990, 995}) Add({.allocatable = {{"cpu", 4000}, {"memory", memory}}});
  EXPECT_EQ(Amount(Model(), "memory"), 990);
  EXPECT_EQ(Amount(Model(), "cpu"), 4000);
  Add({.allocatable = {{"cpu", 4000}, {"memory", 750}}});
  EXPECT_EQ(Amount(Model(), "memory"), 750);  // of 990, three quarters are 743
}

TEST_F(NodeModelTest, ANodeThatSomebodyHasLimitedDoesNotCount) {
  for (int i = 0; i < 4; ++i) Add({.allocatable = {{"cpu", 4000}, {kGpu, 8}}});
  Add({.allocatable = {{"cpu", 1000}, {kGpu, 7}, {"example.com/own", 1}}});
  const NodeModel model = Model();
  EXPECT_EQ(Amount(model, "cpu"), 4000);
  EXPECT_EQ(Amount(model, kGpu), 8);
  EXPECT_EQ(Amount(model, "example.com/own"), 0);
}

TEST_F(NodeModelTest, NodesThatStartGoOrLackDevicesDoNotCount) {
  Add({.labels = {{"pool", "a"}}});
  FitNode unready{.labels = {{"pool", "b"}}};
  unready.traits.ready = false;
  Add(unready);
  Add({.labels = {{"pool", "b"}}, .taints = {{"readiness.k8s.io/cni", "", "NoSchedule"}}});
  Add({.labels = {{"pool", "b"}}, .taints = {{"ToBeDeletedByClusterAutoscaler", "5", "NoSchedule"}}});
  Add({.labels = {{"pool", "b"}}, .taints = {{"boot", "", "NoSchedule"}}});
  lacking_ = {Add({.labels = {{"pool", "b"}}})};
  startup_taints_.startup = {"boot"};
  NodeModel model = Model();
  EXPECT_EQ(model.source, ModelSource::kSingle);
  EXPECT_EQ(LabelOf(model, "pool"), "a");
  // That it is not needed says nothing of a node.
  Add({.labels = {{"pool", "a"}},
       .taints = {{"DeletionCandidateOfClusterAutoscaler", "5", "PreferNoSchedule"}}});
  model = Model();
  EXPECT_EQ(model.nodes, 2);
  EXPECT_THAT(model.shape.taints, IsEmpty());
}

TEST_F(NodeModelTest, WhereNoNodeIsHealthyAllCount) {
  for (int i = 0; i < 3; ++i) {
    Add({.labels = {{"pool", "a"}}, .taints = {{"node.kubernetes.io/not-ready", "", "NoSchedule"}}});
  }
  const NodeModel model = Model();
  EXPECT_EQ(LabelOf(model, "pool"), "a");
  EXPECT_THAT(model.shape.taints, IsEmpty());
}

TEST_F(NodeModelTest, ATemplateSaysLabelsAndTaints) {
  for (int i = 0; i < 3; ++i) {
    Add({.allocatable = {{"cpu", 3920}, {"memory", 900}, {kGpu, 1}},
         .labels = {{"pool", "b"}, {"role", "special"}},
         .taints = {{"maintenance", "", "NoSchedule"}}});
  }
  NodeShape stated = cluster_.Shape(FitNode{
      .name = "t",
      .allocatable = {{"cpu", 4000}, {"memory", 1800}, {"pods", 110}},
      .labels = {{"pool", "a"}},
      .taints = {{"dedicated", "", "NoSchedule"}, {"node.cilium.io/agent-not-ready", "", "NoExecute"}},
      .unschedulable = true});
  const NodeModel model = Model(&stated);
  EXPECT_EQ(model.source, ModelSource::kStated);
  EXPECT_EQ(model.nodes, 3);
  EXPECT_EQ(model.shape.labels, Labels(std::vector<Label>{{"pool", "a"}}));
  EXPECT_THAT(model.shape.taints, ElementsAre(Taint{"dedicated", "", "NoSchedule"}));
  EXPECT_FALSE(model.shape.unschedulable);
  EXPECT_EQ(Amount(model, "cpu"), 3920) << "the cloud does not know what is reserved";
  EXPECT_EQ(Amount(model, "memory"), 1800) << "half of it: these nodes are of another kind";
  EXPECT_EQ(Amount(model, "pods"), 110);
  EXPECT_EQ(Amount(model, kGpu), 1) << "the cloud does not know of it";
}

// A file seldom names what each kubelet says of its node; what it does name holds.
TEST_F(NodeModelTest, ATemplateHasTheSystemAndArchitectureOfMostNodes) {
  const auto add = [&](const char* arch) {
    Add({.labels = {{"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", arch}, {"role", "special"}}});
  };
  add("arm64");
  add("arm64");
  add("amd64");
  NodeShape stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"pool", "a"}}});
  EXPECT_EQ(Model(&stated).shape.labels,
            Labels(std::vector<Label>{
                {"kubernetes.io/arch", "arm64"}, {"kubernetes.io/os", "linux"}, {"pool", "a"}}));
  stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"kubernetes.io/arch", "amd64"}}});
  EXPECT_EQ(LabelOf(Model(&stated), "kubernetes.io/arch"), "amd64");
  EXPECT_EQ(LabelOf(Model(&stated), "kubernetes.io/os"), "linux");
  stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"beta.kubernetes.io/arch", "amd64"}}});
  EXPECT_EQ(LabelOf(Model(&stated), "kubernetes.io/arch"), "amd64") << "one node has one architecture";
  add("amd64");
  stated = cluster_.Shape(FitNode{.name = "t"});
  EXPECT_EQ(LabelOf(Model(&stated), "kubernetes.io/arch"), "") << "half of them are not most";
}

TEST_F(NodeModelTest, AMachineThatNobodyHasSeenRunsLinuxOnAmd64) {
  NodeShape stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"pool", "a"}}});
  EXPECT_EQ(Model(&stated).shape.labels, Labels(std::vector<Label>{{"beta.kubernetes.io/arch", "amd64"},
                                                                   {"beta.kubernetes.io/os", "linux"},
                                                                   {"kubernetes.io/arch", "amd64"},
                                                                   {"kubernetes.io/os", "linux"},
                                                                   {"pool", "a"}}));
  stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"beta.kubernetes.io/os", "windows"}}});
  EXPECT_EQ(LabelOf(Model(&stated), "kubernetes.io/os"), "windows");
}

// A cloud controller of today and one of last year label nodes of one type.
TEST_F(NodeModelTest, FactsAreReadFromEachOfTheirKeys) {
  Add({.labels = {{"node.kubernetes.io/instance-type", "m5"}, {kZone, "a"}, {"role", "special"}}});
  Add({.labels = {{"beta.kubernetes.io/instance-type", "m5"},
                  {"failure-domain.beta.kubernetes.io/zone", "a"},
                  {"role", "special"}}});
  const NodeModel model = Model(nullptr);
  EXPECT_EQ(LabelOf(model, "node.kubernetes.io/instance-type"), "m5");
  EXPECT_EQ(LabelOf(model, kZone), "a");
}

TEST_F(NodeModelTest, OfMachinesOfSeveralSizesItHasTheAmountsOfOneType) {
  const auto add = [&](const char* type, int64_t cpu) {
    Add({.allocatable = {{"cpu", cpu}, {"memory", 1800}, {"pods", 110}},
         .labels = {{"node.kubernetes.io/instance-type", type}, {"role", "special"}}});
  };
  add("large", 8000);
  add("small", 4000);
  add("huge", 16000);
  EXPECT_EQ(LabelOf(Model(nullptr), "node.kubernetes.io/instance-type"), "small")
      << "of equally frequent ones";
  EXPECT_EQ(Amount(Model(nullptr), "cpu"), 4000);
  add("huge", 15900);
  EXPECT_EQ(LabelOf(Model(nullptr), "node.kubernetes.io/instance-type"), "huge") << "the most frequent one";
  EXPECT_EQ(Amount(Model(nullptr), "cpu"), 15900);
}

TEST_F(NodeModelTest, AZoneThatMostNodesDoNotHaveIsSetByHand) {
  Add({.labels = {{kZone, "a"}, {"role", "special"}}});
  Add({.labels = {{"role", "special"}}});
  Add({.labels = {{"role", "special"}}});
  EXPECT_EQ(LabelOf(Model(nullptr), kZone), "");
}

// Zone and type are those of the nodes, also under the keys of CSI drivers, unless the template says others.
TEST_F(NodeModelTest, ATemplateHasTheZoneAndTypeOfItsNodes) {
  constexpr char kType[] = "node.kubernetes.io/instance-type";
  constexpr char kDisks[] = "topology.ebs.csi.aws.com/zone";
  for (const char* const zone : {"a", "b", "b"}) {
    Add({.labels = {{kZone, zone}, {kDisks, zone}, {kType, "m5"}, {"role", "special"}}});
  }
  NodeShape stated = cluster_.Shape(FitNode{.name = "t", .labels = {{"pool", "x"}}});
  NodeModel model = Model(&stated);
  EXPECT_EQ(model.shape.labels,
            Labels(std::vector<Label>{{kType, "m5"}, {"pool", "x"}, {kDisks, "a"}, {kZone, "a"}}));
  EXPECT_THAT(model.zones, ElementsAre("a", "b"));
  stated = cluster_.Shape(FitNode{.name = "t", .labels = {{kZone, "b"}, {kType, "m6"}}});
  model = Model(&stated);
  EXPECT_EQ(LabelOf(model, kDisks), "b");
  EXPECT_EQ(LabelOf(model, kType), "m6");
  EXPECT_THAT(model.zones, IsEmpty());
}

TEST_F(NodeModelTest, ADeviceThatNoHealthyNodeOffersIsNotExpected) {
  const NodeShape stated = cluster_.Shape(FitNode{.name = "t", .allocatable = {{"cpu", 4'000}, {kGpu, 1}}});
  EXPECT_EQ(Amount(Model(&stated), kGpu), 1) << "there is no node";
  const Slot slot = Add({.allocatable = {{"cpu", 4'000}}});
  lacking_ = {slot};
  EXPECT_EQ(Amount(Model(&stated), kGpu), 1) << "the device may still come";
  lacking_.clear();
  EXPECT_EQ(Amount(Model(&stated), kGpu), 0) << "it did not come";
  Add({.allocatable = {{"cpu", 4'000}, {kGpu, 1}}});
  Add({.allocatable = {{"cpu", 4'000}, {kGpu, 1}}});
  EXPECT_EQ(Amount(Model(&stated), kGpu), 1) << "two of three have it";
}

TEST_F(NodeModelTest, FeaturesAndCsiNodeAreThoseOfMost) {
  const auto add = [&](const std::string& name, std::vector<std::string> features,
                       std::optional<int32_t> volumes) {
    NodeShape shape = cluster_.Shape(FitNode{.name = name});
    cluster_.state().set_resource_names(cluster_.names());
    shape.declared_features = std::move(features);
    const Slot slot{static_cast<int32_t>(nodes_.size())};
    cluster_.state().SetNode(slot, name, CompleteNodeShape(std::move(shape), cluster_.names()), {}, name);
    nodes_.push_back(slot);
    if (!volumes.has_value()) return;
    cluster_.state().objects().Set({{ObjectKind::kCsiNode, "", name}, CsiNode{{{"ebs", *volumes}}, {}}});
  };
  add("a", {"A", "B"}, 1);
  add("b", {"A"}, 25);
  add("c", {"A", "C"}, 25);
  add("d", {}, std::nullopt);
  const NodeModel model = Model();
  EXPECT_THAT(model.shape.declared_features, ElementsAre("A"));
  EXPECT_EQ(model.shape.csi_node, "b");
  for (const char* const young : {"e", "f", "g", "h"}) add(young, {}, std::nullopt);
  EXPECT_EQ(Model().shape.csi_node, "b") << "the drivers of most have yet to register";
}

// Other names, in another order, give the same model.
TEST_F(NodeModelTest, NamesAndOrderDecideNothing) {
  std::vector<FitNode> nodes;
  for (int i = 0; i < 7; ++i) {
    nodes.push_back({.allocatable = {{"cpu", 4000 - i}, {"memory", 100}},
                     .labels = {{kZone, std::string(1, static_cast<char>('a' + i % 3))},
                                {"type", i % 2 == 0 ? "x" : "y"}},
                     .taints = {{"t", i < 4 ? "1" : "2", "NoSchedule"}}});
  }
  std::optional<NodeModel> first;
  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    Group other;
    for (size_t i = 0; i < order.size(); ++i) {
      nodes[static_cast<size_t>(order[i])].name = absl::StrCat("n", i);
      other.Add(nodes[static_cast<size_t>(order[i])]);
    }
    NodeModel model = other.Model();
    model.shape = WithCsiNodeOf(model.shape, "");
    if (!first.has_value()) first = model;
    EXPECT_EQ(model.shape, first->shape);
  } while (std::next_permutation(order.begin(), order.end() - 3));
}

}  // namespace
}  // namespace loadline
