// Autoscaler.PlanSlack, from bytes to bytes.
#include "plugin/convert/slack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/slack.pb.h"
#include "test/plugin/messages.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;

k8s::v1::Node SlackNode(const std::string& name) {
  return MakeNode(name, {{"cpu", "2"}, {"memory", "8000Mi"}, {"pods", "110"}});
}

// Three nodes of 2 CPUs and 8000Mi with a pod each, of 1 CPU and 500Mi.
class SlackTest : public ::testing::Test {
 protected:
  SlackTest() {
    ChangesBuilder list = ChangesBuilder::FullList(1, 1);
    list.Shape(1, MakePod({}, {{"cpu", "1"}, {"memory", "500Mi"}}));
    for (int32_t slot = 0; slot < 3; ++slot) {
      list.Node(slot, SlackNode("node-" + std::to_string(slot)), {{1, "pod-" + std::to_string(slot), ""}});
    }
    EXPECT_TRUE(engine_.Sync(list).ok());
    request_.mutable_changes()->CopyFrom(ChangesBuilder::At(1, 1).changes());
  }

  // A Deployment that annotates itself, of pods that request so much.
  void AddDeployment(const std::string& key, const std::string& value, const Quantities& requests) {
    k8s::v1::Deployment deployment;
    deployment.mutable_metadata()->set_name("web");
    deployment.mutable_metadata()->set_namespace_("shop");
    Annotate(key, value, deployment.mutable_metadata());
    deployment.mutable_spec()->set_replicas(0);
    *deployment.mutable_spec()->mutable_template_() = MakePod({}, requests);
    v1::Changes* const changes = request_.mutable_changes();
    changes->set_base_revision(1);
    changes->set_revision(2);
    v1::ClusterObject* const object = changes->add_objects();
    object->set_kind(v1::DEPLOYMENT);
    object->set_object(deployment.SerializeAsString());
    AddNamespace("shop", "allowed");
  }
  // Copies may be kept where the label says so.
  void AddNamespace(const std::string& name, const std::string& copies) {
    k8s::v1::Namespace message;
    message.mutable_metadata()->set_name(name);
    k8s::v1::StringEntry* const label = message.mutable_metadata()->add_labels();
    label->set_key("loadline.dev/slack-copies");
    label->set_value(copies);
    v1::ClusterObject* const object = request_.mutable_changes()->add_objects();
    object->set_kind(v1::NAMESPACE);
    object->set_object(message.SerializeAsString());
  }

  absl::StatusOr<v1::PlanSlackResponse> Ask() {
    const absl::StatusOr<std::string> bytes =
        engine_.CallBytes("/loadline.v1.Autoscaler/PlanSlack", request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::PlanSlackResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }
  v1::PlanSlackResponse MustAsk() {
    const absl::StatusOr<v1::PlanSlackResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::PlanSlackResponse();
  }
  void ExpectError(absl::StatusCode code, const std::string& text) {
    const absl::StatusOr<v1::PlanSlackResponse> response = Ask();
    EXPECT_EQ(response.status().code(), code) << response.status();
    EXPECT_THAT(std::string(response.status().message()), HasSubstr(text));
  }
  void ExpectInvalid(const std::string& text) { ExpectError(absl::StatusCode::kInvalidArgument, text); }

  static std::string NodeOfFirst(const v1::SlackState& state) {
    const int32_t position = state.placeholders(0).node_name();
    return position > 0 ? state.names(position - 1) : state.placeholders(0).node();
  }

  TypedEngine engine_;
  v1::PlanSlackRequest request_;
};

// 10 % of 3000m and 1500Mi, in parts of at most 400m and 1600Mi.
TEST_F(SlackTest, KeepsATenthOfWhatIsRequestedByDefault) {
  const v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.classes_size(), 1);
  EXPECT_EQ(response.classes(0).nodes(), 3);
  EXPECT_EQ(response.classes(0).basis().milli_cpu(), 3000);
  EXPECT_EQ(response.classes(0).extra().memory_bytes(), 150 * kMi);
  EXPECT_EQ(response.classes(0).status(), v1::SLACK_READY);
  ASSERT_EQ(response.shapes_size(), 1);
  EXPECT_EQ(response.shapes(0).kind(), v1::Placeholder::STANDARD);
  EXPECT_EQ(response.shapes(0).count(), 1);
  EXPECT_EQ(response.shapes(0).placed(), 1);
  EXPECT_EQ(response.shapes(0).size().milli_cpu(), 300);
  EXPECT_EQ(response.shapes(0).size().memory_bytes(), 150 * kMi);
  EXPECT_EQ(response.added(), 1);
  EXPECT_FALSE(response.has_state());
}

// 10 % of 6000m and 24000Mi: two parts. The formulas as they stand keep 15 parts, which is the whole cluster.
TEST_F(SlackTest, CountsByCapacityAndShowsTheLiteralFormulas) {
  request_.mutable_policy()->set_basis(v1::SlackPolicy::CAPACITY);
  request_.set_literal(true);
  const v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.shapes_size(), 1);
  EXPECT_EQ(response.shapes(0).count(), 2);
  EXPECT_EQ(response.shapes(0).size().milli_cpu(), 300);
  EXPECT_EQ(response.shapes(0).size().memory_bytes(), 1200 * kMi);
  const v1::LiteralSlack& literal = response.literal();
  EXPECT_EQ(literal.placeholders(), 15);
  EXPECT_EQ(literal.milli_cpu(), 400);
  EXPECT_EQ(literal.after_hull_milli_cpu(), 600 - 1000);
}

TEST_F(SlackTest, KeepsItsStateWithTheViewOrTakesWhatIsHandedIn) {
  request_.set_want_state(true);
  const v1::PlanSlackResponse first = MustAsk(), second = MustAsk();
  EXPECT_EQ(second.added(), 0);
  EXPECT_EQ(second.state().SerializeAsString(), first.state().SerializeAsString());
  ASSERT_EQ(first.state().placeholders_size(), 1);
  EXPECT_EQ(NodeOfFirst(first.state()), "node-0");
  *request_.mutable_state() = first.state();
  request_.mutable_state()->mutable_placeholders(0)->clear_node_name();
  request_.mutable_state()->mutable_placeholders(0)->set_node("node-2");
  const v1::PlanSlackResponse third = MustAsk();
  EXPECT_EQ(third.placed(), 0);
  EXPECT_EQ(NodeOfFirst(third.state()), "node-2");
}

// Pods that wait take the room, and the placeholders of theirs need nodes as well.
TEST_F(SlackTest, PodsThatWaitComeFirstAndNodesAreAskedFor) {
  request_.mutable_policy()->set_extra_capacity_min_rate(1);
  request_.mutable_policy()->set_granularity(2);
  v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.shapes_size(), 1);
  EXPECT_EQ(response.shapes(0).count(), 3);
  EXPECT_EQ(response.shapes(0).placed(), 3);
  v1::PendingPods* const pods = request_.add_pods();
  pods->mutable_pod()->set_pod(MakePod({}, {{"cpu", "800m"}}).SerializeAsString());
  pods->set_count(3);
  response = MustAsk();
  EXPECT_EQ(response.pushed_out(), 3);
  // They will request 2400m: 5400m are to be free, in six parts of 900m, two to a node.
  EXPECT_EQ(response.classes(0).basis().milli_cpu(), 5400);
  EXPECT_EQ(response.shapes(0).count(), 6);
  EXPECT_EQ(response.shapes(0).placed(), 0);
  ASSERT_EQ(response.demands_size(), 1);
  EXPECT_EQ(response.demands(0).nodes(), 3);
  EXPECT_EQ(response.classes(0).status(), v1::SLACK_MISSING);
  // No group of that class: nothing may be asked for.
  request_.set_groups_known(true);
  response = MustAsk();
  EXPECT_EQ(response.demands_size(), 0);
  EXPECT_EQ(response.classes(0).status(), v1::SLACK_LIMITED);
  EXPECT_EQ(response.classes(0).reason(), "no node may come for 6 placeholders");
}

TEST_F(SlackTest, MirrorsWorkloadsWithoutReplicas) {
  AddDeployment("loadline.dev/slack-copies", "2", {{"cpu", "900m"}});
  const v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.mirrored_size(), 1);
  EXPECT_THAT(response.mirrored(0).sources(), ::testing::ElementsAre("Deployment shop/web"));
  EXPECT_EQ(response.mirrored(0).count(), 2);
  EXPECT_EQ(response.mirrored(0).placed(), 2);
  EXPECT_EQ(response.mirrored(0).status(), v1::SLACK_READY);
}

TEST_F(SlackTest, APodLargerThanAnyNodeIsUnplaceable) {
  AddDeployment("loadline.dev/slack-copies", "1", {{"cpu", "3"}});
  const v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.mirrored_size(), 1);
  EXPECT_EQ(response.mirrored(0).status(), v1::SLACK_UNPLACEABLE);
  EXPECT_THAT(response.mirrored(0).reason(), HasSubstr("1 of 1 copies: an empty node"));
  EXPECT_EQ(response.demands_size(), 0);
}

TEST_F(SlackTest, AnnotationsThatDoNotParseCountForNothing) {
  AddDeployment("loadline.dev/slack-copies", "many", {{"cpu", "1"}});
  const v1::PlanSlackResponse response = MustAsk();
  EXPECT_EQ(response.mirrored_size(), 0);
  ASSERT_EQ(response.errors_size(), 1);
  EXPECT_EQ(response.errors(0).source(), "Deployment shop/web");
  EXPECT_THAT(response.errors(0).text(), HasSubstr("loadline.dev/slack-copies: \"many\""));
}

TEST_F(SlackTest, PodsWithoutRequestsWantNothing) {
  ChangesBuilder list = ChangesBuilder::FullList(2, 1);
  list.Shape(1, MakePod({}));
  list.Node(0, SlackNode("node-0"), {{1, "pod-0", ""}});
  ASSERT_TRUE(engine_.Sync(list).ok());
  request_.mutable_changes()->CopyFrom(ChangesBuilder::At(2, 1).changes());
  const v1::PlanSlackResponse response = MustAsk();
  EXPECT_EQ(response.classes(0).extra().milli_cpu(), 0);
  EXPECT_EQ(response.shapes_size(), 0);
  EXPECT_EQ(response.classes(0).status(), v1::SLACK_READY);
}

TEST_F(SlackTest, RefusesWhatCannotBe) {
  v1::SlackPolicy* const policy = request_.mutable_policy();
  policy->set_extra_capacity_min_rate(-0.1);
  ExpectInvalid("policy: extra_capacity_min_rate: -0.1 is not in [0, 1000]");
  policy->set_extra_capacity_min_rate(std::numeric_limits<double>::quiet_NaN());
  ExpectInvalid("policy: extra_capacity_min_rate: nan");
  policy->set_extra_capacity_min_rate(1);
  policy->set_basis(v1::SlackPolicy::CAPACITY);
  ExpectInvalid("policy: rate: is 1 or more on the basis of capacity");
  policy->Clear();
  policy->set_granularity(1001);
  ExpectInvalid("policy: granularity: 1001 is not in [0, 1000]");
  policy->Clear();
  policy->set_size_tolerance(-1);
  ExpectInvalid("policy: size_tolerance");
  policy->Clear();
  policy->add_class_labels("no label key!");
  ExpectInvalid("policy: class_labels");
  policy->Clear();
  request_.mutable_state()->set_next_id(2);
  v1::Placeholder* const placeholder = request_.mutable_state()->add_placeholders();
  placeholder->set_id(2);
  ExpectInvalid("state: placeholders[0]: id: 2 is not in [1, 1]");
  placeholder->set_id(1);
  placeholder->set_owner("x");
  ExpectInvalid("state: placeholders[0]: kind: 0 is not known");
  request_.clear_state();
  request_.set_now_seconds(-1);
  ExpectInvalid("now_seconds: -1");
  request_.clear_changes();
  ExpectInvalid("changes: missing");
}

TEST_F(SlackTest, AClusterWithoutNodesNeedsGroups) {
  ASSERT_TRUE(engine_.Sync(ChangesBuilder::FullList(2, 1)).ok());
  request_.mutable_changes()->CopyFrom(ChangesBuilder::At(2, 1).changes());
  ExpectError(absl::StatusCode::kFailedPrecondition, "the cluster has no nodes");
  request_.set_groups_known(true);
  EXPECT_EQ(MustAsk().classes_size(), 0);
}

// The most placeholders that there may be, on 5,000 nodes with names of 63 characters, and elsewhere before.
TEST(SlackStateTest, TheLargestStateStaysBelowTwoMebibytes) {
  SlackState state;
  state.next_id = int64_t{1} << 28;
  const auto node = [](int64_t number) {
    const std::string digits = std::to_string(10'000 + number % 5'000);
    return std::string(63 - digits.size(), 'n') + digits;
  };
  for (int64_t i = 0; i < kMostPlaceholders; ++i) {
    Placeholder& placeholder = state.placeholders.emplace_back();
    placeholder.id = state.next_id - kMostPlaceholders + i;
    placeholder.kind = PlaceholderKind::kMirrored;
    placeholder.owner = "pod-" + std::string(15, '0') + std::to_string(i % 10);
    placeholder.size = {100'000, int64_t{1} << 40};
    placeholder.node = node(i);
    placeholder.last_node = node(i + 1);
  }
  const v1::SlackState message = EncodeSlackState(state);
  EXPECT_EQ(message.placeholders_size(), kMostPlaceholders);
  EXPECT_LT(message.ByteSizeLong(), size_t{2} << 20);
}

// Two nodes of 2 CPUs with a pod of 1 CPU each. The pod of the one that is being deleted moves to the other
// one, and leaves no room for the 200m of slack there.
TEST_F(SlackTest, PodsOfNodesBeingDeletedNeedRoomAsWell) {
  k8s::v1::Node leaving = SlackNode("node-1");
  k8s::v1::Taint* const taint = leaving.mutable_spec()->add_taints();
  taint->set_key("ToBeDeletedByClusterAutoscaler");
  taint->set_value("1000000");
  taint->set_effect("NoSchedule");
  ChangesBuilder list = ChangesBuilder::FullList(2, 1);
  list.Shape(1, MakePod({}, {{"cpu", "1"}, {"memory", "500Mi"}}));
  list.Node(0, SlackNode("node-0"), {{1, "pod-0", ""}}).Node(1, leaving, {{1, "pod-1", ""}});
  ASSERT_TRUE(engine_.Sync(list).ok());
  request_.mutable_changes()->CopyFrom(ChangesBuilder::At(2, 1).changes());
  request_.set_now_seconds(1'000'060);
  const v1::PlanSlackResponse response = MustAsk();
  ASSERT_EQ(response.classes_size(), 1);
  EXPECT_EQ(response.classes(0).basis().milli_cpu(), 2000);
  ASSERT_EQ(response.shapes_size(), 1);
  EXPECT_EQ(response.shapes(0).size().milli_cpu(), 200);
  EXPECT_EQ(response.shapes(0).placed(), 0);
  ASSERT_EQ(response.demands_size(), 1);
  EXPECT_EQ(response.demands(0).nodes(), 1);
}

// A plan that is refused leaves what the last one left.
TEST_F(SlackTest, ARefusedQuestionChangesNoPlan) {
  request_.set_want_state(true);
  const v1::PlanSlackResponse first = MustAsk();
  request_.mutable_policy()->set_extra_capacity_min_rate(-1);
  ExpectInvalid("extra_capacity_min_rate");
  request_.clear_policy();
  EXPECT_EQ(MustAsk().state().SerializeAsString(), first.state().SerializeAsString());
}

}  // namespace
}  // namespace loadline
