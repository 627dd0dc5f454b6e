// Growth of one group over the zones a, b and c, from bytes to bytes. Each node takes 2 cores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/v1/loop.pb.h"
#include "test/plugin/new_nodes_fixture.h"

namespace loadline {
namespace new_nodes {
namespace {

constexpr char kZoneKey[] = "topology.kubernetes.io/zone";

k8s::v1::Node InZone(k8s::v1::Node node, const std::string& zone) {
  AddLabel(kZoneKey, zone, &node);
  return node;
}

// How new nodes are known: by nodes alone, or by the template of a cloud that names zone a.
class GroupZonesTest : public NewNodesTest, public ::testing::WithParamInterface<bool> {
 protected:
  // Full nodes, one for each letter.
  void AddNodesIn(const std::string& zones) {
    for (const char zone : zones) Come(std::string(1, zone), /*seconds=*/-kHour, /*empty=*/false);
    SetTemplate(InZone(NodeOf("template"), "a"), /*by_cloud=*/GetParam());
  }
  // A node that has come so many seconds after the first loop.
  void Come(const std::string& zone, int64_t seconds, bool empty = true) {
    AddNode(InZone(NodeOf(absl::StrCat("node-", 10 + nodes_.size()), -seconds), zone), empty);
  }
  void Order(int nodes) {
    v1::CloudGroup* const cloud = request_.mutable_groups(0)->mutable_cloud();
    cloud->set_target(cloud->machines_size() + nodes);
  }
  void WaitIn(const std::string& zone, const std::string& cpu = "1", int count = 1) {
    k8s::v1::Pod pod = PodOf(cpu);
    Select(kZoneKey, zone, &pod);
    Wait(pod, count);
  }
  static k8s::v1::Pod Labelled() {
    k8s::v1::Pod pod = PodOf("1500m");
    k8s::v1::StringEntry* const label = pod.mutable_metadata()->add_labels();
    label->set_key("app");
    label->set_value("web");
    return pod;
  }
  static void SelectLabelled(k8s::v1::LabelSelector* selector) {
    k8s::v1::StringEntry* const label = selector->add_match_labels();
    label->set_key("app");
    label->set_value("web");
  }
};

INSTANTIATE_TEST_SUITE_P(Models, GroupZonesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "OfTheCloud" : "OfNodes"; });

TEST_P(GroupZonesTest, PodsOfTwoZonesGetANodeEach) {
  AddNodesIn("abc");
  WaitIn("b");
  WaitIn("c");
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 2);
  ASSERT_EQ(answer.scale_up().groups_size(), 1);
  EXPECT_EQ(answer.scale_up().groups(0).node_count(), 2);
  Order(2);
  EXPECT_EQ(Bought(Loop(10)), 0) << "both are on their way";
  Come("c", 60);
  Order(1);
  EXPECT_EQ(Bought(Loop(70)), 0);
}

TEST_P(GroupZonesTest, ASpreadGrowsByANodeInEachZone) {
  AddNodesIn("abc");
  k8s::v1::Pod pod = Labelled();
  k8s::v1::TopologySpreadConstraint* const spread = pod.mutable_spec()->add_topology_spread_constraints();
  spread->set_max_skew(1);
  spread->set_topology_key(kZoneKey);
  spread->set_when_unsatisfiable("DoNotSchedule");
  SelectLabelled(spread->mutable_label_selector());
  Wait(pod, 5);
  EXPECT_EQ(Bought(Loop()), 5);
  Order(5);
  EXPECT_EQ(Bought(Loop(10)), 0);
}

TEST_P(GroupZonesTest, AntiAffinityGrowsByANodeInEachZone) {
  AddNodesIn("abc");
  k8s::v1::Pod pod = Labelled();
  k8s::v1::PodAffinityTerm* const term =
      pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required();
  term->set_topology_key(kZoneKey);
  SelectLabelled(term->mutable_label_selector());
  Wait(pod, 4);
  EXPECT_EQ(Bought(Loop()), 3) << "there is no fourth zone";
}

TEST_P(GroupZonesTest, APodGetsANodeInTheZoneOfItsVolume) {
  AddNodesIn("abc");
  k8s::v1::PersistentVolume pv;
  pv.mutable_metadata()->set_name("pv");
  auto* const csi = pv.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
  csi->set_driver("ebs");
  csi->set_volume_handle("vol");
  auto* const in = pv.mutable_spec()->mutable_node_affinity()->mutable_required()->add_node_selector_terms();
  k8s::v1::NodeSelectorRequirement* const zone = in->add_match_expressions();
  zone->set_key(kZoneKey);
  zone->set_operator_("In");
  zone->add_values("c");
  pv.mutable_spec()->mutable_claim_ref()->set_namespace_("default");
  pv.mutable_spec()->mutable_claim_ref()->set_name("data");
  pv.mutable_status()->set_phase("Bound");
  AddObject(v1::PERSISTENT_VOLUME, pv);
  k8s::v1::PersistentVolumeClaim pvc;
  pvc.mutable_metadata()->set_name("data");
  pvc.mutable_metadata()->set_namespace_("default");
  Annotate("pv.kubernetes.io/bind-completed", "yes", pvc.mutable_metadata());
  pvc.mutable_spec()->set_volume_name("pv");
  pvc.mutable_status()->set_phase("Bound");
  AddObject(v1::PERSISTENT_VOLUME_CLAIM, pvc);
  for (const v1::ObjectKind kind : {v1::PERSISTENT_VOLUME, v1::PERSISTENT_VOLUME_CLAIM, v1::STORAGE_CLASS,
                                    v1::CSI_NODE, v1::CSI_DRIVER, v1::NAMESPACE}) {
    objects_.add_complete_kinds(kind);
  }
  k8s::v1::Pod pod = PodOf("1");
  k8s::v1::Volume* const of = pod.mutable_spec()->add_volumes();
  of->set_name("data");
  of->mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name("data");
  Wait(pod);
  EXPECT_EQ(Bought(Loop()), 1);
}

// The cloud adds the first node in b, and further ones elsewhere before the next one there.
TEST_P(GroupZonesTest, AZoneGetsNoMoreThanItsTurn) {
  AddNodesIn("abc");
  WaitIn("b", "2", 3);
  EXPECT_EQ(Bought(Loop()), 1);
}

// Nodes that any zone suits are added in the others, so that it is the turn of b more often.
TEST_P(GroupZonesTest, NodesForOtherPodsBringItsTurn) {
  AddNodesIn("aabcc");
  WaitIn("b", "2", 2);
  EXPECT_EQ(Bought(Loop()), 2) << "1, 2 and 3 nodes in b";
  Wait(PodOf("2"), 4);
  EXPECT_EQ(Bought(Loop()), 6) << "four pods that any zone suits";
  WaitIn("b", "1500m", 2);
  EXPECT_EQ(Bought(Loop()), 8) << "13 nodes: 4, 5 and 4";
}

// Beside the fewest, only the zone of the template may be the next one.
TEST_P(GroupZonesTest, AZoneThatIsNotTheNextOneGetsNone) {
  AddNodesIn("aabbc");
  WaitIn("b");
  EXPECT_EQ(Bought(Loop()), 0);
  request_.clear_pods();
  WaitIn("a");
  EXPECT_EQ(Bought(Loop(1)), GetParam() ? 1 : 0);
}

TEST_P(GroupZonesTest, ZonesTogetherKeepTheMaximum) {
  AddNodesIn("abc");
  request_.mutable_groups(0)->mutable_growth()->set_max_nodes(5);
  for (const char* const zone : {"a", "b", "c"}) WaitIn(zone);
  EXPECT_EQ(Bought(Loop()), 2);
}

TEST_P(GroupZonesTest, ARankingChoosesTheZoneOfThePods) {
  AddNodesIn("abc");
  request_.mutable_ranking()->set_preset(v1::RankPolicy::CLUSTER_AUTOSCALER);
  request_.mutable_ranking()->add_strategies(v1::RankPolicy::LEAST_WASTE);
  WaitIn("c");
  const v1::PlanLoopResponse answer = Loop();
  EXPECT_EQ(Bought(answer), 1);
  EXPECT_EQ(answer.ranking().options_size(), 1);
}

// A cloud that only adds nodes in another zone is asked again ever more rarely, though the nodes leave again.
TEST_P(GroupZonesTest, ANodeInAnotherZoneIsNotBoughtForEver) {
  AddNodesIn("abc");
  WaitIn("b");
  EXPECT_EQ(Bought(Loop(0)), 1);
  Come("c", 60);
  EXPECT_EQ(Bought(Loop(70)), 0);
  Come("a", 80, /*empty=*/false);
  EXPECT_EQ(Bought(Loop(90)), 0) << "only the zone of the next node has changed";
  EXPECT_EQ(Bought(Loop(369)), 0);
  EXPECT_EQ(Bought(Loop(370)), 1) << "the first period is over";
  Come("c", 430);
  EXPECT_EQ(Bought(Loop(440)), 0);
  nodes_.resize(3);
  full_.resize(3);
  request_.mutable_groups(0)->mutable_cloud()->mutable_machines()->DeleteSubrange(3, 3);
  Order(0);
  EXPECT_EQ(Bought(Loop(1039)), 0);
  EXPECT_EQ(Bought(Loop(1040)), 1) << "twice as long";
}

// The first of two nodes is in the zone that the other pod wants: the second one is still to come.
TEST_P(GroupZonesTest, APurchaseIsJudgedWhenAllHaveCome) {
  AddNodesIn("abc");
  WaitIn("b", "2");
  WaitIn("c", "2");
  EXPECT_EQ(Bought(Loop(0)), 2);
  Come("c", 60, /*empty=*/false);
  Order(1);
  request_.mutable_pods()->RemoveLast();  // it has its node
  const v1::PlanLoopResponse answer = Loop(70);
  EXPECT_EQ(Bought(answer), 0);
  EXPECT_THAT(answer.fleet().warnings(), ::testing::IsEmpty());
  Come("a", 80);
  EXPECT_THAT(Loop(90).fleet().warnings(), ::testing::SizeIs(1));
}

}  // namespace
}  // namespace new_nodes
}  // namespace loadline
