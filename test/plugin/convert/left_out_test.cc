// One object that cannot be read is left out alone, and reported by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/storage.pb.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/text.h"
#include "plugin/convert/traits.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

k8s::v1::Pod NamedPod(const std::string& name, const Quantities& requests) {
  k8s::v1::Pod pod = MakePod({}, requests);
  pod.mutable_metadata()->set_name(name);
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_name("web");
  owner->set_controller(true);
  return pod;
}

k8s::v1::Pod Innocent() { return NamedPod("innocent", {{"cpu", "1"}, {"memory", "1Gi"}}); }

// Each is what an API server takes, or what no message of it is.
struct HostilePod {
  std::string name;
  std::string bytes;
  std::string reason;  // its begin
};

std::vector<HostilePod> HostilePods() {
  Quantities many;
  for (int i = 0; i < 257; ++i) many.emplace_back(absl::StrCat("example.com/r", i), "1");
  k8s::v1::Pod containers = NamedPod("containers", {{"cpu", "1"}});
  while (containers.spec().containers_size() < 1025) containers.mutable_spec()->add_containers();
  k8s::v1::Pod tolerations = NamedPod("tolerations", {{"cpu", "1"}});
  while (tolerations.spec().tolerations_size() < 10'001) tolerations.mutable_spec()->add_tolerations();
  k8s::v1::Pod keys = NamedPod("keys", {{"cpu", "1"}});
  auto* const terms = keys.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity();
  for (const int first : {0, 200}) {  // of one namespace there is room for 256
    k8s::v1::LabelSelector* const selector = terms->add_required()->mutable_label_selector();
    for (int i = 0; i < 200; ++i) selector->add_match_labels()->set_key(absl::StrCat("key-", first + i));
  }
  k8s::v1::Pod large = NamedPod("large", {{"cpu", "1"}});
  Annotate("note", std::string(1536 * 1024, 'x'), large.mutable_metadata());
  return {
      {"amounts", NamedPod("amounts", many).SerializeAsString(),
       "(namespace \"default\"): spec.containers[0]"},
      {"containers", containers.SerializeAsString(),
       "(namespace \"default\"): spec.containers: has 1025 entries, at most 1024 are allowed"},
      {"tolerations", tolerations.SerializeAsString(),
       "(namespace \"default\"): spec.tolerations: has 10001 entries, at most 10000 are allowed"},
      {"keys", keys.SerializeAsString(), "its selectors refer to more label keys than there is room for"},
      {"large", large.SerializeAsString(), "has 15"},
      {"", "\xff", "is not a k8s.io.api.core.v1.Pod"},
  };
}

// Nodes a and b of two cores, in the group "workers" of at most four; one pod of one core on a.
class LeftOutTest : public ::testing::Test {
 protected:
  LeftOutTest() {
    request_.set_now_s(1'800'000'000);
    v1::LoopGroup* const group = request_.add_groups();
    group->mutable_growth()->set_node_group("workers");
    group->mutable_growth()->set_template_node(Node("template").SerializeAsString());
    group->mutable_growth()->set_current_nodes(2);
    group->mutable_growth()->set_max_nodes(4);
    group->mutable_growth()->set_node_usd_per_hour(0.5);
    for (const int32_t slot : {0, 1}) group->mutable_scale_down()->add_slots(slot);
    for (const v1::ObjectKind kind : {v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      request_.mutable_drain()->add_may_be_incomplete(kind);
    }
    request_.mutable_drain()->set_scale_down_unneeded_time_s(0);
    Sync(Innocent().SerializeAsString());
  }

  static k8s::v1::Node Node(const std::string& name) {
    return MakeNode(name, {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}});
  }

  // The cluster anew, with a pod of these bytes on b if there are any.
  v1::SyncResponse Sync(const std::string& on_a, const std::string& on_b = "") {
    ChangesBuilder builder = ChangesBuilder::FullList(++epoch_, 1);
    builder.Shape(0, k8s::v1::Pod()).Node(0, Node("a"), {{0, "web-0", "u0"}});
    builder.Node(1, Node("b"),
                 on_b.empty() ? std::vector<PodOnNode>() : std::vector<PodOnNode>{{1, "web-1", "u1"}});
    v1::SyncRequest request = builder.Sync();
    request.mutable_changes()->mutable_pod_shapes(0)->set_pod(on_a);
    if (!on_b.empty()) {
      v1::PodShape* const shape = request.mutable_changes()->add_pod_shapes();
      shape->set_id(1);
      shape->set_pod(on_b);
    }
    request.mutable_changes()->MergeFrom(objects_);
    request.mutable_changes()->add_complete_kinds(v1::POD_DISRUPTION_BUDGET);
    const absl::StatusOr<std::string> bytes = engine_.CallBytes(kSyncMethod, request.SerializeAsString());
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    v1::SyncResponse response;
    EXPECT_TRUE(bytes.ok() && response.ParseFromString(*bytes));
    *request_.mutable_changes() = ChangesBuilder::At(epoch_, 1).changes();
    return response;
  }

  void Pending(const std::string& bytes, int32_t count) {
    v1::PendingPods* const pods = request_.add_pods();
    pods->mutable_pod()->set_pod(bytes);
    pods->set_count(count);
  }

  v1::PlanLoopResponse Plan() {
    const absl::StatusOr<v1::PlanLoopResponse> response = engine_.PlanLoop(request_);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanLoopResponse();
  }

  TypedEngine engine_;
  v1::Changes objects_;
  v1::PlanLoopRequest request_;
  int64_t epoch_ = 0;
};

TEST_F(LeftOutTest, APendingPodIsLeftOutAlone) {
  for (const HostilePod& hostile : HostilePods()) {
    SCOPED_TRACE(hostile.name);
    request_.clear_pods();
    Pending(hostile.bytes, 3);
    Pending(Innocent().SerializeAsString(), 6);  // a takes one, b two, and three need two nodes
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_THAT(plan.growth(), SizeIs(1));
    EXPECT_EQ(plan.growth(0).nodes_for_pods(), 2);
    for (const v1::ExistingPlacement& place : plan.existing()) EXPECT_EQ(place.pods().pod(), 1);
    ASSERT_EQ(plan.left_out_size(), 1);
    EXPECT_EQ(plan.left_out_total(), 1);
    EXPECT_EQ(plan.left_out(0).kind(), "Pod");
    EXPECT_EQ(plan.left_out(0).name(), hostile.name.empty() ? "pods[0]" : hostile.name);
    EXPECT_THAT(plan.left_out(0).reason(), HasSubstr(hostile.reason));
  }
}

TEST_F(LeftOutTest, ADaemonPodIsLeftOutAlone) {
  for (const HostilePod& hostile : HostilePods()) {
    SCOPED_TRACE(hostile.name);
    request_.clear_daemon_pods();
    request_.add_daemon_pods(hostile.bytes);
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_EQ(plan.left_out_size(), 1);
    EXPECT_THAT(plan.left_out(0).reason(), HasSubstr(hostile.reason));
    ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
  }
}

// A tenant with a thousand of them takes no place from the one of another namespace.
TEST_F(LeftOutTest, OfTooManyDaemonPodsNamespacesTakeTurns) {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1m"}});
  for (int i = 0; i < 1000; ++i) {
    pod.mutable_metadata()->set_name(absl::StrCat("many-", i));
    request_.add_daemon_pods(pod.SerializeAsString());
  }
  pod.mutable_metadata()->set_namespace_("kube-system");
  pod.mutable_metadata()->set_name("network");
  request_.add_daemon_pods(pod.SerializeAsString());
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_EQ(plan.left_out_size(), 1);
  EXPECT_EQ(plan.left_out(0).name(), "many-999");
  EXPECT_EQ(plan.left_out(0).reason(), "is one of more than 1000 in one question");
}

// The node stays, and is removed as soon as the pod is a good one.
TEST_F(LeftOutTest, APodOnANodeKeepsItThere) {
  for (const HostilePod& hostile : HostilePods()) {
    SCOPED_TRACE(hostile.name);
    ASSERT_TRUE(engine_.Drop("test").ok());  // nothing has vanished since the last loop
    const v1::SyncResponse synced = Sync(Innocent().SerializeAsString(), hostile.bytes);
    ASSERT_EQ(synced.left_out_size(), 1);
    EXPECT_EQ(synced.left_out(0).name(), "web-1");
    const v1::PlanLoopResponse plan = Plan();
    ASSERT_EQ(plan.left_out_size(), 1);
    EXPECT_THAT(plan.left_out(0).reason(), HasSubstr(hostile.reason));
    ASSERT_GE(plan.scale_down().keep_size(), 1);
    const v1::NodeKeep& keep = *plan.scale_down().keep().rbegin();
    EXPECT_EQ(keep.node(), "b");
    EXPECT_EQ(keep.reason(), "BlockedByPod");
    EXPECT_EQ(keep.pod_name(), "web-1");
    EXPECT_EQ(keep.pod_reason(), "Unreadable");
  }
  EXPECT_EQ(Sync(Innocent().SerializeAsString()).left_out_total(), 0) << "another one is in its place";
  ASSERT_TRUE(engine_.Drop("test").ok());
  Sync(Innocent().SerializeAsString());
  const v1::PlanLoopResponse plan = Plan();
  EXPECT_EQ(plan.left_out_total(), 0);
  ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
  EXPECT_EQ(plan.scale_down().remove(0).node(), "b");
}

// An amount that says nothing is not read: neither node nor pod is left out.
TEST_F(LeftOutTest, AmountsOfZeroAreNoAmounts) {
  Quantities zeros = {{"cpu", "1"}};
  for (int i = 0; i < 255; ++i) zeros.emplace_back(absl::StrCat("example.com/r", i), "0");
  const v1::SyncResponse synced = Sync(NamedPod("zeros", zeros).SerializeAsString());
  EXPECT_EQ(synced.left_out_total(), 0);
  const v1::DescribeResponse described = engine_.DescribeAll();
  ASSERT_EQ(described.nodes_size(), 2);
  EXPECT_EQ(described.nodes(0).resources_size(), 3) << "cpu, memory and pods, which the node offers";
}

// Eight names of one namespace that no node offers have numbers of their own; a pod of another one has names
// of its own.
TEST_F(LeftOutTest, ANamespaceThatInventsResourcesLeavesRoomForOthers) {
  Quantities many = {{"cpu", "1"}};
  for (int i = 0; i < 100; ++i) many.emplace_back(absl::StrCat("example.com/r", i), "1");
  k8s::v1::Pod other = NamedPod("other", {{"cpu", "1"}, {"example.org/own", "1"}});
  other.mutable_metadata()->set_namespace_("other");
  const v1::SyncResponse synced = Sync(NamedPod("many", many).SerializeAsString(), other.SerializeAsString());
  ASSERT_EQ(synced.left_out_size(), 1);
  EXPECT_EQ(synced.left_out(0).name(), "web-0");
  EXPECT_THAT(synced.left_out(0).reason(), HasSubstr("is one resource name too many"));
  EXPECT_TRUE(synced.left_out(0).no_room_for_name());
  const v1::DescribeResponse described = engine_.DescribeAll();
  EXPECT_EQ(described.nodes(0).resources_size(), 3 + 8 + 1) << "the others count as one";
  EXPECT_EQ(described.nodes(1).resources_size(), 3 + 1);
}

// Room is what clients wait for: whoever names a resource like that has none to wait for.
TEST_F(LeftOutTest, AResourceMayHaveTheTextForNoRoomAsItsName) {
  const v1::SyncResponse synced =
      Sync(NamedPod("forged", {{"cpu", "1"}, {": is one resource name too many", "-1"}}).SerializeAsString());
  ASSERT_EQ(synced.left_out_size(), 1);
  EXPECT_THAT(synced.left_out(0).reason(), HasSubstr(": is one resource name too many"));
  EXPECT_FALSE(synced.left_out(0).no_room_for_name());
}

// Nobody knows what it protects: all pods of its namespace stay.
TEST_F(LeftOutTest, ABudgetThatCannotBeReadLetsNoPodOfItsNamespaceGo) {
  k8s::v1::PodDisruptionBudget budget;
  budget.mutable_metadata()->set_namespace_("default");
  budget.mutable_metadata()->set_name("huge");
  Annotate("note", std::string(1536 * 1024, 'x'), budget.mutable_metadata());
  v1::ClusterObject* const object = objects_.add_objects();
  object->set_kind(v1::POD_DISRUPTION_BUDGET);
  object->set_object(budget.SerializeAsString());
  Sync(Innocent().SerializeAsString(), Innocent().SerializeAsString());
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_EQ(plan.left_out_size(), 1);
  EXPECT_EQ(plan.left_out(0).kind(), "PodDisruptionBudget");
  EXPECT_EQ(plan.left_out(0).namespace_(), "default");
  EXPECT_EQ(plan.left_out(0).name(), "huge");
  ASSERT_THAT(plan.scale_down().keep(), SizeIs(2));
  EXPECT_EQ(plan.scale_down().keep(1).budget_refusal(), "InvalidSelector");
}

TEST_F(LeftOutTest, ATemplateThatCannotBeReadIsNotSent) {
  k8s::v1::Deployment deployment;
  deployment.mutable_metadata()->set_namespace_("default");
  deployment.mutable_metadata()->set_name("none");
  deployment.mutable_spec()->set_replicas(0);
  Annotate("loadline.dev/slack-copies", "1", deployment.mutable_metadata());
  ASSERT_TRUE(deployment.mutable_spec()->mutable_template_()->ParseFromString(HostilePods()[1].bytes));
  v1::ClusterObject* const object = objects_.add_objects();
  object->set_kind(v1::DEPLOYMENT);
  object->set_object(deployment.SerializeAsString());
  EXPECT_EQ(Sync(Innocent().SerializeAsString()).left_out_total(), 1);
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_EQ(plan.left_out_size(), 1);
  EXPECT_EQ(plan.left_out(0).kind(), "Deployment");
  EXPECT_THAT(plan.left_out(0).reason(),
              StartsWith("spec.template (namespace \"default\"): spec.containers: has"));
  ASSERT_THAT(plan.scale_down().remove(), SizeIs(1));
}

TEST_F(LeftOutTest, AGroupWhoseTemplateCannotBeReadIsLeftOutAlone) {
  v1::ScalableGroup* const broken = request_.add_groups()->mutable_growth();
  broken->set_node_group("broken");
  broken->set_template_node("x");
  broken->set_max_nodes(9);
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_EQ(plan.left_out_size(), 1);
  EXPECT_EQ(plan.left_out(0).kind(), "NodeGroup");
  EXPECT_EQ(plan.left_out(0).name(), "broken");
  EXPECT_THAT(plan.left_out(0).reason(), StartsWith("template_node is not a k8s.io.api.core.v1.Node"));
  EXPECT_THAT(plan.scale_down().remove(), SizeIs(1));
}

// Not one of its 29,998 nodes is expected, so that pods do not wait for them; and it asks for no more.
TEST_F(LeftOutTest, AGroupThatExpectsMoreNodesThanCanBeIsLeftOutAlone) {
  v1::LoopGroup* const group = request_.mutable_groups(0);
  group->mutable_growth()->set_current_nodes(30'000);
  group->mutable_growth()->set_max_nodes(40'000);
  Pending(NamedPod("waits", {{"cpu", "2"}}).SerializeAsString(), 2);
  const v1::PlanLoopResponse plan = Plan();
  ASSERT_EQ(plan.left_out_size(), 1);
  EXPECT_EQ(plan.left_out(0).kind(), "NodeGroup");
  EXPECT_EQ(plan.left_out(0).name(), "workers");
  EXPECT_EQ(plan.left_out(0).reason(),
            "current_nodes: 30000 are 29998 more than there are, at most 20000 may be");
  ASSERT_EQ(plan.existing_size(), 1) << "one has room on b";
  EXPECT_EQ(plan.existing(0).pods().count(), 1);
  EXPECT_EQ(plan.upcoming_size(), 0);
  EXPECT_EQ(plan.growth_size(), 0);
}

TEST_F(LeftOutTest, ANameThatIsNoneIsLeftOutAlone) {
  k8s::v1::Namespace one;
  one.mutable_metadata()->set_name("\xff");
  v1::ClusterObject* const object = objects_.add_objects();
  object->set_kind(v1::NAMESPACE);
  object->set_object(one.SerializeAsString());
  const std::string pod = Innocent().SerializeAsString();
  ChangesBuilder builder = ChangesBuilder::FullList(++epoch_, 1);
  builder.Shape(0, k8s::v1::Pod()).Node(0, Node("a"), {{0, "web-0\n", "u0"}}).Node(1, Node("\x1b"));
  v1::SyncRequest request = builder.Sync();
  request.mutable_changes()->mutable_pod_shapes(0)->set_pod(pod);
  request.mutable_changes()->MergeFrom(objects_);
  const absl::StatusOr<std::string> bytes = engine_.CallBytes(kSyncMethod, request.SerializeAsString());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  v1::SyncResponse response;
  ASSERT_TRUE(response.ParseFromString(*bytes));
  ASSERT_EQ(response.left_out_size(), 3);
  EXPECT_EQ(response.left_out(0).kind(), "Namespace");
  EXPECT_THAT(response.left_out(0).name(), StartsWith("\\xff~"));
  EXPECT_EQ(response.left_out(1).kind(), "Node");
  EXPECT_THAT(response.left_out(1).name(), StartsWith("\\x1b~"));
  EXPECT_THAT(response.left_out(1).reason(), HasSubstr("metadata.name: \"\\x1b\" is not a name"));
  EXPECT_EQ(response.left_out(2).name(), "a");
  EXPECT_THAT(response.left_out(2).reason(), StartsWith("pods[0]: \"web-0\\n\" is not a name"));
  EXPECT_EQ(engine_.DescribeAll(false).views(0).pods(), 1);
}

TEST(PlaceholderTraitsTest, ALabelAloneMakesNone) {
  k8s::v1::Pod pod = NamedPod("slack-0", {{"cpu", "1"}});
  pod.mutable_metadata()->set_namespace_("loadline-slack");
  pod.mutable_metadata()->mutable_owner_references(0)->set_api_version("apps/v1");
  pod.mutable_spec()->set_priority(-10);
  k8s::v1::StringEntry* const label = pod.mutable_metadata()->add_labels();
  label->set_key("loadline.dev/placeholder");
  EXPECT_TRUE(ReadPodTraits(pod).placeholder);
  EXPECT_TRUE(ReadPodTraits(pod, "loadline-slack").placeholder);
  EXPECT_FALSE(ReadPodTraits(pod, "elsewhere").placeholder);
  k8s::v1::Pod forged = pod;
  forged.mutable_metadata()->set_namespace_("tenant");
  EXPECT_FALSE(ReadPodTraits(forged).placeholder);
  forged = pod;
  forged.mutable_spec()->set_priority(0);
  EXPECT_FALSE(ReadPodTraits(forged).placeholder);
  forged = pod;
  forged.mutable_metadata()->clear_owner_references();
  EXPECT_FALSE(ReadPodTraits(forged).placeholder);
  forged = pod;
  forged.mutable_metadata()->mutable_owner_references(0)->set_kind("Job");
  EXPECT_FALSE(ReadPodTraits(forged).placeholder);
  forged = pod;
  forged.mutable_metadata()->clear_labels();
  EXPECT_FALSE(ReadPodTraits(forged).placeholder);
}

TEST(PrintableTest, IsShortAndValid) {
  EXPECT_EQ(Printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable(std::string("a\0\n\x1b[2J\x7f", 8)), "a???[2J?");
  EXPECT_EQ(Printable("\xff\xc3\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xc2\x85"),
            "????????????"
            "?");
  EXPECT_EQ(Printable("abc", 2), "ab");
  EXPECT_EQ(Printable("a\xc3\xa9", 2), "a") << "no half of a character";
  EXPECT_EQ(Printable(std::string(1000, 'x')).size(), 253u);
}

}  // namespace
}  // namespace loadline
