// The shape of a new node of a group, from bytes to bytes: the labels of one node of many say nothing about
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/new_nodes_fixture.h"

namespace loadline {
namespace new_nodes {
namespace {

// --- taints that come and go

class PassingTaintTest : public NewNodesTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(PassingTaintTest, DoesNotKeepAGroupFromGrowingFromZero) {
  k8s::v1::Node node = NodeOf("template");
  AddTaint(GetParam(), &node);
  SetTemplate(node);
  Wait(PodOf("1"));
  EXPECT_EQ(Bought(Loop()), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, PassingTaintTest,
    ::testing::Values("startup-taint.cluster-autoscaler.kubernetes.io/x", "node.cilium.io/agent-not-ready",
                      "readiness.k8s.io/cni", "ebs.csi.aws.com/agent-not-ready",
                      "status-taint.cluster-autoscaler.kubernetes.io/x", "node.kubernetes.io/not-ready",
                      "ignore-taint.cluster-autoscaler.kubernetes.io/x", "karpenter.sh/unregistered",
                      "node.cloudprovider.kubernetes.io/uninitialized",
                      "cloud.google.com/impending-node-termination"));

TEST_F(NewNodesTest, ATaintThatLastsKeepsPodsAway) {
  k8s::v1::Node node = NodeOf("template");
  AddTaint("dedicated", &node);
  SetTemplate(node);
  Wait(PodOf("1"));
  EXPECT_EQ(Bought(Loop()), 0);
  request_.mutable_startup_taints()->add_startup("dedicated");
  EXPECT_EQ(Bought(Loop(1)), 1);
}

TEST_F(NewNodesTest, NamesOfStartupTaintsAreChecked) {
  request_.mutable_startup_taints()->add_startup_prefixes("");
  ASSERT_TRUE(engine_.Sync(ChangesBuilder::FullList(1, 1)).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  const absl::StatusOr<v1::PlanLoopResponse> answer = engine_.PlanLoop(request_);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.status().message()),
              ::testing::HasSubstr("startup_taints.startup_prefixes[0]"));
}

class StartupTaintTest : public NewNodesTest, public ::testing::WithParamInterface<std::string> {};

// Pods wait for a node that is ready and still has its startup taint; nothing is bought twice for them.
TEST_P(StartupTaintTest, ANodeThatHasItIsOnItsWay) {
  request_.mutable_startup_taints()->add_startup("boot");
  SetTemplate(NodeOf("template"));
  k8s::v1::Node node = NodeOf("young", /*age_s=*/60);
  AddTaint(GetParam(), &node);
  AddNode(node, /*empty=*/true);
  Wait(PodOf("1"));
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 0);
  ASSERT_EQ(answer.upcoming_size(), 1);
  EXPECT_EQ(answer.upcoming(0).node_group(), "g");
}

INSTANTIATE_TEST_SUITE_P(Keys, StartupTaintTest,
                         ::testing::Values("node.cilium.io/agent-not-ready", "readiness.k8s.io/cni",
                                           "ebs.csi.aws.com/agent-not-ready", "boot"));

// A status taint says how a node is: pods do not wait for it.
TEST_F(NewNodesTest, ANodeWithAStatusTaintIsNotOnItsWay) {
  request_.mutable_startup_taints()->add_status("flaky");
  SetTemplate(NodeOf("template"));
  k8s::v1::Node node = NodeOf("young", /*age_s=*/60);
  AddTaint("flaky", &node);
  AddNode(node, /*empty=*/true);
  Wait(PodOf("1"));
  EXPECT_EQ(Bought(Loop()), 1);
}

// A group whose new nodes do not carry all pods of DaemonSets grows all the same, unless that is not wanted.
TEST_F(NewNodesTest, AGroupTooSmallForDaemonsIsHeldOnDemand) {
  SetTemplate(NodeOf("template"));
  request_.add_daemon_pods(PodOf("1500m").SerializeAsString());
  request_.add_daemon_pods(PodOf("501m").SerializeAsString());
  Wait(PodOf("400m"));
  request_.set_hold_groups_too_small_for_daemons(true);
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 0);
  EXPECT_THAT(answer.fleet().groups(0).held(), ::testing::HasSubstr("no room for all pods of DaemonSets"));
  request_.set_hold_groups_too_small_for_daemons(false);
  EXPECT_EQ(Bought(Loop(1)), 1);
}

// A node of 2 cores takes a pod of 1 beside 1.5 cores of a DaemonSet whose pods give way.
TEST_F(NewNodesTest, ExpendableDaemonSetsTakeNoRoomOfNewNodes) {
  SetTemplate(NodeOf("template"));
  k8s::v1::Pod daemon = PodOf("1500m");
  daemon.mutable_spec()->set_priority(-10);
  request_.add_daemon_pods(daemon.SerializeAsString());
  Wait(PodOf("1"));
  EXPECT_EQ(Bought(Loop()), 0);
  daemon.mutable_spec()->set_priority(-11);
  request_.set_daemon_pods(0, daemon.SerializeAsString());
  EXPECT_EQ(Bought(Loop(1)), 1);
}

// --- what a node has beside amounts, labels and taints

class FeaturesTest : public NewNodesTest, public ::testing::WithParamInterface<int> {};

TEST_P(FeaturesTest, NewNodesDeclareWhatNodesOfTheGroupDo) {
  request_.mutable_fit()->set_kubernetes_minor(37);
  const ChangeNode declare = [](k8s::v1::Node* node) {
    node->mutable_status()->add_declared_features("UserNamespacesHostNetworkSupport");
  };
  k8s::v1::Node node = NodeOf("template");
  declare(&node);
  SetTemplate(node);
  for (int i = 0; i < GetParam(); ++i) AddNodes(1, declare);
  k8s::v1::Pod pod = PodOf("1");
  pod.mutable_spec()->set_host_network(true);
  pod.mutable_spec()->set_host_users(false);
  Wait(pod, 3);
  EXPECT_EQ(Bought(Loop()), 2);  // of 2 cores each
}

INSTANTIATE_TEST_SUITE_P(Nodes, FeaturesTest, ::testing::Values(0, 1, 3));

struct VolumeCase {
  std::string name;
  int nodes;
  bool prevents;
};

class VolumesTest : public NewNodesTest, public ::testing::WithParamInterface<VolumeCase> {
 protected:
  void AddVolume(int number) {
    const std::string volume = absl::StrCat("pv", number), claim = absl::StrCat("c", number);
    k8s::v1::PersistentVolume pv;
    pv.mutable_metadata()->set_name(volume);
    auto* const csi = pv.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
    csi->set_driver("ebs");
    csi->set_volume_handle(absl::StrCat("vol", number));
    pv.mutable_spec()->mutable_claim_ref()->set_namespace_("default");
    pv.mutable_spec()->mutable_claim_ref()->set_name(claim);
    pv.mutable_status()->set_phase("Bound");
    AddObject(v1::PERSISTENT_VOLUME, pv);
    k8s::v1::PersistentVolumeClaim pvc;
    pvc.mutable_metadata()->set_name(claim);
    pvc.mutable_metadata()->set_namespace_("default");
    Annotate("pv.kubernetes.io/bind-completed", "yes", pvc.mutable_metadata());
    pvc.mutable_spec()->set_volume_name(volume);
    pvc.mutable_status()->set_phase("Bound");
    AddObject(v1::PERSISTENT_VOLUME_CLAIM, pvc);
    k8s::v1::Pod pod = PodOf("100m");
    k8s::v1::Volume* const of = pod.mutable_spec()->add_volumes();
    of->set_name("data");
    of->mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(claim);
    Wait(pod);
  }
  void AddCsiNode(const std::string& node, int32_t volumes) {
    k8s::v1::CSINode csi;
    csi.mutable_metadata()->set_name(node);
    auto* const driver = csi.mutable_spec()->add_drivers();
    driver->set_name("ebs");
    driver->mutable_allocatable()->set_count(volumes);
    AddObject(v1::CSI_NODE, csi);
  }
};

// Three pods with a volume each, of which a node takes one.
TEST_P(VolumesTest, NewNodesTakeAsManyVolumesAsNodesOfTheGroup) {
  request_.mutable_fit()->set_kubernetes_minor(37);
  for (int i = 0; i < 3; ++i) AddVolume(i);
  k8s::v1::CSIDriver driver;
  driver.mutable_metadata()->set_name("ebs");
  if (GetParam().prevents) driver.mutable_spec()->set_prevent_pod_scheduling_if_missing(true);
  AddObject(v1::CSI_DRIVER, driver);
  SetTemplate(NodeOf("node-10"));
  AddNodes(GetParam().nodes);
  for (int i = 0; i < std::max(1, GetParam().nodes); ++i) AddCsiNode(absl::StrCat("node-", 10 + i), 1);
  for (const v1::ObjectKind kind : {v1::PERSISTENT_VOLUME, v1::PERSISTENT_VOLUME_CLAIM, v1::STORAGE_CLASS,
                                    v1::CSI_NODE, v1::CSI_DRIVER, v1::NAMESPACE}) {
    objects_.add_complete_kinds(kind);
  }
  EXPECT_EQ(Bought(Loop()), 3);
}

INSTANTIATE_TEST_SUITE_P(Groups, VolumesTest,
                         ::testing::ValuesIn(std::vector<VolumeCase>{{"Empty", 0, false},
                                                                     {"EmptyOfDriver", 0, true},
                                                                     {"OneNode", 1, false},
                                                                     {"OneNodeOfDriver", 1, true},
                                                                     {"ThreeNodes", 3, false},
                                                                     {"ThreeNodesOfDriver", 3, true}}),
                         [](const auto& info) { return info.param.name; });

// Limits of volumes that a template states hold from zero, and for drivers that no node of the group shows.
// They are no amount that a node must offer to be complete.
TEST_P(VolumesTest, NewNodesTakeAsManyVolumesAsTheTemplateStates) {
  for (int i = 0; i < 5; ++i) AddVolume(i);
  k8s::v1::Node node = NodeOf("template");
  AddEntries({{"attachable-volumes-csi-ebs", "2"}}, node.mutable_status()->mutable_allocatable());
  SetTemplate(node);
  AddNodes(GetParam().nodes);
  for (const v1::ObjectKind kind : {v1::PERSISTENT_VOLUME, v1::PERSISTENT_VOLUME_CLAIM, v1::STORAGE_CLASS,
                                    v1::CSI_NODE, v1::CSI_DRIVER}) {
    objects_.add_complete_kinds(kind);
  }
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 3);  // ceil(5 / 2)
  EXPECT_EQ(answer.upcoming_size(), 0);
}

// --- what one node of many has

// A node that an operator has labelled says nothing of the next one: no number of them makes the pod fit.
TEST_F(NewNodesTest, ALabelOfOneNodeBuysNone) {
  for (const bool by_cloud : {true, false}) {
    SetTemplate(NodeOf("template"), by_cloud);
    if (nodes_.empty()) AddNodes(3, [](k8s::v1::Node* node) { AddLabel("role", "special", node); });
    request_.clear_pods();
    k8s::v1::Pod pod = PodOf("1");
    Select("role", "special", &pod);
    Wait(pod);
    EXPECT_EQ(Bought(Loop()), 0) << by_cloud;
  }
}

// The taint of one node does not keep the group from growing, whichever node it is.
TEST_F(NewNodesTest, ATaintOfOneNodeKeepsNobodyAway) {
  for (const bool by_cloud : {true, false}) {
    SetTemplate(NodeOf("template"), by_cloud);
    if (nodes_.empty()) AddNodes(20, [](k8s::v1::Node* node) { AddTaint("maintenance", node); });
    request_.clear_pods();
    Wait(PodOf("1"), 6);
    EXPECT_EQ(Bought(Loop()), 3) << by_cloud;
  }
}

TEST_F(NewNodesTest, ALimitOfOneNodeHoldsForNoOther) {
  AddNodes(5, [](k8s::v1::Node* node) {
    node->mutable_status()->clear_allocatable();
    AddEntries({{"cpu", "1"}, {"memory", "2Gi"}, {"pods", "3"}},
               node->mutable_status()->mutable_allocatable());
  });
  SetTemplate(nodes_[1], /*by_cloud=*/false);
  Wait(PodOf("2"), 2);
  EXPECT_EQ(Bought(Loop()), 2);
}

TEST_F(NewNodesTest, AnAnnotationOfOneNodeChangesNothing) {
  AddNodes(5, [](k8s::v1::Node* node) {
    Annotate("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true", node->mutable_metadata());
  });
  SetTemplate(nodes_[0], /*by_cloud=*/false);
  Wait(PodOf("1"), 6);
  EXPECT_EQ(Bought(Loop()), 3);
}

// In three zones the next node is added to the one with the fewest: a pod for that one gets it, pods for
// others wait for their turn, and pods that take any zone of these get theirs.
TEST_F(NewNodesTest, AGroupOverThreeZones) {
  for (const char* const zone : {"a", "b", "c", "a", "b"}) {
    AddNodes(1, [&](k8s::v1::Node* node) { AddLabel("topology.kubernetes.io/zone", zone, node); });
  }
  SetTemplate(nodes_[0], /*by_cloud=*/false);
  for (const auto& [zone, bought] :
       std::vector<std::pair<std::string, int64_t>>{{"a", 0}, {"b", 0}, {"c", 1}}) {
    request_.clear_pods();
    k8s::v1::Pod pod = PodOf("1");
    Select("topology.kubernetes.io/zone", zone, &pod);
    Wait(pod);
    const v1::PlanLoopResponse answer = Loop();
    EXPECT_EQ(Bought(answer), bought) << zone;
    EXPECT_EQ(answer.fleet().groups(0).model_source(), "shared by most nodes");
    EXPECT_THAT(answer.fleet().groups(0).model_zones(), ::testing::ElementsAre("a", "b", "c"));
    EXPECT_EQ(answer.fleet().groups(0).model_nodes(), 5);
  }
}

// A quota that selects nodes of groups and not their templates has one warning, which names the first of
// them. Nodes of no group, groups whose templates it selects, and groups without a template need none.
TEST_F(NewNodesTest, AQuotaWarnsOfTemplatesThatLackItsLabels) {
  const ChangeNode label = [](k8s::v1::Node* node) { AddLabel("team", "a", node); };
  SetTemplate(NodeOf("template"));
  AddNodes(3, label);  // one of three
  const auto limit = [this](const std::string& team) {
    k8s::v1::LabelSelector selector;
    k8s::v1::StringEntry* const entry = selector.add_match_labels();
    entry->set_key("team");
    entry->set_value(team);
    v1::NodeMaximum* const most = request_.add_maxima();
    most->set_name("CapacityQuota/" + team);
    most->set_selector(selector.SerializeAsString());
    most->set_nodes(100);
  };
  limit("b");
  EXPECT_THAT(Loop().fleet().warnings(), ::testing::IsEmpty());
  limit("a");
  const std::string warning =
      "CapacityQuota/a selects 1 of 3 nodes of node group g, but not the template of new nodes: they count "
      "only while "
      "most nodes of the group are selected; add the labels to the template";
  EXPECT_THAT(Loop(1).fleet().warnings(), ::testing::ElementsAre(warning));
  v1::LoopGroup* const other = request_.add_groups();
  *other = request_.groups(0);
  other->mutable_growth()->set_node_group("h");
  for (v1::CloudMachine& machine : *other->mutable_cloud()->mutable_machines()) {
    const int32_t slot = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(NodeOf(absl::StrCat("h-", slot)));
    full_.push_back(true);
    label(&nodes_.back());
    machine.set_id(absl::StrCat("h", slot));
    machine.set_slot(slot);
  }
  EXPECT_THAT(Loop(2).fleet().warnings(), ::testing::ElementsAre(warning + "; likewise 1 other node group"));
  k8s::v1::Node stated = NodeOf("template");
  label(&stated);
  other->mutable_growth()->set_template_node(stated.SerializeAsString());
  EXPECT_THAT(Loop(3).fleet().warnings(), ::testing::ElementsAre(warning));
  SetTemplate(nodes_[1], /*by_cloud=*/false);
  EXPECT_THAT(Loop(4).fleet().warnings(), ::testing::IsEmpty());
}

// --- groups of which nobody states a template

class UnstatedTest : public NewNodesTest {
 protected:
  UnstatedTest() {
    request_.mutable_groups(0)->mutable_growth()->clear_node_usd_per_hour();
    request_.mutable_prices()->mutable_base_rates()->set_cpu_usd_per_hour(0.1);
    request_.mutable_prices()->mutable_base_rates()->set_memory_gib_usd_per_hour(0);
    Wait(PodOf("1"), 4);
  }
  static double Price(const v1::PlanLoopResponse& answer) {
    EXPECT_EQ(answer.growth_size(), 1);
    const v1::LoopGrowth growth = answer.growth_size() == 1 ? answer.growth(0) : v1::LoopGrowth();
    return growth.usd_per_hour() / static_cast<double>(std::max<int64_t>(1, growth.nodes_for_pods()));
  }
  static ChangeNode StatesPrice(const std::string& price) {
    return [price](k8s::v1::Node* node) {
      Annotate("loadline.dev/node-usd-per-hour", price, node->mutable_metadata());
    };
  }
};

TEST_F(UnstatedTest, GrowByWhatTheirNodesShareAndCost) {
  AddNodes(3, [](k8s::v1::Node* node) { AddTaint("dedicated", node); });
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 2);
  EXPECT_DOUBLE_EQ(Price(answer), 0.2);
  EXPECT_EQ(answer.fleet().groups(0).model_source(), "shared by most nodes");
}

TEST_F(UnstatedTest, TakeNoPartWithoutANode) { EXPECT_EQ(Bought(Loop()), 0); }

// A price that one kubelet writes on its node is not that of the next one, with or without a template.
TEST_F(UnstatedTest, CostWhatMostNodesState) {
  for (const bool by_cloud : {false, true}) {
    nodes_.clear();
    full_.clear();
    request_.mutable_groups(0)->mutable_cloud()->clear_machines();
    if (by_cloud) SetTemplate(NodeOf("template"));
    AddNodes(3, StatesPrice("0.0001"));
    EXPECT_DOUBLE_EQ(Price(Loop()), 0.2) << by_cloud;
    for (k8s::v1::Node& node : nodes_) {
      node.mutable_metadata()->clear_annotations();
      StatesPrice("0.7")(&node);
    }
    nodes_[0].mutable_metadata()->clear_annotations();
    EXPECT_DOUBLE_EQ(Price(Loop(1)), 0.7) << by_cloud;
  }
}

TEST_F(UnstatedTest, AGroupWhoseTemplateCannotBeReadStaysLeftOut) {
  AddNodes(3);
  request_.mutable_groups(0)->mutable_growth()->set_template_node("?");
  EXPECT_EQ(Bought(Loop()), 0);
}

// --- growth that did not help

// The cloud says that new nodes have a label, and none that is added has it.
class VainGrowthTest : public NewNodesTest {
 protected:
  VainGrowthTest() {
    k8s::v1::Node node = NodeOf("template");
    AddLabel("role", "special", &node);
    SetTemplate(node);
    Wait(Special());
  }
  static k8s::v1::Pod Special() {
    k8s::v1::Pod pod = PodOf("1");
    Select("role", "special", &pod);
    return pod;
  }
  // A node that has come so many seconds after the first loop.
  void Come(int64_t seconds, const ChangeNode& change = nullptr, bool full = false) {
    k8s::v1::Node node = NodeOf(absl::StrCat("node-", 10 + nodes_.size()), -seconds);
    if (change != nullptr) change(&node);
    AddNode(node, /*empty=*/!full);
  }
};

TEST_F(VainGrowthTest, IsNotRepeatedWithinABackOffThatDoubles) {
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(60);
  v1::PlanLoopResponse answer = Loop(70);
  EXPECT_EQ(Bought(answer), 0);
  EXPECT_TRUE(answer.fleet().timers_run());
  EXPECT_THAT(answer.fleet().warnings(),
              ::testing::ElementsAre(::testing::AllOf(
                  ::testing::HasSubstr(
                      "node group g: node node-10 came for pods of default/web and does not take them"),
                  ::testing::HasSubstr("node affinity"), ::testing::HasSubstr("for 5 min"))));
  EXPECT_EQ(Bought(Loop(369)), 0);
  EXPECT_EQ(Bought(Loop(370)), 1) << "the first period is over";
  Come(430);
  EXPECT_EQ(Bought(Loop(440)), 0);
  EXPECT_EQ(Bought(Loop(1039)), 0);
  EXPECT_EQ(Bought(Loop(1040)), 1) << "twice as long";
  Come(1100);
  EXPECT_EQ(Bought(Loop(1110)), 0);
  EXPECT_EQ(Bought(Loop(2309)), 0);
  EXPECT_EQ(Bought(Loop(2310)), 1);
}

TEST_F(VainGrowthTest, OtherPodsAreNotHeld) {
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(60, nullptr, /*full=*/true);
  EXPECT_EQ(Bought(Loop(70)), 0);
  Wait(PodOf("2"));
  EXPECT_EQ(Bought(Loop(80)), 1);
}

// A node that has the label and is full was no growth in vain: others took the room.
TEST_F(VainGrowthTest, RoomThatOtherPodsTookIsBoughtAgain) {
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(
      60, [](k8s::v1::Node* node) { AddLabel("role", "special", node); }, /*full=*/true);
  EXPECT_EQ(Bought(Loop(70)), 1);
}

TEST_F(VainGrowthTest, EndsWhenTheNodeOrTheModelChanges) {
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(60, nullptr, /*full=*/true);
  EXPECT_EQ(Bought(Loop(70)), 0);
  AddLabel("seen", "yes", &nodes_[0]);
  EXPECT_EQ(Bought(Loop(80)), 1) << "the node is another one";
  Come(100, nullptr, /*full=*/true);
  EXPECT_EQ(Bought(Loop(110)), 0);
  k8s::v1::Node node = NodeOf("template");
  AddLabel("role", "special", &node);
  AddLabel("more", "yes", &node);
  SetTemplate(node);
  EXPECT_EQ(Bought(Loop(120)), 1) << "new nodes will be others";
}

// A node that is deleted, since nothing runs there, changes nothing.
TEST_F(VainGrowthTest, OutlivesTheNode) {
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(60);
  EXPECT_EQ(Bought(Loop(70)), 0);
  nodes_.clear();
  full_.clear();
  request_.mutable_groups(0)->mutable_cloud()->clear_machines();
  request_.mutable_groups(0)->mutable_cloud()->set_target(0);
  EXPECT_EQ(Bought(Loop(80)), 0);
  EXPECT_EQ(Bought(Loop(369)), 0);
  EXPECT_EQ(Bought(Loop(370)), 1);
}

// The next process knows what one has learned; nothing is deferred where nobody acts.
TEST_F(VainGrowthTest, IsNotedWhereSomebodyActs) {
  request_.mutable_fleet()->set_acts(false);
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come(60);
  EXPECT_EQ(Bought(Loop(70)), 1);
}

}  // namespace
}  // namespace new_nodes
}  // namespace loadline
