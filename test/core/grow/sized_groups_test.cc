// Groups that are sized by how full they are, in one iteration. Thresholds are 70, 60 and 40 percent.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/cluster/startup_taints.h"
#include "core/drain/node_reason.h"
#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr int64_t kSoftS = 60;
constexpr int64_t kHardS = 600;

// Group 0 is sized: the nodes of 1000m with label pool=a, at most ten. Group 1 is not.
class SizedGroupsTest : public LoopTest {
 protected:
  SizedGroupsTest() {
    AddGroup("sized", 1000, 9, 0);
    AddGroup("other", 1000, 1, 0);
    templates_[GroupIndex{0}].labels = {{"pool", "a"}};
    problem_.groups[GroupIndex{0}].sized = true;
    LoopSizing sizing;
    sizing.of.name = "sized";
    sizing.of.pods.labels = MakeLabels({{"pool", "a"}});
    SizeOptions& options = sizing.of.options;
    options.max_nodes = 10;
    options.scale_up_percent = 70;
    options.taint_upper_percent = 60;
    options.taint_lower_percent = 40;
    options.slow_rate = 1;
    options.fast_rate = 2;
    options.grace = {kSoftS * 1000, kHardS * 1000};
    options.cool_down_ms = 300'000;
    problem_.sized.push_back(sizing);
  }

  SizeOptions& options() { return problem_.sized[0].of.options; }

  static FitPod Member(const std::string& name, int64_t milli_cpu) {
    FitPod pod = Replica(name, milli_cpu);
    pod.rules.node_selector = MakeLabels({{"pool", "a"}});
    return pod;
  }

  // Adds a node of the group, younger than those before.
  TestNode& AddNode(const std::string& name, std::vector<FitPod> pods = {}) {
    TestNode node{NodeOf(name, 1000), std::move(pods)};
    node.node.labels = {{"pool", "a"}};
    node.node.traits.created_s = kLoopNow - 10'000 + static_cast<int64_t>(nodes_.size());
    nodes_.push_back(std::move(node));
    ++problem_.groups[GroupIndex{0}].target;
    return nodes_.back();
  }
  TestNode& AddTainted(const std::string& name, int64_t for_s, std::vector<FitPod> pods = {}) {
    TestNode& node = AddNode(name, std::move(pods));
    node.node.taints = {{kRemovalTaint, std::to_string(kLoopNow - for_s), "NoSchedule"}};
    return node;
  }

  std::vector<std::string> Names(const std::vector<size_t>& nodes) const {
    std::vector<std::string> names;
    for (const size_t i : nodes) names.push_back(problem_.sized[0].gathered.facts.nodes[i].name);
    return names;
  }
  // Why a node stays.
  static DrainKeep KeptAt(const LoopPlan& plan, int32_t slot) {
    for (const DrainKeep& keep : plan.scale_down.keep) {
      if (keep.slot == Slot{slot}) return keep;
    }
    ADD_FAILURE() << "node " << slot << " does not stay";
    return {};
  }
};

// 3800m are requested of 4000m: ceil(3800 / 700) - 4 = 2 nodes more. They take what waits, also what is of no
// group, so that the cheaper one does not grow for it.
TEST_F(SizedGroupsTest, PodsThatWaitUseTheNodesThatUtilizationAsksFor) {
  problem_.decisions.scale_down = true;
  for (const char* const name : {"a", "b", "c", "d"}) AddNode(name, {Member(std::string("p-") + name, 800)});
  Pending(Member("w", 600), 1);
  Pending(Replica("v", 1000), 1);
  const LoopPlan plan = Plan();
  EXPECT_EQ(plan.sizes[0].reason, SizeReason::kAboveScaleUp);
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{.group = GroupIndex{0}, .for_utilization = 2}));
  EXPECT_THAT(plan.expected, UnorderedElementsAre(ExpectedPlace{0, 1, NodeIndex{-1}, GroupIndex{0}},
                                                  ExpectedPlace{1, 1, NodeIndex{-1}, GroupIndex{0}}));
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kGrowing);

  problem_.groups[GroupIndex{0}].target = 6;  // they are on their way
  const LoopPlan next = Plan();
  EXPECT_EQ(next.sizes[0].reason, SizeReason::kLocked);
  EXPECT_THAT(next.growth, IsEmpty());
  EXPECT_THAT(next.expected, SizeIs(2));
}

TEST_F(SizedGroupsTest, AllGroupsShareWhatMayBeAdded) {
  AddNode("a", {Member("p", 1000)});  // 100 %: ceil(1000 / 700) - 1 = 1
  Pending(Replica("v", 1000), 2);     // one of them on that node
  problem_.growth.max_new_nodes = 1;
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{.group = GroupIndex{0}, .for_utilization = 1}));
  problem_.sized[0].state = {};
  problem_.growth.max_new_nodes = 2;
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{.group = GroupIndex{0}, .for_utilization = 1},
                                         LoopGrowth{GroupIndex{1}, 1, 0}));
}

TEST_F(SizedGroupsTest, TheyComeFirstUnderTheMaximaOfTheCluster) {
  AddNode("a", {Member("p", 1000)});
  Pending(Replica("v", 1000), 2);  // one of them on the node that the group asks for
  problem_.maxima = {{.milli_cpu = 1'999}};
  LoopPlan plan = Plan();
  EXPECT_THAT(plan.growth, IsEmpty());
  EXPECT_EQ(plan.sizes[0].reason, SizeReason::kAtMaximum);
  problem_.sized[0].state = {};
  problem_.maxima = {{.milli_cpu = 2'000}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{.group = GroupIndex{0}, .for_utilization = 1}));
  problem_.sized[0].state = {};
  problem_.maxima = {{.milli_cpu = 3'000}};
  EXPECT_THAT(Plan().growth, ElementsAre(LoopGrowth{.group = GroupIndex{0}, .for_utilization = 1},
                                         LoopGrowth{GroupIndex{1}, 1, 0}));
}

TEST_F(SizedGroupsTest, NothingIsAskedForAGroupThatIsHeldOrWhereGrowthIsDecidedElsewhere) {
  AddNode("a", {Member("p", 1000)});
  Pending(Replica("v", 1000), 1);
  problem_.groups[GroupIndex{0}].blocked_reason = "back-off";
  LoopPlan plan = Plan();
  EXPECT_EQ(plan.sizes[0].ask_cloud, 0);
  EXPECT_FALSE(plan.sizes[0].next.locked_ms.has_value());
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));

  problem_.groups[GroupIndex{0}].blocked_reason.clear();
  problem_.decisions.scale_up = false;
  plan = Plan();
  EXPECT_EQ(plan.sizes[0].wanted, 1);
  EXPECT_EQ(plan.sizes[0].ask_cloud, 0);
  EXPECT_THAT(plan.growth, IsEmpty());
}

// Pods of 950m fit on a new node of either group. Of 950m on 1000m it is asked for none, within 100 %.
TEST_F(SizedGroupsTest, ASizedGroupGrowsForNoPodAndNoSlack) {
  options().scale_up_percent = 100;
  problem_.decisions.slack = true;
  AddNode("a", {Member("p", 950)});
  Pending(Replica("v", 950), 1);
  templates_[GroupIndex{1}].allocatable[0].second = 900;  // takes slack only
  const LoopPlan plan = Plan();
  EXPECT_THAT(plan.scale_up.unplaced, ElementsAre(1));
  for (const LoopGrowth& growth : plan.growth) EXPECT_EQ(growth.group, GroupIndex{1});
}

// 1600m are requested of 1000m: ceil(1600 / 700) - 1 = 2, of which the cloud has none left: b returns.
TEST_F(SizedGroupsTest, NodesThatLoseTheirTaintTakePods) {
  AddNode("a", {Member("p", 800)});
  AddTainted("b", 10);
  problem_.groups[GroupIndex{0}].max_nodes = 2;
  templates_[GroupIndex{1}].labels = {{"pool", "a"}};  // the other group would take it as well
  Pending(Member("w", 800), 1);
  const LoopPlan plan = Plan();
  EXPECT_THAT(Names(plan.sizes[0].untaint), ElementsAre("b"));
  EXPECT_THAT(plan.expected, ElementsAre(ExpectedPlace{0, 1, NodeIndex{1}}));
  EXPECT_THAT(plan.growth, IsEmpty());
}

// A node that is being deleted, or not of the group at the cloud, is no capacity; what is on its way is
// waited for.
TEST_F(SizedGroupsTest, OnlyNodesCountThatTheGroupHolds) {
  AddNode("a", {Member("p", 1000)});
  AddTainted("b", 700);
  drain_.deleting = {{.node = "b", .uid = "", .since_s = kLoopNow, .drain = false}};
  AddNode("starting").group.reset();
  const LoopPlan plan = Plan();  // the target is 3: a, b, and the one that starts
  EXPECT_EQ(plan.sizes[0].untainted, 1);
  EXPECT_EQ(plan.sizes[0].wanted, 1);
  EXPECT_EQ(plan.sizes[0].reason, SizeReason::kWaiting);
  EXPECT_THAT(plan.sizes[0].untaint, IsEmpty());
}

class SizedRemovalTest : public SizedGroupsTest {
 protected:
  SizedRemovalTest() { problem_.decisions.scale_down = true; }
};

// 1200m of 4000m are 30 %: two nodes are tainted, which leaves 60 %. That all of them hold less than half and
// their pods would fit on two does not count.
TEST_F(SizedRemovalTest, TheOldestAreTaintedAndNoneGoes) {
  for (const char* const name : {"d", "c", "b", "a"}) AddNode(name, {Member(std::string("p-") + name, 300)});
  LoopPlan plan = Plan();
  EXPECT_THAT(Names(plan.sizes[0].taint), ElementsAre("d", "c"));
  EXPECT_THAT(Removed(plan), IsEmpty());
  for (const int32_t slot : {0, 1, 2, 3}) {
    EXPECT_EQ(KeptAt(plan, slot).reason, NodeReason::kSizedByUtilization);
  }

  Pending(Replica("v", 1000), 1);  // the other group grows
  plan = Plan();
  EXPECT_EQ(plan.no_scale_down, NoScaleDown::kGrowing);
  EXPECT_THAT(plan.sizes[0].taint, IsEmpty());

  ClearPending();
  problem_.drain.doubt = "the view is stale";
  EXPECT_THAT(Plan().sizes[0].taint, IsEmpty());
  problem_.drain.doubt.clear();
  problem_.decisions.scale_down = false;
  EXPECT_THAT(Plan().sizes[0].taint, IsEmpty());
}

// b is empty and c past the hard period; d is neither, and e holds a pod that nobody would replace.
TEST_F(SizedRemovalTest, TaintedNodesGoAfterTheirGracePeriodAndTheirPodsMove) {
  AddNode("a", {Member("p", 200)});
  AddTainted("b", kSoftS + 1);
  AddTainted("c", kHardS + 1, {Member("q", 100)});
  AddTainted("d", kSoftS + 1, {Member("r", 100)});
  FitPod bare = Member("s", 100);
  bare.traits.owner.reset();
  AddTainted("e", kHardS + 1, {bare});
  problem_.scale_down.deletion.timers.unneeded_time_s = 600;  // they have waited already
  const LoopPlan plan = Plan();
  EXPECT_THAT(Removed(plan), UnorderedElementsAre("b", "c"));
  for (const DrainRemoval& removal : plan.scale_down.remove) {
    EXPECT_TRUE(removal.start);
    if (removal.slot != Slot{2}) continue;
    ASSERT_THAT(removal.moves(), SizeIs(1));
    EXPECT_EQ(removal.moves()[0].to, Slot{0});
  }
  EXPECT_EQ(KeptAt(plan, 3).reason, NodeReason::kSizedByUtilization);
  EXPECT_EQ(KeptAt(plan, 4).reason, NodeReason::kBlockedByPod);
  EXPECT_EQ(KeptAt(plan, 4).pod_reason, PodReason::kNotReplicated);
}

TEST_F(SizedRemovalTest, APodThatFitsNowhereElseKeepsItsNode) {
  AddNode("a", {Member("p", 500)});
  AddTainted("b", kHardS + 1, {Member("q", 501)});
  options().scale_up_percent = 200;
  const LoopPlan plan = Plan();
  EXPECT_THAT(Removed(plan), IsEmpty());
  EXPECT_EQ(KeptAt(plan, 1).reason, NodeReason::kNoPlaceToMovePods);
}

TEST_F(SizedRemovalTest, BothKindsOfRemovalsShareTheLimits) {
  AddNode("a", {Member("p", 500)});
  AddTainted("b", kHardS + 1, {Member("q", 100)});
  problem_.groups[GroupIndex{1}].target = 2;
  nodes_.push_back({NodeOf("x", 1000), {Replica("u", 100)}, GroupIndex{1}});
  nodes_.push_back({NodeOf("y", 1000), {Replica("v", 700)}, GroupIndex{1}});
  problem_.scale_down.deletion.max_drain_parallelism = 1;
  const LoopPlan plan = Plan();
  EXPECT_THAT(Removed(plan), UnorderedElementsAre("b", "x"));
  int starts = 0;
  for (const DrainRemoval& removal : plan.scale_down.remove) {
    starts += removal.start ? 1 : 0;
    EXPECT_EQ(removal.waits, removal.start ? NodeReason::kNone : NodeReason::kScaleDownThrottled);
  }
  EXPECT_EQ(starts, 1);
}

// Both a and b could be tainted; the pod of c moves to a, which is the first that takes it.
TEST_F(SizedRemovalTest, ANodeThatTakesPodsIsNotTaintedInTheSamePass) {
  options().fast_rate = 1;
  AddNode("a", {Member("p", 100)});
  AddNode("b", {Member("q", 100)});
  AddTainted("c", kSoftS + 1, {Member("r", 100)});
  LoopPlan plan = Plan();
  EXPECT_THAT(Names(plan.sizes[0].taint), ElementsAre("a")) << "c does not go yet";
  nodes_[2].node.taints[0].value = std::to_string(kLoopNow - kHardS - 1);
  drain_ = {};
  plan = Plan();
  ASSERT_THAT(Removed(plan), ElementsAre("c"));
  ASSERT_EQ(plan.scale_down.remove[0].moves()[0].to, Slot{0});
  EXPECT_THAT(plan.sizes[0].taint, IsEmpty());
}

TEST_F(SizedRemovalTest, ADryRunOnlySaysWhatWouldBeDone) {
  problem_.sized[0].dry_run = true;
  AddNode("a", {Member("p", 100)});
  AddNode("b");
  AddTainted("c", kHardS + 1);
  LoopPlan plan = Plan();
  EXPECT_THAT(Names(plan.sizes[0].taint), ElementsAre("a")) << "100m on one node are 10 %";
  EXPECT_THAT(Names(plan.sizes[0].remove), ElementsAre("c"));
  EXPECT_THAT(Removed(plan), IsEmpty());
  EXPECT_EQ(KeptAt(plan, 2).reason, NodeReason::kSizedByUtilization);

  nodes_.resize(1);
  nodes_[0].pods = {Member("p", 1000)};
  problem_.groups[GroupIndex{0}].target = 1;
  Pending(Replica("v", 1000), 1);
  plan = Plan();
  EXPECT_EQ(plan.sizes[0].ask_cloud, 1);
  EXPECT_THAT(plan.growth, ElementsAre(LoopGrowth{GroupIndex{1}, 1, 0}));
}

}  // namespace
}  // namespace loadline
