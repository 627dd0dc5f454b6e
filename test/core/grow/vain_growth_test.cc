#include "core/grow/vain_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/expand/similar_groups.h"
#include "core/observe/fleet_state.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"

namespace loadline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kNowS = 1'800'000'000;
constexpr int64_t kMinuteMs = 60'000;
constexpr BackOffOptions kBackOff{.initial_ms = 5 * kMinuteMs};

// A pod that selects nodes by a label that the template of the group has, and no node that is added.
FitPod Special(const std::string& namespace_name, const std::string& owner, int64_t milli_cpu = 1000) {
  FitPod pod{.namespace_name = namespace_name, .requests = {{"cpu", milli_cpu}}};
  pod.rules.node_selector = Labels(std::vector<Label>{{"role", "special"}});
  pod.traits.owner = PodOwner{"Job", "batch/v1", owner, "uid-" + owner};
  return pod;
}

// Two groups of the same template. Nodes that come are of the first one.
class VainGrowthTest : public ::testing::Test {
 protected:
  VainGrowthTest() {
    for (const char* const name : {"g", "h"}) problem_.groups.emplace_back().name = name;
  }

  void Come(int64_t minute, std::vector<Taint> taints = {}) {
    nodes_.push_back({.name = absl::StrCat("node-", nodes_.size()), .taints = std::move(taints)});
    nodes_.back().traits.created_s = kNowS + minute * 60;
    nodes_.back().traits.uid = nodes_.back().name;
  }

  // Looks at the pods that wait, in so many minutes.
  std::vector<VainGrowth> Look(int64_t minute, const std::vector<FitPod>& waiting, WorkBudget budget = {}) {
    cluster_ = FitCluster();
    for (const FitNode& node : nodes_) cluster_.Add(node, pods_);
    problem_.drain.cluster = &cluster_.state();
    problem_.drain.group_of = AllInFirstGroup(static_cast<int64_t>(nodes_.size()));
    for (NodeGroup& group : problem_.groups) {
      group.model = NodeModel{cluster_.Shape(FitNode{.name = "template", .labels = {{"role", "special"}}})};
    }
    problem_.pending.clear();
    for (const FitPod& pod : waiting) problem_.pending.push_back({cluster_.Incoming(pod), 1});
    problem_.names = cluster_.names();
    cluster_.state().set_resource_names(cluster_.names());
    Snapshot snapshot(cluster_.state());
    std::vector<VainGrowth> vain =
        HoldVainGrowth(kBackOff, NowMs(minute), &snapshot, &budget, &problem_, &memory_);
    left_ = budget.units();
    return vain;
  }
  // The group "g" grows for all of the pods that Look() was last asked about.
  void Grow(int64_t minute) {
    LoopPlan plan;
    plan.grown = {GroupIndex{0}};
    PlannedNodes& nodes = plan.scale_up.nodes.emplace_back();
    for (size_t i = 0; i < problem_.pending.size(); ++i) nodes.pods.push_back({static_cast<int32_t>(i), 1});
    NoteGrowth(kBackOff, problem_, plan, NowMs(minute), &memory_);
  }
  static int64_t NowMs(int64_t minute) { return kNowS * 1000 + minute * kMinuteMs; }

  std::vector<FitNode> nodes_;
  std::vector<FitPod> pods_;  // on each node
  FitCluster cluster_;
  LoopProblem problem_;
  LoopMemory memory_;
  int64_t left_ = 0;
};

// A controller that makes its pods anew does not buy a node for each of them.
TEST_F(VainGrowthTest, PodsOfAnotherOwnerAreTheSame) {
  EXPECT_THAT(Look(0, {Special("a", "job-1")}), IsEmpty());
  Grow(0);
  Come(1);
  const std::vector<VainGrowth> vain = Look(2, {Special("a", "job-2"), Special("a", "job-3")});
  ASSERT_THAT(vain, SizeIs(2));
  EXPECT_EQ(vain[0].pods, 0u);
  EXPECT_EQ(vain[1].pods, 1u);
  EXPECT_EQ(vain[0].until_ms, NowMs(2) + 5 * kMinuteMs);
  EXPECT_EQ(vain[0].node, Slot{0});
  EXPECT_THAT(vain[0].reason, HasSubstr("node affinity"));
}

TEST_F(VainGrowthTest, PodsOfAnotherNamespaceOrSizeAreOthers) {
  Look(0, {Special("a", "job")});
  Grow(0);
  Come(1);
  EXPECT_THAT(Look(2, {Special("b", "job"), Special("a", "job", 500)}), IsEmpty());
  EXPECT_THAT(Look(2, {Special("a", "job")}), SizeIs(1));
}

// Fingerprints can be made to collide: what one namespace has bought blocks no pods of another one.
TEST_F(VainGrowthTest, ACollisionReachesNoOtherNamespace) {
  Look(0, {Special("a", "job")});
  const uint64_t pods = FilterFingerprint(problem_.pending[0].pod.shape, problem_.names);
  memory_.purchases[{FleetKey("g"), FleetKey("b"), pods}] = {
      .failures = 1, .until_ms = NowMs(60), .model_asked = problem_.model_keys.front()};
  EXPECT_THAT(Look(1, {Special("a", "job")}), IsEmpty());
  memory_.purchases[{FleetKey("g"), FleetKey("a"), pods}] = {
      .failures = 1, .until_ms = NowMs(60), .model_asked = problem_.model_keys.front()};
  EXPECT_THAT(Look(1, {Special("a", "job")}), SizeIs(1));
}

// A node that did not help is soon not needed, and its taint says so.
TEST_F(VainGrowthTest, APassingTaintIsNoChangeOfTheNode) {
  Look(0, {Special("a", "job")});
  Grow(0);
  Come(1);
  EXPECT_THAT(Look(2, {Special("a", "job")}), SizeIs(1));
  nodes_[0].taints = {{kDeletionCandidateTaint, "1800000000", "PreferNoSchedule"}};
  EXPECT_THAT(Look(3, {Special("a", "job")}), SizeIs(1));
  nodes_[0].taints = {{"dedicated", "x", "NoSchedule"}};
  EXPECT_THAT(Look(4, {Special("a", "job")}), IsEmpty());
}

constexpr char kDriverTaint[] = "startup-taint.cluster-autoscaler.kubernetes.io/driver";

// A node that does not help is soon not needed, and its taint says so.
TEST_F(VainGrowthTest, ANodeThatKeepsItsStartupTaintHasNotHelped) {
  const std::vector<FitPod> waiting = {{.namespace_name = "a", .requests = {{"cpu", 1000}}}};
  Look(0, waiting);
  Grow(0);
  Come(1, {{kDriverTaint, "", "NoSchedule"}});
  nodes_[0].allocatable = {{"cpu", 4000}, {"pods", 10}};
  problem_.drain.not_started = {Slot{0}};
  EXPECT_THAT(Look(2, waiting), IsEmpty()) << "it has its time";
  problem_.drain.not_started.clear();
  const std::vector<VainGrowth> vain = Look(17, waiting);
  ASSERT_THAT(vain, SizeIs(1));
  EXPECT_EQ(vain[0].until_ms, NowMs(17 + 5));
  EXPECT_THAT(vain[0].reason, HasSubstr("untolerated taint"));
  nodes_[0].taints.push_back({kDeletionCandidateTaint, "1800000000", "PreferNoSchedule"});
  EXPECT_THAT(Look(18, waiting), SizeIs(1));
  nodes_[0].taints.clear();
  EXPECT_THAT(Look(19, waiting), IsEmpty()) << "it has started";
}

// The pods that it came for may have ended before it broke.
TEST_F(VainGrowthTest, ANodeThatBreaksSaysNothingOfTheNextOne) {
  const std::vector<FitPod> waiting = {{.namespace_name = "a", .requests = {{"cpu", 1000}}}};
  Look(0, waiting);
  Grow(0);
  Come(1, {{"node.kubernetes.io/unreachable", "", "NoSchedule"}});
  nodes_[0].allocatable = {{"cpu", 4000}, {"pods", 10}};
  nodes_[0].traits.ready = false;
  EXPECT_THAT(Look(60, waiting), IsEmpty());
  nodes_[0].traits.ready = true;
  nodes_[0].taints = {{kDriverTaint, "", "NoSchedule"}};
  pods_ = {{.requests = {{"cpu", 1000}}}};
  EXPECT_THAT(Look(61, waiting), IsEmpty()) << "it has run pods: its driver has gone since";
  pods_.clear();
  nodes_[0].taints.push_back({kToBeDeletedTaint, "", "NoSchedule"});
  EXPECT_THAT(Look(62, waiting), IsEmpty()) << "it is to go";
}

TEST_F(VainGrowthTest, PeriodsDoubleUpToADay) {
  int64_t minute = 0;
  for (const int64_t period : {5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440}) {
    EXPECT_THAT(Look(minute, {Special("a", "job")}), IsEmpty()) << period;
    Grow(minute);
    Come(minute + 1);
    const std::vector<VainGrowth> vain = Look(minute + 2, {Special("a", "job")});
    ASSERT_THAT(vain, SizeIs(1)) << period;
    EXPECT_EQ(vain[0].until_ms, NowMs(minute + 2 + period));
    minute += 2 + period;
  }
}

// A namespace whose pods are all different keeps what others have bought in mind.
TEST_F(VainGrowthTest, NamespacesHaveEqualSharesOfWhatIsRemembered) {
  Look(0, {Special("quiet", "job")});
  Grow(0);
  for (int64_t minute = 1; minute <= 2; ++minute) {
    std::vector<FitPod> waiting;
    for (int64_t i = 0; i < 700; ++i) waiting.push_back(Special("busy", "job", minute * 1000 + i));
    Look(minute, waiting);
    Grow(minute);
  }
  EXPECT_THAT(memory_.purchases, SizeIs(kMostPurchases));
  int64_t quiet = 0, newest = 0;
  for (const auto& [of, purchase] : memory_.purchases) {
    quiet += of.namespace_name == FleetKey("quiet") ? 1 : 0;
    newest += purchase.asked_ms == NowMs(2) ? 1 : 0;
  }
  EXPECT_EQ(quiet, 1);
  EXPECT_EQ(newest, 700);
  Come(3);
  EXPECT_THAT(Look(4, {Special("quiet", "job")}), SizeIs(1));
}

// Pods that wait in vain leave nine tenths of the work to the plan, however many there are.
TEST_F(VainGrowthTest, JudgementsLeaveWorkToThePlan) {
  std::vector<FitPod> waiting;
  for (int64_t i = 0; i < 200; ++i) waiting.push_back(Special("a", "job", 1000 + i));
  Look(0, waiting);
  Grow(0);
  for (int i = 0; i < 8; ++i) Come(1);
  constexpr int64_t kUnits = 50'000;
  EXPECT_THAT(Look(2, waiting, WorkBudget(kUnits)), ::testing::Not(SizeIs(200)));
  EXPECT_GE(left_, kUnits / 10 * 9 - 1'000) << "the last judgement may be finished";
  EXPECT_THAT(Look(3, waiting), SizeIs(200));
}

TEST_F(VainGrowthTest, TheFirstTwentyAreDescribed) {
  std::vector<FitPod> waiting;
  for (int64_t i = 0; i < 22; ++i) waiting.push_back(Special("a", "job", 1000 + i));
  Look(0, waiting);
  Grow(0);
  Come(1);
  const std::vector<VainGrowth> vain = Look(2, waiting);
  ASSERT_THAT(vain, SizeIs(22));
  const std::vector<std::string> texts = TextsOf(vain, problem_, NowMs(2));
  ASSERT_THAT(texts, SizeIs(21));
  EXPECT_THAT(texts[19],
              HasSubstr("node group g: node node-0 came for pods of a/job and does not take them (node"));
  EXPECT_EQ(texts[20],
            "node groups do not grow for 2 further kinds of pods that nodes which came for them do not take");
  EXPECT_THAT(TextsOf({}, problem_, 0), IsEmpty());
}

// The label by which pods are kept off new nodes of one group does not tell it from similar groups.
TEST_F(VainGrowthTest, GroupsStaySimilar) {
  problem_.balance.emplace();
  Look(0, {Special("a", "job")});
  Grow(0);
  Come(1);
  EXPECT_THAT(Look(2, {Special("a", "job")}), SizeIs(1));
  const PricedNode priced;
  const NodeShape& a = problem_.groups[GroupIndex{0}].model->shape;
  const NodeShape& b = problem_.groups[GroupIndex{1}].model->shape;
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(AreSimilar({a, priced}, {b, priced}, *problem_.balance));
}

}  // namespace
}  // namespace loadline
