#include "core/fit/shares_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// Returns the share that is left of CPU and memory together, after a pod.
double ShareAfter(const Snapshot& snapshot, NodeIndex node, int64_t cpu, int64_t memory) {
  const auto share = [&](ResourceId resource, int64_t request) {
    const NodeAmount amount = snapshot.amount(node, resource);
    if (amount.allocatable == 0) return 0.0;
    return static_cast<double>(std::max<int64_t>(amount.free - request, 0)) *
           (1 / static_cast<double>(amount.allocatable));
  };
  return share(kCpu, cpu) + share(kMemory, memory);
}

// Returns how many taints with effect PreferNoSchedule the pod does not tolerate.
int64_t SoftTaints(const Snapshot& snapshot, NodeIndex node, const PodShape& pod) {
  int64_t count = 0;
  for (const Taint& taint : snapshot.node_shape(node).taints) {
    bool tolerated = taint.effect != "PreferNoSchedule";
    if (pod.rules != nullptr) {
      for (const Toleration& of : pod.rules->tolerations) tolerated = tolerated || of.Tolerates(taint);
    }
    count += tolerated ? 0 : 1;
  }
  return count;
}

class SharesLeftTest : public ::testing::TestWithParam<unsigned> {
 protected:
  // Nodes of few sizes, of which some differ a little, and some are overfull.
  FitNode Node(int i) {
    FitNode node{.name = "node-" + std::to_string(1000 + i)};
    const int64_t cores = int64_t{2} << Pick(3), memory = cores * (200 + 200 * Pick(2)) + Pick(60);
    node.allocatable = {{"cpu", cores * 1000 - 20 * Pick(5)}, {"memory", memory}, {"pods", 12}};
    if (Pick(20) == 0) node.allocatable = {{"cpu", 1000}, {"pods", 12}};
    if (Pick(4) == 0) node.labels = {{kZone, "zone-1"}};
    if (tainted_ && Pick(3) == 0) node.taints.push_back({"spare", std::to_string(i), "PreferNoSchedule"});
    if (tainted_ && Pick(5) == 0) node.taints.push_back({"old", "", "PreferNoSchedule"});
    if (tainted_ && Pick(9) == 0) node.taints.push_back({"full", "", "NoSchedule"});
    return node;
  }
  FitPod Pod() {
    FitPod pod;
    const int kind = Pick(12);
    pod.requests = {{"cpu", 250 * (kind % 4)}, {"memory", 100 * (kind % 3)}};
    pod.labels = {{"app", "app-" + std::to_string(kind)}};
    if (kind == 3) pod.rules.node_selector = MakeLabels({{kZone, "zone-1"}});
    if (kind % 4 == 2) pod.rules.tolerations = {{"spare", "Exists", "", ""}};
    if (kind == 5) pod.rules.anti_affinity = {Term(Select("app", "app-5"), kHostnameLabel)};
    return pod;
  }
  int Pick(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  std::mt19937_64 random_{GetParam()};
  const bool tainted_ = Pick(2) == 0;
  const FitOptions options_ = {.most_allocated = Pick(2) == 0};
};

// Each pod is placed where looking at each node says, until nothing fits.
TEST_P(SharesLeftTest, TakesWhatAPodLeavesMostOrLeastOf) {
  FitCluster cluster;
  for (int i = 0, nodes = 1 + Pick(60); i < nodes; ++i) {
    cluster.Add(Node(i), std::vector<FitPod>(static_cast<size_t>(Pick(4)), Pod()));
  }
  std::vector<IncomingPod> pods;
  for (int i = 0; i < 15; ++i) pods.push_back(cluster.Incoming(Pod()));
  Snapshot snapshot(cluster.state());
  std::vector<bool> leaves(static_cast<size_t>(snapshot.node_end() / 2));
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = Pick(8) == 0;
  SharesLeft shares(snapshot, leaves);
  for (int step = 0; step < 300; ++step) {
    const IncomingPod& pod = pods[static_cast<size_t>(Pick(15))];
    PodFit fit(&snapshot, pod, &options_);
    std::optional<NodeIndex> want;
    std::pair<int64_t, double> most = {std::numeric_limits<int64_t>::min(), 0};
    for (int32_t i = 0; i < snapshot.node_end(); ++i) {
      const NodeIndex node{i};
      if (IndexOf(node) < leaves.size() && leaves[IndexOf(node)]) continue;
      const double left =
          ShareAfter(snapshot, node, pod.shape.requests.Get(kCpu), pod.shape.requests.Get(kMemory));
      const std::pair<int64_t, double> score = {-SoftTaints(snapshot, node, pod.shape),
                                                options_.most_allocated ? -left : left};
      if (score <= most || !fit.Fits(node)) continue;
      most = score;
      want = node;
    }
    const std::optional<NodeIndex> got = shares.Take(pod.shape, &fit);
    ASSERT_EQ(got, want) << "step " << step;
    if (!got.has_value()) continue;
    snapshot.PlacePod(*got, snapshot.InternShape(pod.shape), "pod-" + std::to_string(step), "");
  }
}

TEST(SharesLeftBudgetTest, APodForWhichTheBudgetHadEndedFitsNowhere) {
  FitCluster cluster;
  cluster.Add({.name = "node", .allocatable = {{"cpu", 1000}, {"memory", 1000}, {"pods", 10}}});
  const IncomingPod pod = cluster.Incoming({.requests = {{"cpu", 100}}});
  Snapshot snapshot(cluster.state());
  SharesLeft shares(snapshot, {});
  WorkBudget budget(1);
  while (budget.Spend()) {
  }
  const FitOptions options;
  PodFit fit(&snapshot, pod, &options, &budget);
  EXPECT_EQ(shares.Take(pod.shape, &fit), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SharesLeftTest, ::testing::Range(1U, 201U));

}  // namespace
}  // namespace loadline
