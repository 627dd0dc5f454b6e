#include "core/size/size_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "core/size/free_room.h"
#include "core/size/membership.h"
#include "test/core/size/naive_usage.h"
#include "test/core/size/pass_time.h"
#include "test/testing/group_simulation.h"

namespace loadline {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Nodes of 1000m and 1 GiB; grows above 70 %, shrinks by 1 below 60 % and by 4 below 40 %.
GroupSimulation Group(SizeMode mode, int64_t nodes, int64_t cpu_requests) {
  GroupSimulation group;
  SizeOptions& options = group.options;
  options.mode = mode;
  options.max_nodes = options.cloud_max = 100;
  options.scale_up_percent = 70;
  options.taint_upper_percent = 60;
  options.taint_lower_percent = 40;
  options.slow_rate = 1;
  options.fast_rate = 4;
  options.grace = {kMinute, 10 * kMinute};
  group.node_size = {1000, kGiB};
  group.AddNodes(nodes, NodeClass::kUntainted, kPassTime - 60 * kMinute);
  group.facts.requests.cpu = cpu_requests;
  group.facts.pods = cpu_requests > 0 ? 10 : 0;
  return group;
}

struct ThresholdCase {
  std::string name;
  int64_t cpu_requests;  // on 10 nodes of 1000m
  SizeAction action;
  int64_t delta;
};
class ThresholdTest : public ::testing::TestWithParam<ThresholdCase> {};

TEST_P(ThresholdTest, BothModes) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    SizeDecision decision = Group(mode, 10, GetParam().cpu_requests).Pass(kPassTime);
    EXPECT_EQ(decision.action, GetParam().action) << Name(decision.reason);
    EXPECT_EQ(decision.delta, GetParam().delta) << Name(decision.reason);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, ThresholdTest,
                         ::testing::ValuesIn(std::vector<ThresholdCase>{
                             {"AboveScaleUp", 7001, SizeAction::kScaleUp, 1},
                             {"ExactlyAtScaleUp", 7000, SizeAction::kNothing, 0},
                             {"ExactlyAtTaintUpper", 6000, SizeAction::kNothing, 0},
                             {"BelowTaintUpper", 5999, SizeAction::kRemoveSlowly, -1},
                             {"ExactlyAtTaintLower", 4000, SizeAction::kRemoveSlowly, -1},
                             {"BelowTaintLower", 3999, SizeAction::kRemoveFast, -4},
                         }),
                         [](const auto& info) { return info.param.name; });

// How many of 50 passes, a minute apart and at constant demand, wanted to change anything.
int Actions(GroupSimulation group) {
  int actions = 0;
  for (int pass = 0; pass < 50; ++pass) {
    SizeDecision decision = group.Pass(kPassTime + pass * kMinute);
    const bool acted = decision.ask_cloud > 0 || !decision.untaint.empty() || !decision.taint.empty() ||
                       !decision.remove.empty() || !decision.taint_unhealthy.empty();
    actions += acted ? 1 : 0;
  }
  return actions;
}

// 64 % of 10 nodes: two fewer are 80 %, which wants them back.
GroupSimulation ShrinkingDenominator(SizeMode mode) {
  GroupSimulation group = Group(mode, 10, 6400);
  group.options.taint_upper_percent = 65;
  group.options.slow_rate = 2;
  return group;
}

// 2 of 5 nodes are cordoned, and so fewer than the minimum are untainted; what is asked for takes its time.
GroupSimulation CordonedBelowMinimum(SizeMode mode) {
  GroupSimulation group = Group(mode, 3, 1900);
  group.AddNodes(2, NodeClass::kCordoned, kPassTime - 60 * kMinute);
  group.options.min_nodes = group.options.cloud_min = 5;
  group.nodes_arrive = false;
  return group;
}

// 90 % at the maximum, which the cloud does not know.
GroupSimulation CloudHasRoomBeyondMaximum(SizeMode mode) {
  GroupSimulation group = Group(mode, 10, 9000);
  group.options.max_nodes = 10;
  group.options.cloud_max = 20;
  return group;
}

TEST(SizeGroupTest, CompatGoesRoundInCircles) {
  EXPECT_EQ(Actions(ShrinkingDenominator(SizeMode::kCompat)), 50);
  EXPECT_GT(Actions(CordonedBelowMinimum(SizeMode::kCompat)), 1);
  EXPECT_EQ(Actions(CloudHasRoomBeyondMaximum(SizeMode::kCompat)), 50);
}

TEST(SizeGroupTest, DefaultActsAtMostOnceAtConstantDemand) {
  EXPECT_EQ(Actions(ShrinkingDenominator(SizeMode::kDefault)), 0);
  EXPECT_EQ(Actions(CordonedBelowMinimum(SizeMode::kDefault)), 1);
  EXPECT_EQ(Actions(CloudHasRoomBeyondMaximum(SizeMode::kDefault)), 0);
}

// Random groups of equal nodes: growth is just enough, bounds are kept, and the group rests in the end.
TEST(SizeGroupTest, DefaultComesToRest) {
  std::mt19937_64 random(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int grew = 0, shrank = 0;
  for (int i = 0; i < 10'000; ++i) {
    GroupSimulation group = Group(SizeMode::kDefault, 0, 0);
    SizeOptions& options = group.options;
    options.scale_up_percent = static_cast<int32_t>(pick(3, 110));
    options.taint_upper_percent = static_cast<int32_t>(pick(2, options.scale_up_percent - 1));
    options.taint_lower_percent = static_cast<int32_t>(pick(1, options.taint_upper_percent - 1));
    options.fast_rate = pick(0, 6);
    options.slow_rate = pick(0, options.fast_rate);
    options.min_nodes = options.cloud_min = pick(0, 5);
    options.max_nodes = pick(options.min_nodes, 60);
    options.cloud_max = options.max_nodes + pick(0, 5);
    group.node_size = {pick(1, 16) * 500, pick(1, 16) * kGiB};
    group.AddNodes(pick(0, 20), NodeClass::kUntainted, kPassTime - 60 * kMinute);
    group.AddNodes(pick(0, 3), NodeClass::kTainted, kPassTime - pick(0, 3) * kMinute);
    group.AddNodes(pick(0, 2), NodeClass::kCordoned, kPassTime - 60 * kMinute);
    group.facts.requests = {pick(0, 30) * pick(0, 1000), pick(0, 30) * kGiB};
    group.facts.pods = pick(1, 50);

    const int64_t untainted = group.Count(NodeClass::kUntainted);
    const SizeDecision first = group.Pass(kPassTime);
    if (first.action == SizeAction::kScaleUp && first.delta == first.wanted &&
        first.reason != SizeReason::kBelowMinimum && first.usage_after.has_value() && untainted > 0) {
      ++grew;
      const auto above = [&](int64_t nodes) {
        return ExceedsPercent(group.facts.requests, group.node_size, nodes, options.scale_up_percent);
      };
      EXPECT_FALSE(above(untainted + first.delta));
      EXPECT_TRUE(above(untainted + first.delta - 1));
    }
    if (first.delta < 0 && untainted <= options.max_nodes) {
      ++shrank;
      EXPECT_FALSE(ExceedsPercent(group.facts.requests, group.node_size, untainted + first.delta,
                                  options.scale_up_percent));
      EXPECT_GE(untainted + first.delta, options.min_nodes);
    }
    // A pass that grows is followed by none that shrinks, nor the other way round.
    bool went_up = first.delta > 0, went_down = first.delta < 0;
    SizeDecision last;
    for (int pass = 1; pass < 40; ++pass) {
      last = group.Pass(kPassTime + pass * kMinute);
      went_up |= last.delta > 0;
      went_down |= last.delta < 0;
      EXPECT_LE(group.Count(NodeClass::kUntainted), std::max(untainted, options.max_nodes));
    }
    EXPECT_EQ(last.delta, 0) << Name(last.reason);
    // From zero without a known size the first node may be one too many.
    EXPECT_FALSE(went_up && went_down && untainted > 0 && untainted <= options.max_nodes);
  }
  EXPECT_GT(grew, 1000);
  EXPECT_GT(shrank, 1000);
}

TEST(SizeGroupTest, BelowMinimum) {
  GroupSimulation compat = Group(SizeMode::kCompat, 3, 1900);
  compat.options.min_nodes = compat.options.cloud_min = 5;
  const SizeDecision gives_up = compat.Pass(kPassTime);
  EXPECT_EQ(gives_up.reason, SizeReason::kFewerThanMinimum);
  EXPECT_EQ(gives_up.ask_cloud, 0);

  GroupSimulation grows = Group(SizeMode::kDefault, 3, 1900);
  grows.options.min_nodes = grows.options.cloud_min = 5;
  SizeDecision decision = grows.Pass(kPassTime);
  EXPECT_EQ(decision.action, SizeAction::kScaleUp);
  EXPECT_EQ(decision.reason, SizeReason::kBelowMinimum);
  EXPECT_EQ(decision.ask_cloud, 2);
}

TEST(SizeGroupTest, PodsThatRequestNothingGetAFirstNode) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 0, 0);
    group.facts.pods = 3;
    SizeDecision decision = group.Pass(kPassTime);
    EXPECT_EQ(decision.ask_cloud, mode == SizeMode::kDefault ? 1 : 0);  // Escalator lets them wait for ever
  }
}

TEST(SizeGroupTest, CoolDownEndsExactlyAfterThePeriod) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 10, 8000);
    group.options.cool_down_ms = 2 * kMinute;
    group.facts.cloud_target = 10;
    const SizeDecision first = group.Pass(kPassTime);
    EXPECT_EQ(first.ask_cloud, 2);  // ceil(8000 / 700) - 10
    group.facts.requests.cpu = 20'000;
    const SizeDecision locked = group.Pass(kPassTime + 2 * kMinute - 1);
    EXPECT_EQ(locked.reason, SizeReason::kLocked);
    EXPECT_EQ(locked.ask_cloud, 0);
    EXPECT_EQ(locked.delta, mode == SizeMode::kCompat ? 2 : 0);  // Escalator returns what it asked for last
    EXPECT_EQ(group.Pass(kPassTime + 2 * kMinute).reason, SizeReason::kAboveScaleUp);
  }
}

TEST(SizeGroupTest, UntaintsTheNewestBeforeItBuys) {
  GroupSimulation group = Group(SizeMode::kDefault, 2, 3400);  // 5 nodes are 68 %
  group.AddNodes(1, NodeClass::kTainted, kPassTime - 5 * kMinute);
  group.AddNodes(1, NodeClass::kTainted, kPassTime - 3 * kMinute);
  SizeDecision decision = group.Pass(kPassTime);
  EXPECT_EQ(decision.delta, 3);
  EXPECT_EQ(decision.untaint, (std::vector<size_t>{3, 2}));
  EXPECT_EQ(decision.ask_cloud, 1);
}

TEST(SizeGroupTest, GraceOfTaintedNodesIsStrict) {
  const GracePeriods grace{kMinute, 10 * kMinute};
  GroupNode node;
  node.tainted_ms = kPassTime;
  node.empty = true;
  EXPECT_FALSE(MayBeDeleted(node, grace, kPassTime + kMinute));
  EXPECT_TRUE(MayBeDeleted(node, grace, kPassTime + kMinute + 1));
  node.empty = false;
  EXPECT_FALSE(MayBeDeleted(node, grace, kPassTime + 10 * kMinute));
  EXPECT_TRUE(MayBeDeleted(node, grace, kPassTime + 10 * kMinute + 1));
  node.deletion_forbidden = true;
  EXPECT_FALSE(MayBeDeleted(node, grace, kPassTime + 100 * kMinute));
  node.deletion_forbidden = false;
  node.tainted_ms.reset();
  EXPECT_FALSE(MayBeDeleted(node, grace, kPassTime + 100 * kMinute));
}

TEST(SizeGroupTest, DeletionsEndAtTheMinimumOfTheCloud) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 3, 2000);
    group.AddNodes(3, NodeClass::kTainted, kPassTime - 20 * kMinute);
    group.options.min_nodes = 3;
    group.options.cloud_min = 4;
    // Ours cuts the batch, Escalator's cloud refuses it.
    EXPECT_EQ(group.Pass(kPassTime).remove.size(), mode == SizeMode::kDefault ? 2u : 0u);
  }
}

TEST(SizeGroupTest, UnhealthyGroupOnlyLosesUnhealthyNodes) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 4, 3000);
    group.AddNodes(2, NodeClass::kTainted, kPassTime - 60 * kMinute);
    group.facts.nodes[5].ready = false;
    group.facts.nodes[0].ready = false;
    group.options.health = {.grace_ms = 10 * kMinute, .newest_percent = 100, .max_unhealthy_percent = 32};
    SizeDecision decision = group.Pass(kPassTime);  // 2 of 6 are 33 %
    EXPECT_EQ(decision.reason, SizeReason::kUnhealthy);
    EXPECT_EQ(decision.delta, 0);
    EXPECT_EQ(decision.taint_unhealthy, std::vector<size_t>{0});
    EXPECT_EQ(decision.remove, std::vector<size_t>{5});
  }
}

TEST(SizeGroupTest, ReplacesAnOldNodeAtTheMinimum) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 3, 1950);
    group.options.min_nodes = 3;
    group.options.max_node_age_ms = 60 * kMinute;
    EXPECT_EQ(group.Pass(kPassTime).delta, 0);  // exactly as old is not older
    SizeDecision decision = group.Pass(kPassTime + 1);
    EXPECT_EQ(decision.reason, SizeReason::kNodeTooOld);
    EXPECT_EQ(decision.delta, 1);
  }
}

TEST(SizeGroupTest, DaemonSetsComeOffTheCapacityByDefault) {
  GroupSimulation group = Group(SizeMode::kDefault, 10, 6500);
  for (GroupNode& node : group.facts.nodes) node.daemons = {100, 0};
  const SizeDecision subtracted = group.Pass(kPassTime);  // 6500 / 9000 is 72.2 %
  EXPECT_EQ(subtracted.capacity.cpu, 9000);
  EXPECT_EQ(subtracted.delta, 1);  // 6500 / 9900 is 65.7 %
  EXPECT_FALSE(subtracted.daemons_crowd);
  for (GroupNode& node : group.facts.nodes) node.daemons = {301, 0};
  EXPECT_TRUE(group.Pass(kPassTime).daemons_crowd);  // more than the 30 % that the threshold leaves
}

TEST(SizeGroupTest, StarvingIsJudgedOnOnePodAndOneNode) {
  FreeRoom room;
  EXPECT_FALSE(room.Fits({0, 0}));  // there is no node
  room.AddNode({900, 1});
  room.AddNode({100, 9});
  EXPECT_TRUE(room.Fits({900, 1}));
  EXPECT_TRUE(room.Fits({50, 9}));
  EXPECT_FALSE(room.Fits({800, 8}));
  EXPECT_FALSE(room.ShippedStarved({800, 8}));  // Escalator mixes the two nodes
  EXPECT_TRUE(room.ShippedStarved({901, 1}));
}

TEST(SizeGroupTest, RandomRoomFitsWhereSomeNodeDoes) {
  std::mt19937_64 random(3);
  const auto pick = [&](int64_t high) { return std::uniform_int_distribution<int64_t>(0, high)(random); };
  for (int round = 0; round < 1000; ++round) {
    FreeRoom room;
    std::vector<CpuMemory> nodes(static_cast<size_t>(pick(12)));
    for (CpuMemory& node : nodes) room.AddNode(node = {pick(9), pick(9)});
    for (int question = 0; question < 20; ++question) {
      const CpuMemory pod{pick(9), pick(9)};
      EXPECT_EQ(room.Fits(pod), std::any_of(nodes.begin(), nodes.end(),
                                            [&](const CpuMemory& node) { return Within(pod, node); }));
    }
  }
}

TEST(MembershipTest, OneOfTheLabelsAndNoContradiction) {
  const GroupSelector group{.labels = Labels({{"pool", "a"}, {"zone", "z1"}})};
  const auto member = [&](std::vector<Label> selector) {
    PodRules rules;
    rules.node_selector = Labels(std::move(selector));
    return IsMember({.rules = &rules}, group);
  };
  EXPECT_TRUE(member({{"pool", "a"}}));
  EXPECT_TRUE(member({{"pool", "a"}, {"disk", "ssd"}}));
  EXPECT_FALSE(member({{"pool", "a"}, {"zone", "z2"}}));
  EXPECT_FALSE(member({{"disk", "ssd"}}));
  EXPECT_FALSE(member({}));
  EXPECT_FALSE(IsMember({}, group));
}

TEST(MembershipTest, CatchAllTakesPodsThatAskForNothing) {
  GroupSelector group;
  group.catch_all = true;
  EXPECT_TRUE(IsMember({}, group));
  EXPECT_FALSE(IsMember({.states_affinity = true}, group));  // also with pod anti-affinity only
  EXPECT_FALSE(IsMember({.of_daemon_set = true}, group));
  EXPECT_FALSE(IsMember({.static_pod = true}, group));
}

// 90 % of ten nodes: three more. Nothing follows unless the target says so.
TEST(SizeGroupTest, TheCoolDownStartsWhenTheCloudTookTheGrowth) {
  for (const SizeMode mode : {SizeMode::kDefault, SizeMode::kCompat}) {
    GroupSimulation group = Group(mode, 10, 9000);
    group.options.cool_down_ms = 10 * kMinute;
    GroupState state;
    const auto pass = [&](int64_t minute, std::optional<int64_t> target) {
      group.facts.cloud_target = target;
      SizeDecision decision = SizeGroup(group.options, group.facts, state, kPassTime + minute * kMinute);
      state = decision.next;
      return decision;
    };
    EXPECT_EQ(pass(0, 10).ask_cloud, 3);
    EXPECT_FALSE(state.locked_ms.has_value());
    // The cloud refused, or nobody asked it.
    for (int64_t minute = 1; minute < 5; ++minute) {
      const SizeDecision again = pass(minute, 10);
      EXPECT_EQ(again.reason, SizeReason::kAboveScaleUp);
      EXPECT_EQ(again.ask_cloud, 3);
      EXPECT_FALSE(state.locked_ms.has_value());
    }
    // The nodes that were asked for in minute 4 were taken.
    EXPECT_EQ(pass(5, 13).reason, SizeReason::kLocked);
    EXPECT_EQ(state.locked_ms, kPassTime + 4 * kMinute);
    EXPECT_EQ(pass(13, 13).reason, SizeReason::kLocked);
    EXPECT_NE(pass(14, 13).reason, SizeReason::kLocked);
  }
}

// The target of the cloud is not known: the nodes count as asked for at once, and are waited for so long.
TEST(SizeGroupTest, NodesThatDoNotComeAreNotWaitedForForEver) {
  for (const int64_t cool_down : {10 * kMinute, 20 * kMinute}) {
    GroupSimulation group = Group(SizeMode::kDefault, 10, 9000);
    group.options.cool_down_ms = cool_down;
    GroupState state;
    const auto pass = [&](int64_t ms) {
      SizeDecision decision = SizeGroup(group.options, group.facts, state, kPassTime + ms);
      state = decision.next;
      return decision;
    };
    group.facts.cloud_target.reset();
    EXPECT_EQ(pass(0).ask_cloud, 3);
    EXPECT_EQ(state.expected, 13);
    EXPECT_EQ(pass(cool_down - 1).reason, SizeReason::kLocked);
    const int64_t end = std::max(15 * kMinute, cool_down);
    if (end > cool_down) {
      EXPECT_EQ(pass(end - 1).reason, SizeReason::kWaiting);
    }
    EXPECT_EQ(pass(end).ask_cloud, 3);
  }
}

}  // namespace
}  // namespace loadline
