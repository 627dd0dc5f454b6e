// SchedulerExtender.Fit and the objects of Sync, from bytes to bytes.
#include "plugin/convert/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/fit.pb.h"
#include "test/plugin/messages.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Group = v1::VerdictGroup;

k8s::v1::Node Node(const std::string& name) { return MakeNode(name, {{"cpu", "1"}, {"pods", "3"}}); }

k8s::v1::Pod Requesting(const std::string& cpu) { return MakePod({}, {{"cpu", cpu}}); }

// Nodes "a" and "b" in slots 0 and 1; on "a" a pod that requests 600m.
class FitTest : public ::testing::Test {
 protected:
  FitTest() {
    EXPECT_TRUE(engine_
                    .Sync(ChangesBuilder::FullList(1, 1)
                              .Shape(0, Requesting("600m"))
                              .Node(0, Node("a"), {{0, "old", "old-uid"}})
                              .Node(1, Node("b")))
                    .ok());
    request_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
    request_.add_pods()->set_pod(Requesting("500m").SerializeAsString());
  }

  absl::StatusOr<v1::FitResponse> Ask(const Deadline& deadline = Deadline()) {
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes("/loadline.v1.SchedulerExtender/Fit", request_.SerializeAsString(), deadline);
    if (!bytes.ok()) return bytes.status();
    v1::FitResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }

  // Slots where the first pod fits.
  std::vector<int32_t> Fitting() {
    const absl::StatusOr<v1::FitResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {-1};
    for (const Group& group : response->pods(0).groups()) {
      if (group.verdict() == Group::FITS) return {group.slots().begin(), group.slots().end()};
    }
    return {};
  }

  v1::Move* AddMove() { return request_.add_moves(); }

  TypedEngine engine_;
  v1::FitRequest request_;
};

TEST_F(FitTest, GroupsNodesByVerdict) {
  const absl::StatusOr<v1::FitResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->pods_size(), 1);
  ASSERT_EQ(response->pods(0).groups_size(), 2);
  const Group& no = response->pods(0).groups(0);
  EXPECT_EQ(no.verdict(), Group::DOES_NOT_FIT);
  EXPECT_EQ(no.filter(), Group::NODE_RESOURCES_FIT);
  EXPECT_EQ(no.status_class(), Group::UNSCHEDULABLE);
  EXPECT_THAT(no.reasons(), ElementsAre("Insufficient cpu"));
  EXPECT_THAT(no.slots(), ElementsAre(0));
  EXPECT_FALSE(no.before_nodes());
  const Group& yes = response->pods(0).groups(1);
  EXPECT_EQ(yes.verdict(), Group::FITS);
  EXPECT_EQ(yes.filter(), Group::FILTER_UNSPECIFIED);
  EXPECT_THAT(yes.slots(), ElementsAre(1));
}

// A node that refuses a pod for 256 names says so in some 10 kB; 5,000 that do so alike in as much.
TEST(PodFitGroupsTest, EqualVerdictsAreKeptOnce) {
  FitCluster cluster;
  cluster.Add({.name = "a"});
  cluster.Add({.name = "b"});
  const Snapshot snapshot(cluster.state());
  Verdict verdict;
  verdict.judgement = Judgement::kDoesNotFit;
  verdict.filter = FilterName::kNodeResourcesFit;
  verdict.status_class = StatusClass::kUnschedulable;
  for (int i = 100; i < 356; ++i) verdict.reasons.push_back("Insufficient example.com/" + std::to_string(i));
  PodFitGroups groups(&snapshot);
  groups.Add(verdict, NodeIndex{0});
  const size_t once = groups.bytes();
  EXPECT_GT(once, 256U * 28);
  for (int i = 1; i < 5'000; ++i) groups.Add(verdict, NodeIndex{0});
  EXPECT_EQ(groups.bytes(), once + 4'999 * sizeof(int32_t));
  groups.Add(Verdict(), NodeIndex{1});
  const v1::PodFit message = std::move(groups).Take();
  ASSERT_EQ(message.groups_size(), 2);
  EXPECT_EQ(message.groups(0).slots_size(), 5'000);
  EXPECT_THAT(message.groups(1).slots(), ElementsAre(1));
}

TEST_F(FitTest, MovesAreUndoneAfterTheQuestion) {
  v1::PlacePod* const place = AddMove()->mutable_place_pod();
  place->set_shape(0);
  place->set_slot(1);
  EXPECT_THAT(Fitting(), ElementsAre());
  request_.clear_moves();
  EXPECT_THAT(Fitting(), ElementsAre(1));
}

TEST_F(FitTest, APodIsRemovedByUidOrByName) {
  AddMove()->mutable_remove_pod()->set_uid("old-uid");
  EXPECT_THAT(Fitting(), ElementsAre(0, 1));
  request_.clear_moves();
  v1::RemovePod* const remove = AddMove()->mutable_remove_pod();
  remove->set_namespace_("default");
  remove->set_name("old");
  EXPECT_THAT(Fitting(), ElementsAre(0, 1));
  remove->set_namespace_("other");
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: node \"a\" has no pod \"old\""));
}

TEST_F(FitTest, AddedAndRemovedNodes) {
  v1::AddNode* const add = AddMove()->mutable_add_node();
  add->set_slot(9);
  add->set_node(Node("c").SerializeAsString());
  EXPECT_THAT(Fitting(), ElementsAre(1, 9));
  AddMove()->mutable_remove_node()->set_slot(1);
  EXPECT_THAT(Fitting(), ElementsAre(9));
  v1::RemoveNode* const ghost = AddMove()->mutable_remove_node();
  ghost->set_slot(9);
  ghost->set_ghost(true);
  EXPECT_THAT(Fitting(), ElementsAre());
}

TEST_F(FitTest, ForksNest) {
  AddMove()->mutable_fork();
  v1::PlacePod* const place = AddMove()->mutable_place_pod();
  place->set_pod(Requesting("1").SerializeAsString());
  place->set_slot(1);
  EXPECT_THAT(Fitting(), ElementsAre());
  AddMove()->mutable_revert();
  EXPECT_THAT(Fitting(), ElementsAre(1));
  AddMove()->mutable_revert();
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[3]: revert: there is no fork to revert"));
  // A question that is refused half-way leaves nothing behind.
  request_.clear_moves();
  EXPECT_THAT(Fitting(), ElementsAre(1));
}

TEST_F(FitTest, BadMovesAreRefused) {
  AddMove()->mutable_commit();
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: commit: there is no fork to commit"));
  request_.clear_moves();
  AddMove();
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: states no move"));
  AddMove()->mutable_add_node()->set_node("\xff");
  request_.mutable_moves(0)->mutable_place_pod();
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: place_pod: has neither pod nor shape"));
  request_.mutable_moves(0)->mutable_place_pod()->set_shape(7);
  request_.mutable_moves()->DeleteSubrange(1, 1);
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: pod shape 7 was never sent"));
  request_.mutable_moves(0)->mutable_place_pod()->set_slot(5);
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: slot 5 holds no node"));
  request_.mutable_moves(0)->mutable_add_node()->set_node(Node("c").SerializeAsString());
  EXPECT_THAT(Ask().status().message(), HasSubstr("moves[0]: slot 0 holds a node"));
}

TEST_F(FitTest, CandidatesAreThoseAskedFor) {
  request_.add_slots(1);
  request_.add_slots(0);
  const absl::StatusOr<v1::FitResponse> response = Ask();
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->pods(0).groups(0).slots(), ElementsAre(1));
  request_.add_slots(1);
  EXPECT_THAT(Ask().status().message(), HasSubstr("slots[2]: slot 1 is named twice"));
  request_.set_slots(2, 4);
  EXPECT_THAT(Ask().status().message(), HasSubstr("slots[2]: slot 4 holds no node"));
}

// The view has not seen this selector: its pods' shapes learn the label for the question.
TEST_F(FitTest, ASelectorOfTheQuestionFindsLabels) {
  k8s::v1::Pod labelled = Requesting("1m");
  auto* const label = labelled.mutable_metadata()->add_labels();
  label->set_key("app");
  label->set_value("web");
  k8s::v1::Node node = Node("b");
  auto* const hostname = node.mutable_metadata()->add_labels();
  hostname->set_key("kubernetes.io/hostname");
  hostname->set_value("b");
  ASSERT_TRUE(
      engine_.Sync(ChangesBuilder::Delta(1, 1, 2).Shape(1, labelled).Node(1, node, {{1, "web", "web-uid"}}))
          .ok());
  k8s::v1::Pod pod = labelled;
  auto* const term = pod.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity()->add_required();
  term->set_topology_key("kubernetes.io/hostname");
  auto* const wanted = term->mutable_label_selector()->add_match_labels();
  wanted->set_key("app");
  wanted->set_value("web");
  request_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 2).changes());
  request_.mutable_pods(0)->set_pod(pod.SerializeAsString());
  EXPECT_THAT(Fitting(), ElementsAre(0));
}

TEST_F(FitTest, DefaultSpreadConstraintsNeedASelector) {
  k8s::v1::Node node = Node("b");
  auto* const zone = node.mutable_metadata()->add_labels();
  zone->set_key("zone");
  zone->set_value("east");
  ASSERT_TRUE(engine_.Sync(ChangesBuilder::Delta(1, 1, 2).Node(1, node)).ok());
  request_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 2).changes());
  request_.mutable_pods(0)->set_pod(Requesting("1m").SerializeAsString());
  k8s::v1::TopologySpreadConstraint constraint;
  constraint.set_max_skew(1);
  constraint.set_topology_key("zone");
  constraint.set_when_unsatisfiable("DoNotSchedule");
  request_.mutable_options()->add_default_spread_constraints(constraint.SerializeAsString());
  EXPECT_THAT(Fitting(), ElementsAre(0, 1));
  k8s::v1::LabelSelector selector;
  auto* const label = selector.add_match_labels();
  label->set_key("app");
  label->set_value("web");
  request_.mutable_pods(0)->set_default_spread_selector(selector.SerializeAsString());
  EXPECT_THAT(Fitting(), ElementsAre(1));  // "a" lacks the key
}

// Ten million judgements, as many as one question may ask for, take a second or more.
TEST_F(FitTest, ALongQuestionEndsAtItsDeadline) {
  for (int32_t i = 0; i < 9'998; ++i) {
    v1::AddNode* const added = AddMove()->mutable_add_node();
    added->set_slot(2 + i);
    added->set_node(Node("node-" + std::to_string(i)).SerializeAsString());
  }
  k8s::v1::Pod pod = Requesting("500m");
  for (int i = 0; i < 1'000; ++i) {
    pod.mutable_metadata()->set_name("pod-" + std::to_string(i));
    if (i == request_.pods_size()) request_.add_pods();
    request_.mutable_pods(i)->set_pod(pod.SerializeAsString());
  }
  EXPECT_EQ(Ask(Deadline::After(20'000'000)).status().code(), absl::StatusCode::kDeadlineExceeded);
  AddMove()->mutable_add_node()->set_slot(20'000);
  request_.mutable_moves(request_.moves_size() - 1)
      ->mutable_add_node()
      ->set_node(Node("one-too-many").SerializeAsString());
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kResourceExhausted);
  // The moves of a question that was not answered are undone.
  request_.clear_moves();
  request_.mutable_pods()->DeleteSubrange(1, request_.pods_size() - 1);
  EXPECT_THAT(Fitting(), ElementsAre(1));
}

TEST_F(FitTest, ObjectsAreSyncedCountedAndRead) {
  k8s::v1::PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_metadata()->set_name("data");
  claim.mutable_status()->set_phase("Lost");
  claim.mutable_spec()->set_volume_name("pv");
  v1::Changes changes = ChangesBuilder::Delta(1, 1, 2).changes();
  v1::ClusterObject* const object = changes.add_objects();
  object->set_kind(v1::PERSISTENT_VOLUME_CLAIM);
  object->set_object(claim.SerializeAsString());
  changes.add_complete_kinds(v1::NAMESPACE);
  request_.mutable_changes()->CopyFrom(changes);
  k8s::v1::Pod pod = Requesting("1m");
  pod.mutable_spec()
      ->add_volumes()
      ->mutable_volume_source()
      ->mutable_persistent_volume_claim()
      ->set_claim_name("data");
  request_.mutable_pods(0)->set_pod(pod.SerializeAsString());
  const absl::StatusOr<v1::FitResponse> response = Ask();
  ASSERT_TRUE(response.ok()) << response.status();
  const Group& group = response->pods(0).groups(0);
  EXPECT_EQ(group.filter(), Group::VOLUME_BINDING);
  EXPECT_TRUE(group.before_nodes());
  EXPECT_THAT(group.reasons(),
              ElementsAre("persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv\""));
  EXPECT_THAT(group.slots(), ElementsAre(0, 1));

  const v1::ViewState view = engine_.DescribeAll().views(0);
  ASSERT_EQ(view.objects_size(), 2);
  EXPECT_EQ(view.objects(0).kind(), v1::NAMESPACE);
  EXPECT_EQ(view.objects(0).count(), 0);
  EXPECT_TRUE(view.objects(0).complete());
  EXPECT_EQ(view.objects(1).kind(), v1::PERSISTENT_VOLUME_CLAIM);
  EXPECT_EQ(view.objects(1).count(), 1);
  EXPECT_FALSE(view.objects(1).complete());
}

TEST_F(FitTest, BadObjectsAreRefused) {
  v1::Changes changes = ChangesBuilder::Delta(1, 1, 2).changes();
  changes.add_objects()->set_kind(v1::NAMESPACE);
  request_.mutable_changes()->CopyFrom(changes);
  EXPECT_THAT(Ask().status().message(), HasSubstr("objects[0] has an empty metadata.name"));
  request_.mutable_changes()->mutable_objects(0)->set_kind(v1::OBJECT_KIND_UNSPECIFIED);
  EXPECT_THAT(Ask().status().message(), HasSubstr("objects[0] kind: 0 is not a kind of objects"));
}

}  // namespace
}  // namespace loadline
