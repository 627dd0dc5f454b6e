// Growth under a load line: no answer loads a node beyond it, by a count of our own, and no answer is more
// careful than that.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/expand/estimate.h"
#include "core/expand/plan.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

constexpr int kRounds = 400;

struct NaiveNode {
  NodeShape shape;
  std::vector<const PodShape*> pods;
};

// A question about growth under a line, with all that a naive count needs of it.
class LineGrowth {
 public:
  LineGrowth(uint32_t seed, bool dependent) : random_(seed) {
    cpu_line_ = Draw(0, 2) == 0 ? 0 : Draw(900, 3'000);
    memory_line_ = cpu_line_ > 0 && Draw(0, 3) == 0 ? 0 : Draw(900, 2'500);
    options_.load_line = StrictLine(cpu_line_, memory_line_);
    const int64_t groups = Draw(1, 4);
    for (int64_t i = 0; i < groups; ++i) {
      NodeGroup group;
      group.name = "group-" + std::to_string(i);
      group.model = NodeModel{cluster_.Shape(RandomNode(group.name))};
      group.usd_per_hour = static_cast<double>(Draw(1, 40)) / 10;
      group.max_nodes = 200;
      groups_.push_back(std::move(group));
    }
    const int64_t existing = Draw(0, 3);
    for (int64_t i = 0; i < existing; ++i) {
      std::vector<FitPod> pods;
      for (int64_t pod = Draw(0, 3); pod > 0; --pod) pods.push_back(RandomPod());
      const FitNode node = RandomNode("node-" + std::to_string(i));
      cluster_.Add(node, pods);
    }
    const int64_t kinds = Draw(1, 6);
    for (int64_t i = 0; i < kinds; ++i) {
      FitPod pod = RandomPod();
      pod.labels = {{"app", "app-" + std::to_string(i)}};
      if (dependent && Draw(0, 2) == 0) {
        pod.rules.anti_affinity = {Term(Select("app", "app-" + std::to_string(i)), kHostnameLabel)};
      }
      pods_.push_back({cluster_.Incoming(pod), Draw(1, 25)});
    }
    if (Draw(0, 1) == 0) daemons_.push_back(cluster_.Incoming(RandomPod()));
    for (PendingPods& entry : pods_) entry.pod.names = cluster_.names();
    for (IncomingPod& daemon : daemons_) daemon.names = cluster_.names();
  }

  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  // Returns whether the node takes the pod: it stays below the line and has room for it.
  bool Takes(const NaiveNode& node, const PodShape& pod) const {
    for (const auto& [resource, line] : {std::pair{kCpu, cpu_line_}, std::pair{kMemory, memory_line_}}) {
      int64_t requested = pod.requests.Get(resource);
      for (const PodShape* there : node.pods) requested += there->requests.Get(resource);
      if (pod.requests.Get(resource) > 0 && requested > node.shape.allocatable.Get(resource)) return false;
      if (line == 0) continue;
      std::vector<const PodShape*> pods = node.pods;
      pods.push_back(&pod);
      const std::vector<size_t> lifters = NaiveLifters(pods, node.shape, resource, line);
      if (!lifters.empty() && lifters.back() + 1 == pods.size()) return false;
    }
    return node.pods.size() < 20;
  }

  // An empty node of a group with its daemons.
  NaiveNode Fresh(GrowableIndex group) const {
    NaiveNode node{groups_[group].model->shape, {}};
    for (const IncomingPod& daemon : daemons_) {
      if (Takes(node, daemon.shape)) node.pods.push_back(&daemon.shape);
    }
    return node;
  }

  // Puts all of these pods onto a node; fails where one of them would lift it.
  void Fill(const std::vector<PodCount>& pods, NaiveNode* node) const {
    for (const PodCount& entry : pods) {
      for (int64_t i = 0; i < entry.count; ++i) {
        const PodShape& shape = pods_[static_cast<size_t>(entry.pods)].pod.shape;
        ASSERT_TRUE(Takes(*node, shape)) << "pods " << entry.pods;
        node->pods.push_back(&shape);
      }
    }
  }

  FitCluster cluster_;
  FitOptions options_;
  GrowableGroups groups_;
  std::vector<PendingPods> pods_;
  std::vector<IncomingPod> daemons_;

 private:
  FitNode RandomNode(const std::string& name) {
    return {.name = name,
            .allocatable = {{"cpu", Draw(1, 16) * 500}, {"memory", Draw(1, 16) * 10}, {"pods", 20}}};
  }
  FitPod RandomPod() {
    FitPod pod;
    if (Draw(0, 7) > 0) pod.requests = {{"cpu", Draw(0, 10) * 100}, {"memory", Draw(0, 12)}};
    if (Draw(0, 7) > 0) pod.limits.push_back({"cpu", Draw(1, 40) * 100});
    if (Draw(0, 7) > 0) pod.limits.push_back({"memory", Draw(1, 60)});
    return pod;
  }

  std::mt19937 random_;
  int64_t cpu_line_ = 0;
  int64_t memory_line_ = 0;
};

// First fit decreasing, with everything counted by hand.
std::pair<int64_t, int64_t> NaiveEstimate(const LineGrowth& world, GrowableIndex group) {
  std::vector<NaiveNode> nodes;
  int64_t placed = 0;
  for (const size_t pods : EstimationOrder(world.groups_[group].model->shape.allocatable, world.pods_)) {
    const PodShape& shape = world.pods_[pods].pod.shape;
    for (int64_t i = 0; i < world.pods_[pods].count; ++i) {
      auto node = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NaiveNode& entry) { return world.Takes(entry, shape); });
      if (node == nodes.end()) {
        const NaiveNode fresh = world.Fresh(group);
        if (!world.Takes(fresh, shape)) break;
        node = nodes.insert(nodes.end(), fresh);
      }
      node->pods.push_back(&shape);
      ++placed;
    }
  }
  return {static_cast<int64_t>(nodes.size()), placed};
}

TEST(LoadLineGrowthTest, EstimatesAreFirstFitUnderTheLine) {
  int64_t not_all = 0;
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    const LineGrowth world(seed, /*dependent=*/false);
    Snapshot snapshot(world.cluster_.state());
    WorkBudget budget;
    Estimator estimator(&snapshot, &world.options_, world.pods_, world.daemons_, &budget);
    ASSERT_TRUE(estimator.AllOnlyNeedRoom());
    for (const GrowableIndex group : world.groups_.indices()) {
      const NodeEstimate estimate =
          estimator.Estimate(world.groups_[group], NodeLimiter(std::span<const NodeThreshold>()), &budget);
      const auto [nodes, placed] = NaiveEstimate(world, group);
      ASSERT_EQ(estimate.nodes, nodes) << "seed " << seed << " group " << IndexOf(group);
      ASSERT_EQ(estimate.pods, placed) << "seed " << seed << " group " << IndexOf(group);
      for (const NodeRun& run : estimate.runs) {
        NaiveNode node = world.Fresh(group);
        world.Fill(run.pods, &node);
        if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
      }
      int64_t wanted = 0;
      for (const PendingPods& entry : world.pods_) wanted += entry.count;
      not_all += estimate.pods < wanted ? 1 : 0;
    }
    snapshot.CheckConsistent();
  }
  EXPECT_GT(not_all, 50);  // the line keeps some pods off altogether
}

void CheckPlan(uint32_t seed, bool dependent) {
  const LineGrowth world(seed, dependent);
  Snapshot snapshot(world.cluster_.state());
  WorkBudget budget;
  const ScaleUpPlan plan = PlanScaleUp(&snapshot, &world.options_, world.pods_, world.daemons_, world.groups_,
                                       PlanOptions(), &budget);
  ASSERT_FALSE(plan.cut_short) << "seed " << seed;
  ASSERT_LE(plan.lower_bound, plan.cost) << "seed " << seed;
  for (const PlannedNodes& nodes : plan.nodes) {
    NaiveNode node = world.Fresh(nodes.group);
    world.Fill(nodes.pods, &node);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " group " << IndexOf(nodes.group);
  }
  std::vector<NaiveNode> there;
  for (int32_t i = 0; i < snapshot.node_end(); ++i) {
    NaiveNode& node = there.emplace_back(NaiveNode{snapshot.node_shape(NodeIndex{i}), {}});
    for (const SnapshotPod& pod : snapshot.pods(NodeIndex{i})) {
      node.pods.push_back(&snapshot.pod_shape(pod.shape));
    }
  }
  for (const ExistingUse& use : plan.existing) {
    world.Fill({use.pods}, &there[static_cast<size_t>(use.node)]);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << " existing";
  }
  // A pod that fits an empty node of some group finds one.
  for (size_t pods = 0; pods < plan.unplaced.size(); ++pods) {
    for (const GrowableIndex group : world.groups_.indices()) {
      if (!world.Takes(world.Fresh(group), world.pods_[pods].pod.shape)) continue;
      ASSERT_EQ(plan.unplaced[pods], 0) << "seed " << seed << " pods " << pods;
    }
  }
}

TEST(LoadLineGrowthTest, JointPlansKeepToTheLine) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    CheckPlan(seed, /*dependent=*/false);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(LoadLineGrowthTest, PlansForPodsThatDependOnOthersKeepToTheLine) {
  for (uint32_t seed = 0; seed < kRounds; ++seed) {
    CheckPlan(seed, /*dependent=*/true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// More sizes of nodes than there are columns, for pods that count as something else on each.
TEST(LoadLineGrowthTest, ManySizesOfNodesShareColumns) {
  FitCluster cluster;
  FitOptions options;
  options.load_line = StrictLine(0, 1'500);
  GrowableGroups groups;
  for (int64_t i = 1; i <= 40; ++i) {
    NodeGroup group;
    group.name = "group-" + std::to_string(i);
    group.model = NodeModel{
        cluster.Shape({.name = "", .allocatable = {{"cpu", 4'000}, {"memory", 10 * i}, {"pods", 110}}})};
    group.usd_per_hour = 10 + static_cast<double>(i) / 100;  // few nodes are worth more than small ones
    group.max_nodes = 100;
    groups.push_back(std::move(group));
  }
  std::vector<PendingPods> pods;
  pods.push_back({cluster.Incoming({.requests = {{"cpu", 100}, {"memory", 5}}}), 7});
  pods.push_back(
      {cluster.Incoming({.requests = {{"cpu", 100}, {"memory", 5}}, .limits = {{"memory", 35}}}), 7});
  Snapshot snapshot(cluster.state());
  WorkBudget budget;
  const ScaleUpPlan plan = PlanScaleUp(&snapshot, &options, pods, {}, groups, PlanOptions(), &budget);
  EXPECT_EQ(plan.unplaced, (std::vector<int64_t>{0, 0}));
  EXPECT_GE(plan.cost, 70);  // each pod without a limit on a node of its own
  EXPECT_LE(plan.lower_bound, plan.cost);
  for (const PlannedNodes& nodes : plan.nodes) {
    std::vector<const PodShape*> there;
    for (const PodCount& entry : nodes.pods) {
      there.insert(there.end(), static_cast<size_t>(entry.count),
                   &pods[static_cast<size_t>(entry.pods)].pod.shape);
    }
    EXPECT_TRUE(NaiveLifters(there, groups[nodes.group].model->shape, kMemory, 1'500).empty());
  }
}

}  // namespace
}  // namespace loadline
