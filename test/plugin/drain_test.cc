// Autoscaler.PlanDrain, from bytes to bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loadline/k8s/v1/workloads.pb.h"
#include "loadline/v1/drain.pb.h"
#include "test/plugin/messages.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kDrainTime = 1'800'000'000;

void SetLabel(const std::string& key, const std::string& value, k8s::v1::ObjectMeta* metadata) {
  k8s::v1::StringEntry* const label = metadata->add_labels();
  label->set_key(key);
  label->set_value(value);
}

// A ready pod of a replica set "web", of one CPU.
k8s::v1::Pod Web() {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"memory", "1Gi"}});
  k8s::v1::OwnerReference* const owner = pod.mutable_metadata()->add_owner_references();
  owner->set_kind("ReplicaSet");
  owner->set_api_version("apps/v1");
  owner->set_name("web");
  owner->set_controller(true);
  SetLabel("app", "web", pod.mutable_metadata());
  k8s::v1::PodCondition* const ready = pod.mutable_status()->add_conditions();
  ready->set_type("Ready");
  ready->set_status("True");
  return pod;
}

k8s::v1::Node FourCores(const std::string& name) {
  k8s::v1::Node node = MakeNode(name, {{"cpu", "4"}, {"memory", "16Gi"}, {"pods", "10"}});
  node.mutable_metadata()->set_uid("uid-of-" + name);
  return node;
}

k8s::v1::PodDisruptionBudget Budget(int32_t allowed) {
  k8s::v1::PodDisruptionBudget budget;
  budget.mutable_metadata()->set_namespace_("default");
  budget.mutable_metadata()->set_name("web");
  k8s::v1::StringEntry* const label = budget.mutable_spec()->mutable_selector()->add_match_labels();
  label->set_key("app");
  label->set_value("web");
  budget.mutable_status()->set_disruptions_allowed(allowed);
  return budget;
}

// Nodes a with one pod, b with two, c without; four cores each, in one group. All objects are known.
class DrainHandlerTest : public ::testing::Test {
 protected:
  DrainHandlerTest() {
    k8s::v1::ReplicaSet owner;
    owner.mutable_metadata()->set_namespace_("default");
    owner.mutable_metadata()->set_name("web");
    owner.mutable_spec()->set_replicas(3);
    Object(v1::REPLICA_SET, owner.SerializeAsString());
    for (const v1::ObjectKind kind :
         {v1::POD_DISRUPTION_BUDGET, v1::REPLICA_SET, v1::STATEFUL_SET, v1::DAEMON_SET, v1::JOB}) {
      cluster_.add_complete_kinds(kind);
    }
    request_.set_now_s(kDrainTime);
    v1::DrainGroup* const group = request_.add_groups();
    group->set_node_group("workers");
    for (const int32_t slot : {0, 1, 2}) group->add_slots(slot);
  }

  void Object(v1::ObjectKind kind, const std::string& bytes) {
    v1::ClusterObject* const object = cluster_.add_objects();
    object->set_kind(kind);
    object->set_object(bytes);
  }

  // Puts nodes and pods as they are into the view.
  void Sync(const k8s::v1::Pod& pod = Web()) {
    ChangesBuilder builder = ChangesBuilder::FullList(++epoch_, 1);
    k8s::v1::Node a = FourCores("a");
    for (const std::string& key : taints_of_a_) {
      k8s::v1::Taint* const taint = a.mutable_spec()->add_taints();
      taint->set_key(key);
      taint->set_effect("NoSchedule");
    }
    builder.Shape(0, pod)
        .Node(0, a, {{0, "web-0", "u0"}})
        .Node(1, FourCores("b"), {{0, "web-1", "u1"}, {0, "web-2", "u2"}})
        .Node(2, FourCores("c"));
    v1::SyncRequest request = builder.Sync();
    request.mutable_changes()->MergeFrom(cluster_);
    const absl::StatusOr<std::string> synced = engine_->CallBytes(kSyncMethod, request.SerializeAsString());
    EXPECT_TRUE(synced.ok()) << synced.status();
    *request_.mutable_changes() = ChangesBuilder::At(epoch_, 1).changes();
  }

  absl::StatusOr<v1::PlanDrainResponse> Ask() {
    const absl::StatusOr<std::string> bytes =
        engine_->CallBytes("/loadline.v1.Autoscaler/PlanDrain", request_.SerializeAsString());
    if (!bytes.ok()) return bytes.status();
    v1::PlanDrainResponse response;
    EXPECT_TRUE(response.ParseFromString(*bytes));
    return response;
  }

  v1::PlanDrainResponse Plan() {
    absl::StatusOr<v1::PlanDrainResponse> response = Ask();
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : v1::PlanDrainResponse();
  }

  // Returns why no node is removed.
  std::string BrakeText() {
    const v1::PlanDrainResponse response = Plan();
    EXPECT_THAT(response.remove(), IsEmpty());
    return response.brake_text();
  }

  std::string Refusal() {
    const absl::StatusOr<v1::PlanDrainResponse> response = Ask();
    EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument) << response.status();
    return std::string(response.status().message());
  }

  std::optional<TypedEngine> engine_{std::in_place};
  v1::Changes cluster_;
  std::vector<std::string> taints_of_a_;
  v1::PlanDrainRequest request_;
  int64_t epoch_ = 0;
};

std::vector<std::string> Removed(const v1::PlanDrainResponse& response) {
  std::vector<std::string> names;
  for (const v1::NodeRemoval& removal : response.remove()) names.push_back(removal.node());
  return names;
}

// Three pods of one core fit on one node of four: two nodes go, of which c is empty. At most half of a node
// may be requested: all three are eligible.
TEST_F(DrainHandlerTest, TellsWhichNodesGoTogether) {
  Sync();
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"c", "a"}));
  ASSERT_EQ(response.remove_size(), 2);
  EXPECT_TRUE(response.remove(0).empty());
  const v1::NodeRemoval& a = response.remove(1);
  EXPECT_EQ(a.uid(), "uid-of-a");
  ASSERT_EQ(a.moves_size(), 1);
  EXPECT_EQ(a.moves(0).name(), "web-0");
  EXPECT_EQ(a.moves(0).namespace_(), "default");
  EXPECT_EQ(a.moves(0).to(), "b");
  EXPECT_EQ(a.since_s(), kDrainTime);
  EXPECT_EQ(a.ready_at_s(), kDrainTime + 601);
  EXPECT_FALSE(a.start());
  EXPECT_EQ(a.waits(), "NotUnneededLongEnough");
  EXPECT_EQ(response.status(), "ScaleDownNoNodeDeleted");
  ASSERT_EQ(response.keep_size(), 1);
  EXPECT_EQ(response.keep(0).node(), "b");
  EXPECT_EQ(response.keep(0).reason(), "AlreadyADestination");
}

TEST_F(DrainHandlerTest, RemembersSinceWhenANodeIsUnneeded) {
  Sync();
  Plan();
  request_.set_now_s(kDrainTime + 601);
  const v1::PlanDrainResponse response = Plan();
  ASSERT_EQ(response.remove_size(), 2);
  EXPECT_EQ(response.remove(0).since_s(), kDrainTime);
  EXPECT_TRUE(response.remove(0).start());
  EXPECT_TRUE(response.remove(1).start());
  EXPECT_EQ(response.status(), "ScaleDownNodeDeleteStarted");
}

// An engine that starts anew and gets the state back answers as one that went on.
TEST_F(DrainHandlerTest, GoesOnFromAStateThatIsHandedBack) {
  Sync();
  const v1::DrainState state = Plan().state();
  request_.set_now_s(kDrainTime + 601);
  const v1::PlanDrainResponse went_on = Plan();
  engine_.emplace();
  epoch_ = 0;
  Sync();
  *request_.mutable_state() = state;
  EXPECT_EQ(Plan().SerializeAsString(), went_on.SerializeAsString());
}

TEST_F(DrainHandlerTest, ReadsTaintsWhereNothingIsRemembered) {
  ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
  k8s::v1::Node node = FourCores("a");
  k8s::v1::Taint* const taint = node.mutable_spec()->add_taints();
  taint->set_key("DeletionCandidateOfClusterAutoscaler");
  taint->set_value(absl::StrCat(kDrainTime - 900));
  taint->set_effect("PreferNoSchedule");
  builder.Node(0, node).Node(1, FourCores("b")).Node(2, FourCores("c"));
  v1::SyncRequest sync = builder.Sync();
  sync.mutable_changes()->MergeFrom(cluster_);
  ASSERT_TRUE(engine_->CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  const v1::PlanDrainResponse response = Plan();
  for (const v1::NodeRemoval& removal : response.remove()) {
    EXPECT_EQ(removal.start(), removal.node() == "a") << removal.node();
  }
}

TEST_F(DrainHandlerTest, NodesWhoseDeletionBeganAreNoCandidates) {
  Sync();
  Plan();
  request_.mutable_progress()->add_started("c");
  request_.set_now_s(kDrainTime + 601);
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"a"}));
  ASSERT_EQ(response.state().deleting_size(), 1);
  EXPECT_EQ(response.state().deleting(0).node(), "c");
  request_.mutable_progress()->clear_started();
  request_.mutable_progress()->add_failed("c");
  EXPECT_EQ(Plan().state().deleting_size(), 0);
}

// One disruption is allowed, and one pod was evicted of which neither the status of the budget nor the pod
// tells yet.
TEST_F(DrainHandlerTest, CountsEvictionsThatTheBudgetDoesNotShowYet) {
  Object(v1::POD_DISRUPTION_BUDGET, Budget(1).SerializeAsString());
  Sync();
  EXPECT_EQ(Removed(Plan()), (std::vector<std::string>{"c", "a"}));
  k8s::v1::Pod pod = Web();
  pod.mutable_metadata()->set_name("web-2");
  pod.mutable_metadata()->set_uid("u2");
  pod.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(kDrainTime);
  pod.clear_status();
  v1::EvictedPod* const evicted = request_.mutable_progress()->add_evicted();
  evicted->set_pod(pod.SerializeAsString());
  evicted->set_node("b");
  evicted->set_at_s(kDrainTime);
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"c"}));
  EXPECT_EQ(response.keep(0).budget_refusal(), "Exhausted");
  ASSERT_EQ(response.state().recent_evictions_size(), 1);
  EXPECT_EQ(response.state().recent_evictions(0).SerializeAsString(), evicted->SerializeAsString());
  request_.clear_progress();
  request_.set_now_s(kDrainTime + 60);
  EXPECT_EQ(Removed(Plan()), (std::vector<std::string>{"c", "a"}));
}

// The answer was lost on its way, and the client asks again; or it was too large, so that none was given.
TEST_F(DrainHandlerTest, ProgressThatIsToldTwiceCountsOnce) {
  Sync();
  const auto evict = [&](const std::string& uid, size_t bytes) {
    k8s::v1::Pod pod = Web();
    pod.mutable_metadata()->set_name("web-" + uid);
    pod.mutable_metadata()->set_uid(uid);
    k8s::v1::StringEntry* const note = pod.mutable_metadata()->add_annotations();
    note->set_key("note");
    note->set_value(std::string(bytes, 'x'));
    v1::EvictedPod* const evicted = request_.mutable_progress()->add_evicted();
    evicted->set_pod(pod.SerializeAsString());
    evicted->set_node("b");
    evicted->set_at_s(kDrainTime + 3600);  // by a clock that was an hour ahead
  };
  evict("large-1", 1'000'000);
  evict("large-2", 1'000'000);
  EXPECT_EQ(Plan().state().recent_evictions_size(), 2);
  EXPECT_EQ(Plan().state().recent_evictions_size(), 2);
  request_.clear_progress();
  request_.set_now_s(kDrainTime + 30);
  for (const char* uid : {"large-3", "large-4", "large-5"}) evict(uid, 1'000'000);
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kResourceExhausted);
  request_.set_compact(true);
  Plan();
  // The first two are kept for 60 s and no longer, whatever the clock was.
  request_.clear_progress();
  request_.set_compact(false);
  request_.set_now_s(kDrainTime + 60);
  const v1::DrainState state = Plan().state();
  ASSERT_EQ(state.recent_evictions_size(), 3);
  EXPECT_EQ(state.recent_evictions(0).at_s(), kDrainTime + 30);
  EXPECT_EQ(state.at_s(), kDrainTime + 60);
}

// An answer that is too large begins no timer and counts nothing.
TEST_F(DrainHandlerTest, AnAnswerThatIsNotGivenLeavesTheStateAsItWas) {
  Sync();
  k8s::v1::Pod pod = Web();
  pod.mutable_metadata()->add_annotations()->set_value(std::string(1'400'000, 'x'));
  for (const char* uid : {"e1", "e2"}) {
    pod.mutable_metadata()->set_uid(uid);
    v1::EvictedPod* const evicted = request_.mutable_progress()->add_evicted();
    evicted->set_pod(pod.SerializeAsString());
    evicted->set_at_s(kDrainTime);
  }
  request_.mutable_state()->mutable_recent_evictions()->CopyFrom(request_.progress().evicted());
  EXPECT_FALSE(Ask().ok()) << "the question itself is too large";
  request_.clear_state();
  Plan();
  request_.mutable_progress()->mutable_evicted()->RemoveLast();
  pod.mutable_metadata()->set_uid("e3");
  request_.mutable_progress()->mutable_evicted(0)->set_pod(pod.SerializeAsString());
  request_.set_now_s(kDrainTime + 10);
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kResourceExhausted);
  request_.clear_progress();
  const v1::DrainState state = Plan().state();
  EXPECT_EQ(state.recent_evictions_size(), 2) << "e3 came with the question that was not answered";
}

// Other names after a full list: the evicted pod requests what has another number then.
TEST_F(DrainHandlerTest, EvictedPodsOutliveAFullList) {
  k8s::v1::Pod pod = MakePod({}, {{"cpu", "1"}, {"example.com/foo", "1"}});
  Sync(pod);
  pod.mutable_metadata()->set_name("gone");
  pod.mutable_metadata()->set_uid("gone");
  v1::EvictedPod* const evicted = request_.mutable_progress()->add_evicted();
  evicted->set_pod(pod.SerializeAsString());
  evicted->set_node("b");
  evicted->set_at_s(kDrainTime);
  EXPECT_EQ(Plan().brake(), "RecentEvictions") << "no node has example.com/foo";
  request_.clear_progress();
  Sync(MakePod({}, {{"cpu", "1"}}));  // nobody has example.com/foo any more
  request_.set_now_s(kDrainTime + 10);
  EXPECT_EQ(Plan().brake(), "");
}

// A drain that was risky as it was planned is risky while it is under way.
TEST_F(DrainHandlerTest, ARiskyDrainIsAloneUntilItIsOver) {
  Object(v1::POD_DISRUPTION_BUDGET, Budget(1).SerializeAsString());
  Sync();
  request_.mutable_state()->add_unneeded()->set_node("b");
  request_.mutable_state()->mutable_unneeded(0)->set_risky(true);
  request_.mutable_progress()->add_started("b");
  const v1::PlanDrainResponse response = Plan();
  ASSERT_EQ(response.state().deleting_size(), 1);
  EXPECT_TRUE(response.state().deleting(0).risky());
}

TEST_F(DrainHandlerTest, ACompactAnswerTellsMovesOfWhatStartsOnly) {
  Sync();
  request_.set_compact(true);
  v1::PlanDrainResponse response = Plan();
  ASSERT_EQ(response.remove_size(), 2);
  EXPECT_EQ(response.remove(1).slot(), 0);
  EXPECT_FALSE(response.remove(1).start());
  EXPECT_EQ(response.remove(1).pods_to_move(), 1);
  EXPECT_THAT(response.remove(1).moves(), IsEmpty());
  EXPECT_EQ(response.remove(1).node() + response.remove(1).uid() + response.remove(1).node_group(), "");
  request_.set_now_s(kDrainTime + 601);  // longer than scale_down_unneeded_time_s
  response = Plan();
  ASSERT_EQ(response.remove_size(), 2);
  EXPECT_TRUE(response.remove(1).start());
  ASSERT_EQ(response.remove(1).moves_size(), 1);
  EXPECT_EQ(response.remove(1).moves(0).to_slot(), 1);
  EXPECT_EQ(response.remove(1).moves(0).to(), "");
  EXPECT_EQ(response.remove(1).node(), "a");
  EXPECT_EQ(response.remove(1).uid(), "uid-of-a");
  EXPECT_EQ(response.remove(1).node_group(), "workers");
  EXPECT_FALSE(response.has_state());
}

TEST_F(DrainHandlerTest, ACompactAnswerTellsByReasonWhyNodesStay) {
  Object(v1::POD_DISRUPTION_BUDGET, Budget(0).SerializeAsString());
  Sync();
  const v1::PlanDrainResponse whole = Plan();
  ASSERT_EQ(whole.keep_size(), 2);
  request_.set_compact(true);
  const v1::PlanDrainResponse response = Plan();
  EXPECT_THAT(response.keep(), IsEmpty());
  ASSERT_EQ(response.stay_size(), 1);
  EXPECT_THAT(response.stay(0).slots(), ElementsAre(0, 1));
  EXPECT_EQ(response.stay(0).first().SerializeAsString(), whole.keep(0).SerializeAsString());
  EXPECT_NE(response.stay(0).first().advice(), "");
}

// 1,000 nodes with two pods each, all names as long as they may be: waiting removals take a few bytes.
TEST_F(DrainHandlerTest, ACompactAnswerDoesNotGrowWithPodsAndNames) {
  ChangesBuilder builder = ChangesBuilder::FullList(++epoch_, 1);
  builder.Shape(0, Web());
  for (int32_t slot = 0; slot < 1'000; ++slot) {
    const std::string number = absl::StrCat(1'000 + slot);
    std::vector<PodOnNode> pods;
    for (int pod = 0; pod < 2; ++pod) {
      const std::string name = absl::StrCat(std::string(240, 'p'), number, "-", pod);
      pods.push_back({0, name, absl::StrCat("u-", number, "-", pod)});
    }
    builder.Node(slot, FourCores(absl::StrCat(std::string(240, 'n'), number)), pods);
    if (slot > 2) request_.mutable_groups(0)->add_slots(slot);
  }
  v1::SyncRequest sync = builder.Sync();
  sync.mutable_changes()->MergeFrom(cluster_);
  ASSERT_TRUE(engine_->CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
  *request_.mutable_changes() = ChangesBuilder::At(epoch_, 1).changes();
  request_.set_compact(true);
  const v1::PlanDrainResponse response = Plan();
  EXPECT_GE(response.remove_size(), 400);
  EXPECT_LE(response.ByteSizeLong(), size_t{50} * 1'000 + 4'096);
}

// --- brakes
// --------------------------------------------------------------------------------------------------

TEST_F(DrainHandlerTest, RemovesNothingWhileTheViewIsIncomplete) {
  cluster_.clear_complete_kinds();
  Sync();
  EXPECT_EQ(BrakeText(), "the view does not hold all pod disruption budgets for sure");
}

TEST_F(DrainHandlerTest, RemovesNothingByAViewThatIsOld) {
  Sync();
  request_.set_seen_s(kDrainTime - 61);
  EXPECT_EQ(BrakeText(), "the cluster was last seen 1 min 1 s ago, more than 1 min");
}

// One of three pods is left: 67 % vanished.
TEST_F(DrainHandlerTest, RemovesNothingAfterASuddenLossOfPods) {
  Sync();
  Plan();
  ChangesBuilder builder = ChangesBuilder::Delta(1, 1, 2);
  builder.Node(1, FourCores("b"));
  *request_.mutable_changes() = builder.changes();
  EXPECT_EQ(BrakeText(), "2 of the 3 pods of the last loop are gone, and nothing says why");
}

TEST_F(DrainHandlerTest, RemovesNothingAfterASuddenLossOfNodes) {
  Sync();
  Plan();
  ChangesBuilder builder = ChangesBuilder::Delta(1, 1, 2);
  builder.Remove(2);
  *request_.mutable_changes() = builder.changes();
  request_.mutable_groups(0)->mutable_slots()->RemoveLast();
  EXPECT_EQ(BrakeText(), "of 3 nodes of the last loop that had to stay, 2 are left");
}

// Four of five nodes are not ready: more than 3, and more than 45 %.
TEST_F(DrainHandlerTest, RemovesNothingInAnUnhealthyCluster) {
  ChangesBuilder builder = ChangesBuilder::FullList(1, 1);
  for (int32_t slot = 0; slot < 5; ++slot) {
    k8s::v1::Node node = FourCores(absl::StrCat("n", slot));
    k8s::v1::NodeCondition* const ready = node.mutable_status()->add_conditions();
    ready->set_type("Ready");
    ready->set_status(slot == 0 ? "True" : "Unknown");
    builder.Node(slot, node);
  }
  v1::SyncRequest sync = builder.Sync();
  sync.mutable_changes()->MergeFrom(cluster_);
  ASSERT_TRUE(engine_->CallBytes(kSyncMethod, sync.SerializeAsString()).ok());
  *request_.mutable_changes() = ChangesBuilder::At(1, 1).changes();
  EXPECT_EQ(BrakeText(), "4 of 5 nodes are not ready");
}

// --- bad input: a clear error, or the node stays
// -----------------------------------------------------------------

TEST_F(DrainHandlerTest, AClockThatWentBackRemovesNothing) {
  Sync();
  Plan();
  request_.set_now_s(kDrainTime - 3600);
  EXPECT_EQ(BrakeText(),
            absl::StrCat("the last loop was at ", kDrainTime, ", and now it is ", kDrainTime - 3600));
}

TEST_F(DrainHandlerTest, ATimerInTheFutureStartsNow) {
  Sync();
  v1::UnneededNode* const node = request_.mutable_state()->add_unneeded();
  node->set_node("c");
  node->set_since_s(kDrainTime + 1'000'000);
  const v1::PlanDrainResponse response = Plan();
  ASSERT_EQ(Removed(response), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(response.remove(0).since_s(), kDrainTime);
  EXPECT_FALSE(response.remove(0).start());
}

TEST_F(DrainHandlerTest, ABudgetWithAnInvalidSelectorBlocks) {
  k8s::v1::PodDisruptionBudget budget = Budget(10);
  k8s::v1::LabelSelectorRequirement* const requirement =
      budget.mutable_spec()->mutable_selector()->add_match_expressions();
  requirement->set_key("app");
  requirement->set_operator_("Near");
  Object(v1::POD_DISRUPTION_BUDGET, budget.SerializeAsString());
  Sync();
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"c"}));
  ASSERT_EQ(response.keep_size(), 2);
  EXPECT_EQ(response.keep(0).reason(), "BlockedByPod");
  EXPECT_EQ(response.keep(0).pod_name(), "web-0");
  EXPECT_EQ(response.keep(0).pod_reason(), "NotEnoughPdb");
  EXPECT_EQ(response.keep(0).budget_refusal(), "InvalidSelector");
}

TEST_F(DrainHandlerTest, CountsOfABudgetThatMakeNoSenseBlock) {
  for (const auto& [allowed, desired] : std::vector<std::pair<int32_t, int32_t>>{
           {-5, 0}, {INT32_MIN, INT32_MIN}, {INT32_MAX, INT32_MAX}, {INT32_MAX, 3}}) {
    k8s::v1::PodDisruptionBudget budget = Budget(allowed);
    budget.mutable_status()->set_desired_healthy(desired);
    cluster_.mutable_objects()->DeleteSubrange(1, cluster_.objects_size() - 1);
    Object(v1::POD_DISRUPTION_BUDGET, budget.SerializeAsString());
    engine_.emplace();
    epoch_ = 0;
    Sync();
    EXPECT_EQ(Removed(Plan()), (std::vector<std::string>{"c"})) << allowed << " " << desired;
  }
}

// Three ready pods are seen, none has to stay: three may go, whatever the status says.
TEST_F(DrainHandlerTest, ABudgetAllowsNoMoreThanThereArePods) {
  Object(v1::POD_DISRUPTION_BUDGET, Budget(INT32_MAX).SerializeAsString());
  Sync();
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"c", "a"}));
  ASSERT_EQ(response.budgets_size(), 1);
  EXPECT_EQ(response.budgets(0).left(), 3);
  EXPECT_EQ(response.remove(1).moves(0).budget(), "web");
}

TEST_F(DrainHandlerTest, NodesWithoutGroupStay) {
  request_.clear_groups();
  Sync();
  const v1::PlanDrainResponse response = Plan();
  EXPECT_THAT(Removed(response), IsEmpty());
  ASSERT_EQ(response.keep_size(), 3);
  EXPECT_EQ(response.keep(2).reason(), "NotAutoscaled");
}

TEST_F(DrainHandlerTest, GroupsAreDerivedWhereNobodyNamesAny) {
  request_.clear_groups();
  request_.set_derive_groups(true);
  Sync();
  const v1::PlanDrainResponse response = Plan();
  ASSERT_GT(response.remove_size(), 0);
  EXPECT_FALSE(response.remove(0).node_group().empty());
  request_.add_groups()->set_node_group("g");
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DrainHandlerTest, TaintsThatTheQuestionNamesDivideNoDerivedGroup) {
  request_.clear_groups();
  request_.set_derive_groups(true);
  taints_of_a_ = {"example.com/starting"};
  Sync();
  const auto groups = [&] {
    std::set<std::string> names;
    const v1::PlanDrainResponse response = Plan();
    for (const v1::NodeRemoval& removal : response.remove()) names.insert(removal.node_group());
    for (const v1::NodeKeep& keep : response.keep()) names.insert(keep.node_group());
    return names.size();
  };
  EXPECT_EQ(groups(), 2);
  request_.mutable_startup_taints()->add_startup("example.com/starting");
  EXPECT_EQ(groups(), 1);
  request_.mutable_startup_taints()->add_startup("");
  EXPECT_EQ(Refusal(), "startup_taints.startup[1]: is empty");
}

TEST_F(DrainHandlerTest, RefusesGroupsThatMakeNoSense) {
  Sync();
  request_.mutable_groups(0)->add_slots(17);
  EXPECT_EQ(Refusal(), "groups[0] \"workers\": slot 17 holds no node");
  request_.mutable_groups(0)->set_slots(3, 0);
  EXPECT_EQ(Refusal(), "groups[0] \"workers\": slot 0 is in two groups");
  request_.mutable_groups(0)->set_slots(3, -1);
  EXPECT_EQ(Refusal(), "groups[0] \"workers\": slot -1 holds no node");
  request_.mutable_groups(0)->clear_node_group();
  EXPECT_EQ(Refusal(), "groups[0]: node_group: is empty");
}

TEST_F(DrainHandlerTest, LeavesAGroupAloneWhoseSizeCannotBe) {
  Sync();
  ASSERT_THAT(Removed(Plan()), Not(IsEmpty()));
  const v1::DrainGroup good = request_.groups(0);
  const auto reported = [&] {
    const v1::PlanDrainResponse response = Plan();
    EXPECT_THAT(Removed(response), IsEmpty());
    *request_.mutable_groups(0) = good;
    return response.left_out_size() == 1 ? response.left_out(0).reason() : "";
  };
  request_.mutable_groups(0)->set_min_nodes(5);
  request_.mutable_groups(0)->set_max_nodes(4);
  EXPECT_EQ(reported(), "max_nodes: 4 is below min_nodes, 5: the group is left as it is");
  request_.mutable_groups(0)->set_target(-1);
  EXPECT_EQ(reported(), "target: -1 is negative: the group is left as it is");
}

TEST_F(DrainHandlerTest, RefusesTimesThatMakeNoSense) {
  Sync();
  request_.set_now_s(0);
  EXPECT_THAT(Refusal(), HasSubstr("now_s: 0 is not in"));
  request_.set_now_s(kDrainTime);
  request_.mutable_state()->add_unneeded()->set_since_s(-1);
  EXPECT_THAT(Refusal(), HasSubstr("state: unneeded[0].since_s: -1 is not in"));
}

TEST_F(DrainHandlerTest, RefusesOptionsThatMakeNoSense) {
  Sync();
  request_.mutable_options()->set_scale_down_utilization_threshold(1.5);
  EXPECT_THAT(Refusal(), HasSubstr("options: scale_down_utilization_threshold"));
  request_.mutable_options()->set_scale_down_utilization_threshold(0.5);
  request_.mutable_options()->set_max_drain_parallelism(-1);
  EXPECT_THAT(Refusal(), HasSubstr("options: max_drain_parallelism: -1 is not in"));
}

// c is empty and a is not: each of the two budgets holds one of them back, at its time.
TEST_F(DrainHandlerTest, BudgetsOfGroupsHoldNodesBack) {
  Sync();
  request_.mutable_options()->set_scale_down_unneeded_time_s(0);
  Plan();
  v1::NodeBudget* const budget = request_.mutable_options()->add_node_budgets();
  budget->add_reasons(v1::NodeBudget::EMPTY);
  budget->set_percent(0);
  request_.set_now_s(request_.now_s() + 1);
  const auto waits = [](const v1::PlanDrainResponse& response) {
    std::vector<std::string> reasons;
    for (const v1::NodeRemoval& removal : response.remove()) reasons.push_back(removal.waits());
    return reasons;
  };
  EXPECT_EQ(waits(Plan()), (std::vector<std::string>{"ScaleDownThrottled", ""}));
  EXPECT_EQ(Plan().limit(), "NodeBudget");
  *budget = {};
  budget->add_reasons(v1::NodeBudget::UNDERUTILIZED);
  budget->set_nodes(0);
  EXPECT_EQ(waits(Plan()), (std::vector<std::string>{"", "ScaleDownThrottled"}));
  v1::TimeWindow* const window = budget->mutable_windows()->add_windows();
  window->set_from_s(request_.now_s() + 1);
  window->set_until_s(request_.now_s() + 2);
  EXPECT_EQ(waits(Plan()), (std::vector<std::string>{"", ""}));
  budget->mutable_windows()->Clear();
  budget->add_node_groups("another");
  EXPECT_EQ(waits(Plan()), (std::vector<std::string>{"", ""}));
}

TEST_F(DrainHandlerTest, RefusesBudgetsOfGroupsThatMakeNoSense) {
  Sync();
  const auto refusal = [&](auto change) {
    request_.mutable_options()->clear_node_budgets();
    change(*request_.mutable_options()->add_node_budgets());
    return Refusal();
  };
  EXPECT_THAT(refusal([](v1::NodeBudget& b) { b.set_percent(101); }),
              HasSubstr("options: node_budgets[0].percent: 101"));
  EXPECT_THAT(refusal([](v1::NodeBudget& b) { b.set_nodes(-1); }), HasSubstr("node_budgets[0].nodes: -1"));
  EXPECT_THAT(refusal([](v1::NodeBudget& b) { b.add_node_groups(""); }),
              HasSubstr("node_budgets[0].node_groups"));
  EXPECT_THAT(refusal([](v1::NodeBudget& b) { b.add_reasons(v1::NodeBudget::REASON_UNSPECIFIED); }),
              HasSubstr("node_budgets[0].reasons"));
  EXPECT_THAT(refusal([](v1::NodeBudget& b) { b.mutable_windows()->add_windows()->set_from_s(1); }),
              HasSubstr("node_budgets[0].windows.until_s: 0"));
  request_.mutable_options()->clear_node_budgets();
  v1::TimeWindows* const windows = request_.mutable_options()->add_node_budgets()->mutable_windows();
  for (int i = 0; i < 65; ++i) windows->add_windows();
  const absl::Status status = Ask().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "options: node_budgets[0].windows.windows: has 65 entries, the limit is 64");
}

// Placeholders on a name that is no node play no part, and those that nobody could hold are left out.
TEST_F(DrainHandlerTest, TakesPlaceholdersOfKnownResourcesOnly) {
  Sync();
  v1::DrainPlaceholder* const placeholder = request_.add_placeholders();
  placeholder->set_name("slack-0");
  placeholder->set_node("elsewhere");
  placeholder->set_pod(MakePod({}, {{"cpu", "1"}}).SerializeAsString());
  EXPECT_EQ(Removed(Plan()), (std::vector<std::string>{"c", "a"}));
  placeholder->set_pod(MakePod({}, {{"example.com/moon", "1"}}).SerializeAsString());
  const v1::PlanDrainResponse response = Plan();
  EXPECT_EQ(Removed(response), (std::vector<std::string>{"c", "a"}));
  ASSERT_EQ(response.left_out_size(), 1);
  EXPECT_EQ(response.left_out(0).kind(), "Placeholder");
  EXPECT_EQ(response.left_out(0).name(), "slack-0");
  EXPECT_EQ(response.left_out(0).reason(), "requests \"example.com/moon\", which the cluster does not have");
}

}  // namespace
}  // namespace loadline
