// The answers of the filters about fields of 1.36 and 1.37, about fields that nobody knows, and with a
// configured scheduler.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/fit/pod_fit.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

constexpr char kGpu[] = "example.com/gpu";

class NewFieldsTest : public ::testing::Test {
 protected:
  // Judges a pod for the node of that index.
  Verdict Judge(const FitPod& pod, int32_t node = 0) {
    Snapshot snapshot(cluster_.state());
    PodFit fit(&snapshot, cluster_.Incoming(pod, "web-0", "uid-0"), &options_);
    Verdict verdict = fit.Judge(NodeIndex{node});
    EXPECT_EQ(fit.Fits(NodeIndex{node}), verdict.judgement == Judgement::kFits);
    return verdict;
  }

  void Set(ObjectKind kind, std::string name, decltype(ClusterObject::content) content) {
    cluster_.state().objects().Set({{kind, "", std::move(name)}, std::move(content)});
  }

  // Adds a node whose shape `change` has changed.
  template <typename Change>
  void AddNode(const std::string& name, Change change) {
    FitNode node;
    node.name = name;
    NodeShape shape = cluster_.Shape(node);
    change(&shape);
    cluster_.state().set_resource_names(cluster_.names());
    shape = CompleteNodeShape(std::move(shape), cluster_.names());
    cluster_.state().SetNode(Slot{slots_++}, name, std::move(shape), {}, name);
  }

  // A pod with a volume of its own on a driver: claim c, which waits for its first consumer.
  FitPod WithVolume() {
    FitPod pod;
    pod.rules.volumes = {{VolumeKind::kClaim, "c", "", {}, false}};
    PersistentVolumeClaim claim;
    claim.namespace_name = "default";
    claim.name = "c";
    claim.storage_class = "late";
    cluster_.state().objects().Set({{ObjectKind::kPersistentVolumeClaim, "default", "c"}, claim});
    Set(ObjectKind::kStorageClass, "late",
        StorageClass{"disk.example.com", StorageClass::Binding::kWaitForFirstConsumer, {}});
    for (const ObjectKind kind : {ObjectKind::kPersistentVolume, ObjectKind::kPersistentVolumeClaim,
                                  ObjectKind::kStorageClass, ObjectKind::kCsiNode}) {
      cluster_.state().objects().SetComplete(kind);
    }
    return pod;
  }

  FitCluster cluster_;
  FitOptions options_;
  int32_t slots_ = 0;
};

TEST_F(NewFieldsTest, ANodeHasToDeclareWhatAPodRequires) {
  AddNode("a-none", [](NodeShape*) {});
  AddNode("b-one", [](NodeShape* shape) { shape->declared_features = {"B", "C", "B"}; });
  AddNode("c-all", [](NodeShape* shape) { shape->declared_features = {"C", "A", "B"}; });
  FitPod pod;
  pod.rules.required_features = {"A", "B"};
  const Verdict no = Refusal(FilterName::kNodeDeclaredFeatures, StatusClass::kUnschedulableAndUnresolvable,
                             {"node(s) didn't match Pod's required features"});
  EXPECT_EQ(Judge(pod, 0), no);
  EXPECT_EQ(Judge(pod, 1), no);
  EXPECT_EQ(Judge(pod, 2), Verdict());
  EXPECT_EQ(Judge(FitPod(), 0), Verdict());
}

TEST_F(NewFieldsTest, WhatStatesAFieldThatNobodyKnowsIsNotJudged) {
  AddNode("a-plain", [](NodeShape*) {});
  AddNode("b-newer", [](NodeShape* shape) { shape->unknown_field = "spec.quota"; });
  EXPECT_EQ(Judge(FitPod(), 0), Verdict());
  EXPECT_EQ(
      Judge(FitPod(), 1),
      CannotJudge(FilterName::kNone, "the node states spec.quota, a field that the engine does not know"));
  FitPod newer;
  newer.rules.unknown_field = "spec.placement";
  EXPECT_EQ(
      Judge(newer, 0),
      CannotJudge(FilterName::kNone, "the pod states spec.placement, a field that the engine does not know"));
  newer.rules.node_selector = MakeLabels({{"disk", "ssd"}});  // a filter that refuses it anyway
  EXPECT_EQ(Judge(newer, 0).filter, FilterName::kNodeAffinity);
}

TEST_F(NewFieldsTest, DevicesThatAClassServesAreNeverInsufficient) {
  cluster_.Add({.name = "a-offers", .allocatable = {{"cpu", 1000}, {"pods", 9}, {kGpu, 2}}});
  cluster_.Add({.name = "b-none", .allocatable = {{"cpu", 1000}, {"pods", 9}}});
  const FitPod pod = {.requests = {{kGpu, 1}}};
  const FitPod more = {.requests = {{kGpu, 3}}};
  const Verdict insufficient =
      Refusal(FilterName::kNodeResourcesFit, StatusClass::kUnschedulableAndUnresolvable,
              {"Insufficient example.com/gpu"});
  // Not all classes are known: what some node offers, device plugins serve.
  EXPECT_EQ(Judge(pod, 0), Verdict());
  EXPECT_EQ(Judge(more, 0), insufficient);
  EXPECT_EQ(Judge(pod, 1), insufficient);
  const FitPod nic = {.requests = {{"example.com/nic", 1}}};
  EXPECT_EQ(Judge(nic, 1),
            CannotJudge(
                FilterName::kDynamicResources,
                "no node offers example.com/nic, and the view does not hold all device classes, of which one "
                "may"));
  // They are, and none serves it.
  Set(ObjectKind::kDeviceClass, "disk", DeviceClass{"example.com/disk"});
  cluster_.state().objects().SetComplete(ObjectKind::kDeviceClass);
  EXPECT_EQ(Judge(pod, 1), insufficient);
  EXPECT_EQ(Judge(nic, 1).judgement, Judgement::kDoesNotFit);
  // One does.
  Set(ObjectKind::kDeviceClass, "gpu", DeviceClass{kGpu});
  EXPECT_EQ(Judge(pod, 0), Verdict());
  EXPECT_EQ(Judge(more, 0), insufficient);  // the node offers its own
  const Verdict devices =
      CannotJudge(FilterName::kDynamicResources,
                  "example.com/gpu belongs to a device class whose devices the engine does not know");
  EXPECT_EQ(Judge(pod, 1), devices);
  EXPECT_EQ(Judge({.requests = {{kGpu, 1}, {"cpu", 2000}}}, 1).reasons,
            std::vector<std::string>{"Insufficient cpu"});
  EXPECT_EQ(Judge({.requests = {{"deviceclass.resource.kubernetes.io/gpu", 1}}}, 1).judgement,
            Judgement::kCannotJudge);
  EXPECT_EQ(Judge({.requests = {{"deviceclass.resource.kubernetes.io/fpga", 1}}}, 1).judgement,
            Judgement::kDoesNotFit);
}

TEST_F(NewFieldsTest, DriversMayAskForNodesThatHaveThem) {
  AddNode("has", [](NodeShape*) {});
  AddNode("lacks", [](NodeShape*) {});
  AddNode("planned", [](NodeShape* shape) { shape->csi_node = "template-node-for-g"; });
  const FitPod pod = WithVolume();
  Set(ObjectKind::kCsiNode, "has", CsiNode{{{"disk.example.com", std::nullopt}}, {}});
  Set(ObjectKind::kCsiNode, "lacks", CsiNode{{{"other.example.com", 1}}, {}});
  EXPECT_EQ(Judge(pod, 1), Verdict());
  options_.minor = 37;  // which has the wish
  EXPECT_EQ(Judge(pod, 0), Verdict());
  EXPECT_EQ(Judge(pod, 1).judgement, Judgement::kCannotJudge);
  Set(ObjectKind::kCsiDriver, "disk.example.com", CsiDriver{true});
  const Verdict no = Refusal(FilterName::kNodeVolumeLimits, StatusClass::kUnschedulable,
                             {"disk.example.com CSI driver is not installed on the node"});
  EXPECT_EQ(Judge(pod, 1), no);
  EXPECT_EQ(Judge(pod, 2), Verdict());  // the driver is added with the node
  options_.minor = 36;                  // a stored wish means that the gate is on
  EXPECT_EQ(Judge(pod, 1), no);
  Set(ObjectKind::kCsiDriver, "disk.example.com", CsiDriver{false});
  EXPECT_EQ(Judge(pod, 1), Verdict());
}

TEST_F(NewFieldsTest, APlannedNodeAttachesWhatItsModelDoes) {
  AddNode("a-model", [](NodeShape*) {});
  AddNode("b/new-1", [](NodeShape* shape) { shape->csi_node = "a-model"; });
  AddNode("c-other", [](NodeShape*) {});
  const FitPod pod = WithVolume();
  Set(ObjectKind::kCsiNode, "a-model", CsiNode{{{"disk.example.com", 0}}, {}});
  const Verdict full = Refusal(FilterName::kNodeVolumeLimits, StatusClass::kUnschedulable,
                               {"node(s) exceed max volume count"});
  EXPECT_EQ(Judge(pod, 0), full);
  EXPECT_EQ(Judge(pod, 1), full);
  EXPECT_EQ(Judge(pod, 2), Verdict());
  Set(ObjectKind::kCsiNode, "a-model", CsiNode{{{"disk.example.com", 1}}, {}});
  EXPECT_EQ(Judge(pod, 1), Verdict());
}

// A planned node without a CSINode to go by takes what its template states; a CSINode precedes for its
// drivers.
TEST_F(NewFieldsTest, APlannedNodeAttachesWhatItsTemplateStates) {
  const auto plan = [this](const std::string& name, int64_t volumes) {
    AddNode(name, [=](NodeShape* shape) {
      shape->csi_node = "model";
      shape->volume_limits = {{"disk.example.com", volumes}};
    });
  };
  plan("a-none", 0);
  plan("b-one", 1);
  const FitPod pod = WithVolume();
  const Verdict full = Refusal(FilterName::kNodeVolumeLimits, StatusClass::kUnschedulable,
                               {"node(s) exceed max volume count"});
  EXPECT_EQ(Judge(pod, 0), full);
  EXPECT_EQ(Judge(pod, 1), Verdict());
  Set(ObjectKind::kCsiNode, "model", CsiNode{{{"other.example.com", 0}}, {}});
  EXPECT_EQ(Judge(pod, 0), full);
  EXPECT_EQ(Judge(pod, 1), Verdict());
  Set(ObjectKind::kCsiNode, "model", CsiNode{{{"disk.example.com", 1}}, {}});
  EXPECT_EQ(Judge(pod, 0), Verdict());
  Set(ObjectKind::kCsiNode, "model", CsiNode{{{"disk.example.com", std::nullopt}}, {}});
  EXPECT_EQ(Judge(pod, 0), Verdict());
  EXPECT_NE(cluster_.state().node_shape(Slot{0}).fingerprint,
            cluster_.state().node_shape(Slot{1}).fingerprint);
}

TEST_F(NewFieldsTest, ProfilesHoldForPodsThatNameThem) {
  cluster_.Add({.name = "tainted", .taints = {{"a", "", "NoSchedule"}}});
  FitOptions lenient;
  lenient.disabled = uint32_t{1} << static_cast<int>(FilterName::kTaintToleration);
  options_.profiles.push_back({"lenient", lenient});
  FitPod pod;
  EXPECT_EQ(Judge(pod).filter, FilterName::kTaintToleration);
  pod.rules.scheduler_name = "unknown";
  EXPECT_EQ(Judge(pod).filter, FilterName::kTaintToleration);
  pod.rules.scheduler_name = "lenient";
  EXPECT_EQ(Judge(pod), Verdict());
}

TEST_F(NewFieldsTest, From137OnTheNameOfANodeComesFirst) {
  cluster_.Add({.name = "closed", .unschedulable = true});
  FitPod pod;
  pod.rules.node_name = "other";
  EXPECT_EQ(Judge(pod).filter, FilterName::kNodeUnschedulable);
  options_.minor = 37;
  EXPECT_EQ(Judge(pod).filter, FilterName::kNodeName);
}

}  // namespace
}  // namespace loadline
