#include "core/observe/derived_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/node_kind.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr char kType[] = "node.kubernetes.io/instance-type";
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kNowS = 1'800'000'000;

class DerivedGroupsTest : public ::testing::Test {
 protected:
  FitNode Node(const std::string& name, std::vector<Label> labels) {
    FitNode node{.name = name, .allocatable = {{"cpu", 3'900}, {"memory", 15 * kGiB}, {"pods", 58}}};
    node.labels = std::move(labels);
    return node;
  }
  void Add(const std::string& name, std::vector<Label> labels, std::vector<Taint> taints = {}) {
    FitNode node = Node(name, std::move(labels));
    node.taints = std::move(taints);
    cluster_.Add(node);
  }
  // A node with a pod that selects nodes by this label.
  void AddWithSelector(const std::string& name, std::vector<Label> labels, const std::string& key,
                       const std::string& value) {
    FitPod pod{.requests = {{"cpu", 100}}};
    pod.rules.node_selector.Set(key, value);
    cluster_.Add(Node(name, std::move(labels)), {pod});
  }
  // Names of the nodes by group.
  std::map<std::string, std::vector<std::string>> Groups() {
    std::map<std::string, std::vector<std::string>> groups;
    const DerivedGroups derived = DeriveGroups(cluster_.state(), startup_taints_, kNowS);
    for (const GroupIndex group : derived.groups.indices()) {
      for (const Slot slot : derived.groups[group].nodes) {
        groups[derived.groups[group].name].push_back(std::string(cluster_.state().name(slot)));
        EXPECT_EQ(derived.group_of[slot], group);
      }
    }
    return groups;
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    for (const auto& [name, nodes] : Groups()) names.insert(name);
    return names;
  }

  NodeToCome NewNode(const FitCluster& cluster, const std::vector<Slot>& nodes,
                     const std::vector<Slot>& lacking = {}) {
    return NewNodeOf(cluster.state(), {.nodes = nodes, .lacking = lacking}, startup_taints_);
  }

  FitCluster cluster_;
  StartupTaints startup_taints_;
};

TEST_F(DerivedGroupsTest, PoolTypeZoneAndCapacityTellNodesApart) {
  Add("b", {{kType, "m5.large"}, {kZone, "a"}, {"karpenter.sh/nodepool", "p"}});
  Add("a", {{kType, "m5.large"}, {kZone, "a"}, {"karpenter.sh/nodepool", "p"}});
  Add("c", {{kType, "m5.large"}, {kZone, "b"}, {"karpenter.sh/nodepool", "p"}});
  Add("d", {{kType, "m5.large"}, {kZone, "a"}, {"karpenter.sh/nodepool", "q"}});
  Add("e", {{kType, "m5.large"}, {kZone, "a"}, {"karpenter.sh/capacity-type", "spot"}});
  Add("f", {{kType, "m5.large"}, {kZone, "a"}, {"karpenter.sh/capacity-type", "reserved"}});
  EXPECT_THAT(
      Groups(),
      ElementsAre(Pair("m5.large/a/reserved", ElementsAre("f")), Pair("m5.large/a/spot", ElementsAre("e")),
                  Pair("p/m5.large/a", ElementsAre("a", "b")), Pair("p/m5.large/b", ElementsAre("c")),
                  Pair("q/m5.large/a", ElementsAre("d"))));
}

TEST_F(DerivedGroupsTest, SystemArchitectureRolesAndTaintsTellNodesApart) {
  Add("a", {{kType, "m"}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}});
  Add("b", {{kType, "m"}, {"kubernetes.io/os", "windows"}, {"kubernetes.io/arch", "amd64"}});
  Add("c", {{kType, "m"}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "arm64"}});
  Add("d", {{kType, "m"},
            {"kubernetes.io/os", "linux"},
            {"kubernetes.io/arch", "amd64"},
            {"node-role.kubernetes.io/infra", ""}});
  Add("e", {{kType, "m"}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}},
      {{"gpu", "", "NoSchedule"}, {"node.kubernetes.io/not-ready", "", "NoExecute"}});
  EXPECT_THAT(Groups(), ElementsAre(Pair("m", ElementsAre("a")), Pair("m/arm64", ElementsAre("c")),
                                    Pair("m/gpu=:NoSchedule", ElementsAre("e")),
                                    Pair("m/infra", ElementsAre("d")), Pair("m/windows", ElementsAre("b"))));
}

TEST_F(DerivedGroupsTest, ANodeWithoutATypeIsToldByItsRoundedSize) {
  for (const auto& [name, memory] : {std::pair("a", 16 * kGiB - 5'000'000), std::pair("b", 16 * kGiB)}) {
    FitNode node = Node(name, {});
    node.traits.capacity[kCpu] = 4'000;
    node.traits.capacity[kMemory] = memory;
    cluster_.Add(node);
  }
  Add("c", {});
  EXPECT_THAT(Groups(), ElementsAre(Pair("3900m-cpu-15Gi", ElementsAre("c")),
                                    Pair("4-cpu-16Gi", ElementsAre("a", "b"))));
}

TEST_F(DerivedGroupsTest, ANodeWithoutATypeIsToldByItsGpusToo) {
  for (const auto& [name, gpus] : {std::pair("a", 4), std::pair("b", 0), std::pair("c", 4)}) {
    FitNode node = Node(name, {});
    if (gpus > 0) node.allocatable.emplace_back("nvidia.com/gpu", gpus);
    node.allocatable.emplace_back("example.com/fpga", 1);
    cluster_.Add(node);
  }
  EXPECT_THAT(Groups(), ElementsAre(Pair("3900m-cpu-15Gi", ElementsAre("b")),
                                    Pair("3900m-cpu-15Gi/4-nvidia.com/gpu", ElementsAre("a", "c"))));
}

TEST_F(DerivedGroupsTest, ANodeWhoseGpusAreStillToComeIsOfTheGroupOfOthers) {
  for (const auto& [name, gpus] : {std::pair("a", 4), std::pair("b", 0), std::pair("c", 0)}) {
    FitNode node = Node(name, {});
    if (name != std::string("c")) node.labels = {{"cloud.google.com/gke-accelerator", "nvidia-l4"}};
    if (gpus > 0) node.allocatable.emplace_back("nvidia.com/gpu", gpus);
    cluster_.Add(node);
  }
  EXPECT_THAT(Groups(), ElementsAre(Pair("3900m-cpu-15Gi", ElementsAre("c")),
                                    Pair("3900m-cpu-15Gi/4-nvidia-l4", ElementsAre("a", "b"))));
}

// By the label alone, a node whose GPUs are still to come may be of either group.
TEST_F(DerivedGroupsTest, ANodeWithoutATypeIsToldByTheNumberOfItsGpus) {
  for (const auto& [name, gpus] :
       {std::pair("a", 1), std::pair("b", 8), std::pair("c", 8), std::pair("d", 0)}) {
    FitNode node = Node(name, {{"cloud.google.com/gke-accelerator", "nvidia-l4"}});
    if (gpus > 0) node.allocatable.emplace_back("nvidia.com/gpu", gpus);
    cluster_.Add(node);
  }
  EXPECT_THAT(Groups(), ElementsAre(Pair("3900m-cpu-15Gi/1-nvidia-l4", ElementsAre("a")),
                                    Pair("3900m-cpu-15Gi/8-nvidia-l4", ElementsAre("b", "c")),
                                    Pair("3900m-cpu-15Gi/nvidia-l4", ElementsAre("d"))));
}

// Whichever of three nodes it is that somebody has labelled.
TEST_F(DerivedGroupsTest, MostNodesSayWhatIsPaidForThem) {
  for (const size_t odd : std::vector<size_t>{0, 1, 2}) {
    for (const std::string mostly : {"", "Ec2Spot"}) {
      FitCluster cluster;
      for (size_t i = 0; i < 3; ++i) {
        const std::string lifecycle = (i == odd) == mostly.empty() ? "Ec2Spot" : "";
        FitNode node = Node("n" + std::to_string(i), {{kType, "m"}});
        if (!lifecycle.empty()) node.labels.push_back({"lifecycle", lifecycle});
        cluster.Add(node);
      }
      const NodeToCome made = NewNode(cluster, {Slot{0}, Slot{1}, Slot{2}});
      EXPECT_EQ(made.capacity_type == CapacityType::kSpot, !mostly.empty()) << odd << mostly;
    }
  }
}

TEST_F(DerivedGroupsTest, TheControlPlaneAndVirtualNodesAreInNone) {
  FitNode node = Node("cp", {{kType, "m"}});
  node.traits.kind = NodeKind::kControlPlane;
  cluster_.Add(node);
  node.name = "vk";
  node.traits.kind = NodeKind::kVirtual;
  cluster_.Add(node);
  Add("w", {{kType, "m"}});
  EXPECT_THAT(Groups(), ElementsAre(Pair("m", ElementsAre("w"))));
  EXPECT_THAT(DeriveGroups(cluster_.state(), startup_taints_, kNowS).group_of,
              GroupsBySlot({std::nullopt, std::nullopt, GroupIndex{0}}));
}

TEST_F(DerivedGroupsTest, LabelsThatPodsSelectByDivide) {
  Add("a", {{kType, "m"}, {"disk", "hdd"}});
  Add("b", {{kType, "m"}, {"disk", "ssd"}});
  Add("c", {{kType, "m"}});
  EXPECT_THAT(Names(), ElementsAre("m"));
  AddWithSelector("d", {{kType, "m"}, {"disk", "ssd"}}, "disk", "ssd");
  EXPECT_THAT(Groups(), ElementsAre(Pair("m", ElementsAre("c")), Pair("m/disk=hdd", ElementsAre("a")),
                                    Pair("m/disk=ssd", ElementsAre("b", "d"))));
}

TEST_F(DerivedGroupsTest, ANewPodKeepsTheNames) {
  Add("a", {{kType, "m"}, {"disk", "ssd"}, {"tier", "1"}});
  Add("b", {{kType, "m"}, {"disk", "ssd"}, {"tier", "2"}});
  Add("n", {{kType, "n"}, {"disk", "ssd"}, {"tier", "1"}});
  const std::set<std::string> before = Names();
  EXPECT_THAT(before, ElementsAre("m", "n"));
  // All have the label: it divides nothing.
  AddWithSelector("x", {{kType, "n"}, {"disk", "ssd"}, {"tier", "1"}}, "disk", "ssd");
  EXPECT_EQ(Names(), before);
  // It divides one group: what was there keeps its name, and a part of it gets one of its own.
  AddWithSelector("y", {{kType, "n"}, {"disk", "ssd"}, {"tier", "1"}}, "tier", "1");
  EXPECT_THAT(Groups(), ElementsAre(Pair("m", ElementsAre("a")), Pair("m/tier=2", ElementsAre("b")),
                                    Pair("n", ElementsAre("n", "x", "y"))));
}

// A pod that selects by a label behind those that divide already adds names and takes none away.
TEST_F(DerivedGroupsTest, ALabelBehindOthersKeepsTheNamesOfParts) {
  AddWithSelector("a", {{kType, "m"}, {"disk", "hdd"}, {"tier", "2"}}, "disk", "hdd");
  Add("b", {{kType, "m"}, {"disk", "hdd"}, {"tier", "3"}});
  Add("c", {{kType, "m"}, {"disk", "ssd"}, {"tier", "1"}});
  Add("d", {{kType, "m"}, {"disk", "ssd"}, {"tier", "4"}});
  EXPECT_THAT(Groups(),
              ElementsAre(Pair("m", ElementsAre("a", "b")), Pair("m/disk=ssd", ElementsAre("c", "d"))));
  AddWithSelector("e", {{kType, "m"}, {"disk", "ssd"}, {"tier", "1"}}, "tier", "1");
  EXPECT_THAT(Groups(),
              ElementsAre(Pair("m", ElementsAre("a")), Pair("m/disk=ssd", ElementsAre("c", "e")),
                          Pair("m/disk=ssd/tier=4", ElementsAre("d")), Pair("m/tier=3", ElementsAre("b"))));
}

TEST_F(DerivedGroupsTest, ALabelThatNamesMachinesDividesNothing) {
  struct Case {
    int nodes;
    int values;
    size_t groups;
  };
  for (const Case& c : {Case{16, 16, 16}, Case{17, 17, 1}, Case{33, 17, 1}, Case{34, 17, 17}}) {
    cluster_ = FitCluster();
    for (int i = 0; i < c.nodes; ++i) {
      AddWithSelector("n" + std::to_string(i), {{kType, "m"}, {"serial", std::to_string(i % c.values)}},
                      "serial", "0");
    }
    EXPECT_EQ(Names().size(), c.groups) << c.nodes << " nodes, " << c.values << " values";
  }
}

TEST_F(DerivedGroupsTest, ALongNameEndsInItsFingerprint) {
  const std::string label(300, 'k');
  Add("a", {{kType, "m"}}, {{label, "", "NoSchedule"}, {label + "2", "", "NoSchedule"}});
  Add("b", {{kType, "m"}}, {{label, "", "NoSchedule"}, {label + "3", "", "NoSchedule"}});
  EXPECT_EQ(Names().size(), 2u);
  for (const std::string& name : Names()) EXPECT_EQ(name.size(), 532u);
}

TEST_F(DerivedGroupsTest, StartupTaintsOfTheClusterTellNoNodesApart) {
  Add("a", {{kType, "m"}}, {{"example.com/starting", "", "NoSchedule"}});
  Add("b", {{kType, "m"}, {"image", "2"}});
  EXPECT_THAT(Names(), ElementsAre("m", "m/example.com/starting=:NoSchedule"));
  startup_taints_.startup = {"example.com/starting"};
  EXPECT_THAT(Groups(), ElementsAre(Pair("m", ElementsAre("a", "b"))));
  const NodeToCome made = NewNode(cluster_, {Slot{0}, Slot{1}});
  EXPECT_TRUE(made.model.shape.taints.empty());
  EXPECT_EQ(made.model.shape.labels, Labels(std::vector<Label>{{"image", "2"}, {kType, "m"}}))
      << "the node that starts is no example";
}

TEST_F(DerivedGroupsTest, LabelsThatDivideAlikeAreNamedOnce) {
  AddWithSelector("a", {{kType, "m"}, {"disk", "ssd"}, {"tier", "1"}}, "disk", "ssd");
  AddWithSelector("b", {{kType, "m"}, {"disk", "hdd"}, {"tier", "2"}}, "tier", "2");
  EXPECT_THAT(Names(), ElementsAre("m", "m/disk=ssd"));
}

TEST_F(DerivedGroupsTest, NamesOfNodesDecideNothing) {
  const std::vector<std::vector<Label>> nodes = {{{kType, "m"}, {"disk", "ssd"}},
                                                 {{kType, "m"}, {"disk", "hdd"}},
                                                 {{kType, "m"}},
                                                 {{kType, "m"}, {"kubernetes.io/os", "windows"}},
                                                 {{"pool", "m"}},
                                                 {{kType, "m"}, {"disk", "ssd"}}};
  std::set<std::string> names;
  for (const bool reversed : {false, true}) {
    cluster_ = FitCluster();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string name = "n" + std::to_string(reversed ? nodes.size() - i : i);
      AddWithSelector(name, nodes[i], "disk", "ssd");
    }
    if (!reversed) names = Names();
  }
  EXPECT_EQ(Names(), names);
  EXPECT_THAT(names, UnorderedElementsAre("m", "m/disk=hdd", "m/disk=ssd", "m/windows", "m/3900m-cpu-15Gi"));
}

// k3s and RKE2 name themselves where others name a type, and GCE attaches GPUs to machines of one type.
TEST_F(DerivedGroupsTest, ATypeThatDoesNotSayTheMachineIsNoType) {
  const auto add = [&](const std::string& name, const std::string& type, int64_t milli_cpu, int64_t gpus) {
    FitNode node = Node(name, {{kType, type}});
    node.allocatable = {{"cpu", milli_cpu}, {"memory", 16 * kGiB}, {"pods", 58}};
    if (gpus > 0) node.allocatable.push_back({"nvidia.com/gpu", gpus});
    cluster_.Add(node);
  };
  add("a", "k3s", 4000, 0);
  add("b", "k3s", 32000, 0);
  add("c", "rke2", 4000, 1);
  add("d", "n1-standard-8", 8000, 0);
  add("e", "n1-standard-8", 8000, 4);
  add("f", "p3.2xlarge", 8000, 1);
  EXPECT_THAT(Names(), UnorderedElementsAre("4-cpu-16Gi", "32-cpu-16Gi", "4-cpu-16Gi/1-nvidia.com/gpu",
                                            "n1-standard-8", "n1-standard-8/4-nvidia.com/gpu", "p3.2xlarge"));
}

// One GPU in seven slices: a device plugin offers no whole one.
TEST_F(DerivedGroupsTest, SlicesOfGpusTellMachinesApart) {
  for (const int64_t slices : {0, 7}) {
    FitNode node = Node(slices > 0 ? "a" : "b", {});
    node.allocatable = {{"cpu", 4000}, {"memory", 16 * kGiB}, {"pods", 58}};
    if (slices > 0) node.allocatable.push_back({"nvidia.com/mig-1g.5gb", slices});
    cluster_.Add(node);
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("4-cpu-16Gi", "4-cpu-16Gi/7-nvidia.com/mig-1g.5gb"));
}

TEST_F(DerivedGroupsTest, GroupsOfTheSameNameAreNumbered) {
  Add("a", {{"pool", "m"}, {kType, "n"}});
  Add("b", {{kType, "m"}, {kZone, "n"}});
  EXPECT_THAT(Names(), ElementsAre("m/n", "m/n/2"));
}

// A young node may have yet to get its devices. A node that is older has none, and a group of its own.
TEST_F(DerivedGroupsTest, AYoungNodeIsOfTheGroupWhoseGpusItMayGet) {
  for (const char* const device : {"amd.com/gpu", "nvidia.com/mig-1g.5gb"}) {
    cluster_ = FitCluster();
    const auto add = [&](const std::string& name, int64_t age_s, bool gpus) {
      FitNode node = Node(name, {{"karpenter.sh/nodepool", "p"}});
      node.traits.created_s = kNowS - age_s;
      if (gpus) node.allocatable.push_back({device, 1});
      cluster_.Add(node);
    };
    add("a", 9'000, /*gpus=*/true);
    add("b", 899, /*gpus=*/false);
    EXPECT_THAT(Names(), SizeIs(1)) << device;
    add("c", 900, /*gpus=*/false);
    EXPECT_THAT(Names(), SizeIs(2)) << "the young one may be of either, and is where it is like";
  }
}

// A cloud labels its nodes when it takes this taint off. Which of them is first by name decides nothing.
TEST_F(DerivedGroupsTest, AYoungNodeWithoutLabelsIsOfTheOnlyGroupOfItsPool) {
  constexpr char kPool[] = "eks.amazonaws.com/nodegroup";
  const auto add_young = [&](const std::string& name, const std::string& pool, int64_t milli_cpu) {
    FitNode node = Node(name, {{kPool, pool}});
    node.allocatable = {{"cpu", milli_cpu}, {"memory", 15 * kGiB}, {"pods", 58}};
    node.taints = {{"node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"}};
    node.traits.created_s = kNowS - 60;
    cluster_.Add(node);
  };
  Add("b", {{kPool, "one"}, {kType, "m5.xlarge"}});
  add_young("a", "one", 7'900);
  add_young("c", "two", 3'900);
  add_young("d", "two", 7'900);
  const auto groups = Groups();
  EXPECT_THAT(groups, SizeIs(3)) << "nobody knows the group of those of pool two";
  EXPECT_THAT(groups.at("one/m5.xlarge"), ElementsAre("a", "b"));
}

TEST_F(DerivedGroupsTest, ANewNodeHasWhatMostShare) {
  Add("a", {{kType, "m"}, {"team", "x"}, {"image", "1"}}, {{"odd", "", "NoSchedule"}});
  Add("b", {{kType, "m"}, {"image", "2"}});
  Add("c", {{kType, "m"}, {"image", "2"}});
  FitNode small = Node("d", {{kType, "m"}, {"image", "3"}});
  small.allocatable = {{"cpu", 3'800}, {"memory", 15 * kGiB}, {"pods", 58}, {"x.io/fpga", 1}};
  small.traits.stated_price = "0.5";
  cluster_.Add(small);
  const NodeToCome made = NewNode(cluster_, {Slot{0}, Slot{1}, Slot{2}, Slot{3}});
  EXPECT_EQ(made.model.shape.labels, Labels(std::vector<Label>{{"image", kOneOfSeveral}, {kType, "m"}}))
      << "half of them are of image 2; one of four has a team";
  EXPECT_TRUE(made.model.shape.taints.empty());
  EXPECT_EQ(made.model.shape.allocatable.Get(kCpu), 3'800) << "the least";
  EXPECT_EQ(made.model.shape.allocatable.size(), 3u) << "one of four has an FPGA";
  EXPECT_EQ(made.capacity, made.model.shape.allocatable);
  EXPECT_EQ(made.stated_price, "");
}

TEST_F(DerivedGroupsTest, NodesThatTakePodsShowWhatANewOneIs) {
  FitNode broken = Node("a", {{kType, "m"}, {"broken", "yes"}});
  broken.traits.ready = false;
  cluster_.Add(broken);
  FitNode cordoned = Node("b", {{kType, "m"}, {"broken", "yes"}});
  cordoned.unschedulable = true;
  cluster_.Add(cordoned);
  EXPECT_EQ(NewNode(cluster_, {Slot{0}, Slot{1}}).model.shape.labels,
            Labels(std::vector<Label>{{"broken", "yes"}, {kType, "m"}}));
  Add("c", {{kType, "m"}});
  EXPECT_EQ(NewNode(cluster_, {Slot{0}, Slot{1}, Slot{2}}).model.shape.labels,
            Labels(std::vector<Label>{{kType, "m"}}));
}

}  // namespace
}  // namespace loadline
