#include "core/expand/estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fit/pod_fit.h"
#include "core/fit/trial_memory.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;

FitPod Plain(int64_t milli_cpu, int64_t memory = 1) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", memory}}};
}

FitPod Labeled(int64_t milli_cpu, const std::string& app) {
  FitPod pod = Plain(milli_cpu);
  pod.labels = {{"app", app}};
  return pod;
}

FitPod Spread(int64_t milli_cpu, const std::string& app, const std::string& key, int32_t max_skew,
              int32_t min_domains = 1) {
  FitPod pod = Labeled(milli_cpu, app);
  pod.rules.has_spread = true;
  pod.rules.spread = {{.max_skew = max_skew,
                       .topology_key = key,
                       .selector = Select("app", app),
                       .min_domains = min_domains}};
  return pod;
}

FitPod Alone(int64_t milli_cpu, const std::string& app) {
  FitPod pod = Labeled(milli_cpu, app);
  pod.rules.anti_affinity = {Term(Select("app", app), kHostnameLabel)};
  return pod;
}

FitNode EmptyNode(int64_t milli_cpu, int64_t memory = 1'000'000, int64_t pods = 110) {
  return {.name = "new", .allocatable = {{"cpu", milli_cpu}, {"memory", memory}, {"pods", pods}}};
}

// A question, its answer, and the snapshot that it was asked of.
class EstimateTest : public ::testing::Test {
 protected:
  void Add(const FitPod& pod, int64_t count) { pods_.push_back({cluster_.Incoming(pod), count}); }

  NodeEstimate Ask(const FitNode& node, EstimateMode mode = EstimateMode::kExact,
                   NodeLimit max_nodes = std::nullopt) {
    const NodeGroup shape{.name = node.name, .model = NodeModel{cluster_.Shape(node)}};
    std::vector<PendingPods> pods = pods_;
    for (PendingPods& entry : pods) entry.pod.names = cluster_.names();
    for (IncomingPod& pod : daemons_) pod.names = cluster_.names();
    Snapshot snapshot(cluster_.state());
    WorkBudget budget;
    Estimator estimator(&snapshot, &options_, std::move(pods), daemons_, &budget, mode);
    const NodeThreshold limit{.max_nodes = max_nodes};
    snapshot.Topology(kHostnameLabel);  // it follows from now on
    NodeEstimate first = estimator.Estimate(shape, NodeLimiter({&limit, 1}), &budget);
    const int32_t hostnames = snapshot.Topology(kHostnameLabel).domain_end();
    // Nothing is left behind, so the same question has the same answer.
    const NodeEstimate again = estimator.Estimate(shape, NodeLimiter({&limit, 1}), &budget);
    EXPECT_EQ(first.nodes, again.nodes);
    EXPECT_EQ(first.placed, again.placed);
    EXPECT_EQ(first.runs, again.runs);
    EXPECT_EQ(snapshot.Topology(kHostnameLabel).domain_end(), hostnames) << "trials share their names";
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(cluster_.state().node_count()));
    return first;
  }

  // Returns what a further node refuses, as "position filter", with "*" and the daemon where only daemons are
  // in the way.
  std::vector<std::string> Refused(const FitNode& node, NodeLimit max_nodes = std::nullopt) {
    const NodeGroup shape{.name = node.name, .model = NodeModel{cluster_.Shape(node)}};
    std::vector<PendingPods> pods = pods_;
    for (PendingPods& entry : pods) entry.pod.names = cluster_.names();
    for (IncomingPod& pod : daemons_) pod.names = cluster_.names();
    Snapshot snapshot(cluster_.state());
    WorkBudget budget;
    Estimator estimator(&snapshot, &options_, std::move(pods), daemons_, &budget);
    const NodeThreshold limit{.max_nodes = max_nodes};
    std::vector<PodRefusal> refusals;
    estimator.Estimate(shape, NodeLimiter({&limit, 1}), &budget, &refusals);
    EXPECT_EQ(snapshot.node_end(), static_cast<int32_t>(cluster_.state().node_count()));
    std::vector<std::string> reported;
    for (const PodRefusal& refusal : refusals) {
      reported.push_back(absl::StrCat(refusal.pods, " ", static_cast<int>(refusal.verdict.filter),
                                      refusal.daemons_in_the_way ? "*" : "", refusal.daemon));
      last_ = TextOf(refusal);
    }
    return reported;
  }

  FitCluster cluster_;
  FitOptions options_;
  std::vector<PendingPods> pods_;
  std::vector<IncomingPod> daemons_;
  std::string last_;  // the text of the last refusal
};

TEST_F(EstimateTest, ExactFitAndOneUnitShort) {
  Add(Plain(500), 4);
  EXPECT_EQ(Ask(EmptyNode(2000)).nodes, 1);
  EXPECT_EQ(Ask(EmptyNode(1999)).nodes, 2);
  EXPECT_EQ(Ask(EmptyNode(500)).nodes, 4);
  EXPECT_EQ(Ask(EmptyNode(499)).nodes, 0);
  EXPECT_EQ(Ask(EmptyNode(499)).end, EstimateEnd::kComplete);
}

TEST_F(EstimateTest, NothingWaits) {
  Add(Plain(500), 0);
  const NodeEstimate estimate = Ask(EmptyNode(2000));
  EXPECT_EQ(estimate.nodes, 0);
  EXPECT_EQ(estimate.pods, 0);
  pods_.clear();
  EXPECT_EQ(Ask(EmptyNode(2000)).nodes, 0);
}

TEST_F(EstimateTest, PodsWithoutRequestsTakeSlots) {
  Add(FitPod{}, 25);
  EXPECT_EQ(Ask(EmptyNode(2000, 10, /*pods=*/10)).nodes, 3);
}

TEST_F(EstimateTest, SmallPodsFillWhatLargeOnesLeave) {
  Add(Plain(300), 3);
  Add(Plain(700), 2);
  const NodeEstimate estimate = Ask(EmptyNode(1000));
  EXPECT_EQ(estimate.nodes, 3);
  EXPECT_THAT(estimate.placed, ElementsAre(3, 2));
  // Two nodes with one pod of each, and one with what is left.
  EXPECT_EQ(estimate.runs.size(), 2U);
}

TEST_F(EstimateTest, DaemonsTakeTheirPartOfEachNode) {
  Add(Plain(900), 3);
  EXPECT_EQ(Ask(EmptyNode(1800)).nodes, 2);
  daemons_.push_back(cluster_.Incoming(Plain(100)));
  EXPECT_EQ(Ask(EmptyNode(1800)).nodes, 3);
  EXPECT_EQ(Ask(EmptyNode(1900)).nodes, 2);
  // One that does not run on such nodes takes nothing.
  FitPod elsewhere = Plain(900);
  elsewhere.rules.node_selector = Labels(std::vector<Label>{{"pool", "other"}});
  daemons_ = {cluster_.Incoming(elsewhere)};
  EXPECT_EQ(Ask(EmptyNode(1800)).nodes, 2);
}

TEST_F(EstimateTest, TheLimitCutsNodesAndPods) {
  Add(Plain(500), 10);
  const NodeEstimate estimate = Ask(EmptyNode(1000), EstimateMode::kExact, 3);
  EXPECT_EQ(estimate.nodes, 3);
  EXPECT_EQ(estimate.pods, 6);
  EXPECT_EQ(estimate.end, EstimateEnd::kNodeLimit);
  EXPECT_EQ(Ask(EmptyNode(1000), EstimateMode::kExact, -1).nodes, 0);
}

TEST_F(EstimateTest, SelectorsAndTaintsKeepPodsAway) {
  FitPod chooser = Plain(100);
  chooser.rules.node_selector = Labels(std::vector<Label>{{"pool", "gpu"}});
  Add(chooser, 5);
  Add(Plain(100), 5);
  FitNode node = EmptyNode(1000);
  EXPECT_THAT(Ask(node).placed, ElementsAre(0, 5));
  node.labels = {{"pool", "gpu"}};
  EXPECT_THAT(Ask(node).placed, ElementsAre(5, 5));
  node.taints = {{"gpu", "yes", "NoSchedule"}};
  EXPECT_THAT(Ask(node).placed, ElementsAre(0, 0));
}

TEST_F(EstimateTest, OnePerHost) {
  Add(Alone(100, "db"), 7);
  EXPECT_EQ(Ask(EmptyNode(1000)).nodes, 7);
  Add(Plain(900), 7);
  EXPECT_EQ(Ask(EmptyNode(1000)).nodes, 7);
}

TEST_F(EstimateTest, HostPorts) {
  FitPod pod = Plain(100);
  pod.rules.host_ports = {{8080, "TCP", "0.0.0.0"}};
  Add(pod, 4);
  EXPECT_EQ(Ask(EmptyNode(1000)).nodes, 4);
}

TEST_F(EstimateTest, PendingPodsKeepEachOtherAway) {
  FitPod loner = Labeled(100, "loner");
  loner.rules.anti_affinity = {Term(Select("app", "noisy"), kHostnameLabel)};
  Add(loner, 2);
  Add(Labeled(200, "noisy"), 2);
  // Both kinds fit on one node by room.
  EXPECT_EQ(Ask(EmptyNode(1000)).nodes, 2);
}

// The old node has to take its part before the new ones may take more.
TEST_F(EstimateTest, SpreadingOverHostsUsesTheOldNodeToo) {
  cluster_.Add({.name = "old", .allocatable = {{"cpu", 100}, {"memory", 1'000'000}, {"pods", 10}}});
  Add(Spread(20, "web", kHostnameLabel, 1, 3), 12);
  const NodeEstimate exact = Ask(EmptyNode(1000));
  EXPECT_EQ(exact.nodes, 2);
  EXPECT_EQ(exact.pods, 12);
  int64_t on_old = 0;
  for (const ExistingUse& use : exact.existing) on_old += use.pods.count;
  EXPECT_EQ(on_old, 4);
  // Cluster Autoscaler counts the old node as one more.
  EXPECT_EQ(Ask(EmptyNode(1000), EstimateMode::kClusterAutoscaler).nodes, 3);
}

TEST_F(EstimateTest, OneZoneTakesNoMoreThanItsSkew) {
  FitNode old{.name = "old",
              .allocatable = {{"cpu", 10}, {"memory", 1'000'000}, {"pods", 10}},
              .labels = {{kZone, "a"}}};
  cluster_.Add(old);
  Add(Spread(20, "web", kZone, 2), 9);
  FitNode node = EmptyNode(1000);
  node.labels = {{kZone, "b"}};
  const NodeEstimate estimate = Ask(node);
  EXPECT_EQ(estimate.nodes, 1);
  EXPECT_EQ(estimate.pods, 2);
}

TEST_F(EstimateTest, TheBudgetEndsIt) {
  for (int64_t i = 1; i <= 50; ++i) Add(Alone(10 + i, "app-" + std::to_string(i)), 20);
  const NodeGroup node{.name = "new", .model = NodeModel{cluster_.Shape(EmptyNode(1000))}};
  for (PendingPods& entry : pods_) entry.pod.names = cluster_.names();
  Snapshot snapshot(cluster_.state());
  WorkBudget to_prepare;
  Estimator estimator(&snapshot, &options_, pods_, {}, &to_prepare);
  // 50 kinds are put in order, four for a unit. The first 20 pods need a node each, which is looked at;
  // another 100 find room on these, and each looks at one of them.
  WorkBudget budget(13 + 20 * (TrialMemory::kNodeUnits + 2) + 2 * 100);
  const NodeEstimate estimate = estimator.Estimate(node, NodeLimiter(), &budget);
  EXPECT_EQ(estimate.end, EstimateEnd::kBudget);
  EXPECT_GE(estimate.pods, 50);
  EXPECT_LE(estimate.pods, 121);
}

TEST_F(EstimateTest, ExistingRoomIsUsedFirst) {
  cluster_.Add({.name = "a", .allocatable = {{"cpu", 1000}, {"memory", 1'000'000}, {"pods", 10}}});
  cluster_.Add({.name = "b", .allocatable = {{"cpu", 500}, {"memory", 1'000'000}, {"pods", 10}}});
  Add(Plain(400), 5);
  Snapshot snapshot(cluster_.state());
  WorkBudget budget;
  Estimator estimator(&snapshot, &options_, pods_, {}, &budget);
  const std::vector<ExistingUse> uses = estimator.UseExistingRoom(&budget);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(snapshot.name(uses[0].node), "a");
  EXPECT_EQ(uses[0].pods, (PodCount{0, 2}));
  EXPECT_EQ(uses[1].pods, (PodCount{0, 1}));
  EXPECT_EQ(estimator.pods()[0].count, 2);
}

// Random pods without constraints: counting and placing agree, and no node takes more than it has.
RC_GTEST_PROP(EstimateProperty, CountingIsPlacing, ()) {
  FitCluster cluster;
  std::vector<PendingPods> pods;
  const int kinds = *rc::gen::inRange(1, 8);
  for (int i = 0; i < kinds; ++i) {
    const FitPod pod = Plain(*rc::gen::inRange(0, 1200), *rc::gen::inRange(0, 1200));
    pods.push_back({cluster.Incoming(pod), *rc::gen::inRange(0, 60)});
  }
  const NodeGroup node{.name = "new",
                       .model = NodeModel{cluster.Shape(EmptyNode(1000, 1000, *rc::gen::inRange(1, 12)))}};
  for (PendingPods& entry : pods) entry.pod.names = cluster.names();
  // A pod that nobody waits for and that keeps its like away: the others still need only room, but now all of
  // them are placed in the snapshot.
  std::vector<PendingPods> placed = pods;
  placed.push_back({cluster.Incoming(Alone(1, "ghost")), 0});
  const NodeThreshold limit{.max_nodes = ReadNodeLimit(*rc::gen::inRange(0, 30))};
  const auto ask = [&](std::vector<PendingPods> asked, EstimateMode mode) {
    Snapshot snapshot(cluster.state());
    const FitOptions options;
    WorkBudget budget;
    Estimator estimator(&snapshot, &options, std::move(asked), {}, &budget, mode);
    return estimator.Estimate(node, NodeLimiter({&limit, 1}), &budget);
  };
  for (const EstimateMode mode : {EstimateMode::kExact, EstimateMode::kClusterAutoscaler}) {
    const NodeEstimate counted = ask(pods, mode);
    NodeEstimate simulated = ask(placed, mode);
    simulated.placed.pop_back();
    RC_ASSERT(counted.nodes == simulated.nodes);
    RC_ASSERT(counted.placed == simulated.placed);
  }
  const NodeEstimate exact = ask(pods, EstimateMode::kExact);
  for (const NodeRun& run : exact.runs) {
    int64_t cpu = 0, memory = 0, slots = 0;
    for (const PodCount& entry : run.pods) {
      const ResourceAmounts& request = pods[static_cast<size_t>(entry.pods)].pod.shape.requests;
      cpu += request.Get(kCpu) * entry.count;
      memory += request.Get(kMemory) * entry.count;
      slots += entry.count;
    }
    RC_ASSERT(cpu <= 1000 && memory <= 1000);
    RC_ASSERT(slots <= node.model->shape.allocatable.Get(*cluster.names().Find("pods")));
  }
  // Our reading never needs more nodes for as many pods.
  const NodeEstimate theirs = ask(pods, EstimateMode::kClusterAutoscaler);
  RC_ASSERT(exact.pods >= theirs.pods);
  if (exact.pods == theirs.pods) RC_ASSERT(exact.nodes <= theirs.nodes);
}

// Nodes of 1000m carry daemons of 150m and 50m: 800m are a fit, 801m are none for want of the second 50m, and
// 851m for want of the 150m; 1001m fit no node. What only the limit keeps out is not refused.
TEST_F(EstimateTest, ToldIsWhatAFurtherNodeRefusesAndWhichDaemonIsInTheWay) {
  for (const auto& [name, cpu] : {std::pair{"logs", 150}, std::pair{"agent", 50}}) {
    daemons_.push_back(cluster_.Incoming(Plain(cpu)));
    daemons_.back().name = name;
  }
  Add(Plain(800), 2);
  Add(Plain(801), 1);
  Add(Plain(851), 1);
  Add(Plain(1'001), 1);
  FitPod selective = Plain(1);
  selective.rules.node_selector = MakeLabels({{"pool", "other"}});
  Add(selective, 1);
  const int room = static_cast<int>(FilterName::kNodeResourcesFit);
  const int affinity = static_cast<int>(FilterName::kNodeAffinity);
  EXPECT_THAT(
      Refused(EmptyNode(1000), 1),
      ElementsAre(absl::StrCat("1 ", room, "*default/agent"), absl::StrCat("2 ", room, "*default/logs"),
                  absl::StrCat("3 ", room), absl::StrCat("4 ", affinity)));
}

// A node of 1000m without its daemon has room for the pod, and yet not the pod that it must run beside.
TEST_F(EstimateTest, ADaemonIsInTheWayWhateverElseRefusesThePod) {
  daemons_.push_back(cluster_.Incoming(Plain(150)));
  daemons_.back().name = "logs";
  FitPod pod = Plain(900);
  pod.rules.affinity = {Term(Select("app", "db"), kHostnameLabel)};
  Add(pod, 1);
  const int room = static_cast<int>(FilterName::kNodeResourcesFit);
  const int affinity = static_cast<int>(FilterName::kInterPodAffinity);
  EXPECT_THAT(Refused(EmptyNode(1000)), ElementsAre(absl::StrCat("0 ", room, "*default/logs")));
  EXPECT_THAT(Refused(EmptyNode(1050)), ElementsAre(absl::StrCat("0 ", affinity)));
  EXPECT_THAT(Refused(EmptyNode(899)), ElementsAre(absl::StrCat("0 ", room)));
}

// The first taint that keeps the pod away is named.
TEST_F(EstimateTest, ToldIsTheTaintThatIsNotTolerated) {
  FitPod pod = Plain(100);
  pod.rules.tolerations = {{"spot", "Exists", "", ""}};
  Add(pod, 1);
  FitNode node = EmptyNode(1000);
  node.taints = {{"soft", "", "PreferNoSchedule"}, {"spot", "", "NoSchedule"}, {"team", "db", "NoExecute"}};
  EXPECT_THAT(Refused(node), ElementsAre(absl::StrCat("0 ", static_cast<int>(FilterName::kTaintToleration))));
  EXPECT_EQ(last_, "node(s) had untolerated taint(s): team=db:NoExecute");
  node.taints.back().value.clear();
  Refused(node);
  EXPECT_EQ(last_, "node(s) had untolerated taint(s): team:NoExecute");
}

// Pods that spread are judged beside those that have been placed: zone a has no room, so b takes one.
TEST_F(EstimateTest, ToldIsWhatPodsThatArePlacedRefuse) {
  cluster_.Add(
      {.name = "old", .allocatable = {{"cpu", 0}, {"memory", 0}, {"pods", 0}}, .labels = {{kZone, "a"}}});
  Add(Spread(100, "web", kZone, 1), 3);
  FitNode node = EmptyNode(1000);
  node.labels = {{kZone, "b"}};
  EXPECT_THAT(Refused(node),
              ElementsAre(absl::StrCat("0 ", static_cast<int>(FilterName::kPodTopologySpread))));
}

}  // namespace
}  // namespace loadline
