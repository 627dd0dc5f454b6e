#include "core/size/new_node.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/cluster/startup_taints.h"
#include "test/core/size/pass_time.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

// Nodes a and b of a group in one zone; pods ask for pool=x.
class NewNodeTest : public ::testing::Test {
 protected:
  NewNodeTest() : groups_(1) {
    groups_[0].name = "pool";
    groups_[0].pods.labels = Labels(std::vector<Label>{{"pool", "x"}});
    groups_[0].options.scale_on_starve = true;
  }

  static FitNode PoolNode(const std::string& name, int64_t gpus = 0) {
    FitNode node{.name = name, .labels = {{"pool", "x"}, {kZone, "z"}}};
    if (gpus > 0) node.allocatable.emplace_back("example.com/gpu", gpus);
    return node;
  }

  static FitPod Member(std::vector<std::pair<std::string, int64_t>> requests) {
    FitPod pod{.requests = std::move(requests)};
    pod.rules.node_selector = Labels(std::vector<Label>{{"pool", "x"}});
    return pod;
  }

  // Returns whether a pod that waits starves; nullopt: it is not known.
  std::optional<bool> Starves(const FitPod& pod, int64_t work = 1'000'000) {
    const std::vector<WaitingPods> waiting = {{cluster_.Shape(pod), 1}};
    cluster_.state().set_resource_names(cluster_.names());
    auto gathered = GatherFacts(cluster_.state(), groups_, waiting, kPassTime);
    EXPECT_TRUE(gathered.ok()) << gathered.status();
    Snapshot snapshot(cluster_.state());
    const int32_t nodes = snapshot.node_end();
    WorkBudget budget(work);
    FindStarving(&snapshot, FitOptions(), groups_, waiting, cluster_.names(), &budget, *gathered);
    EXPECT_EQ(snapshot.depth(), 0u);
    EXPECT_EQ(snapshot.node_end(), nodes);
    if (gathered->at(0).starving_unknown) return std::nullopt;
    return gathered->at(0).facts.starved;
  }

  FitCluster cluster_;
  std::vector<SizedGroup> groups_;
};

TEST_F(NewNodeTest, StarvesForAnyResource) {
  const FitPod gpu = Member({{"cpu", 100}, {"example.com/gpu", 1}});
  cluster_.Add(PoolNode("a", 1), {gpu});
  cluster_.Add(PoolNode("b", 1));
  EXPECT_EQ(Starves(gpu), false);
  cluster_.Put(Slot{1}, PoolNode("b", 1), {gpu});
  EXPECT_EQ(Starves(gpu), true);
  EXPECT_EQ(Starves(Member({{"cpu", 100}})), false);
}

// Two dimensions on two nodes are no room.
TEST_F(NewNodeTest, StarvesWhereNoNodeHasEnoughOfBoth) {
  cluster_.Add(PoolNode("a"), {Member({{"cpu", 100}, {"memory", 15}})});
  cluster_.Add(PoolNode("b"), {Member({{"cpu", 3900}, {"memory", 1}})});
  EXPECT_EQ(Starves(Member({{"cpu", 800}, {"memory", 8}})), true);
  EXPECT_EQ(Starves(Member({{"cpu", 3900}, {"memory", 1}})), false);
}

TEST_F(NewNodeTest, StarvesByAntiAffinityUnlessANewNodeWouldNotHelp) {
  FitPod alone = Member({{"cpu", 100}});
  alone.labels = {{"app", "alone"}};
  alone.rules.anti_affinity = {Term(Select("app", "alone"), kHostnameLabel)};
  cluster_.Add(PoolNode("a"), {alone});
  EXPECT_EQ(Starves(alone), true);
  alone.rules.anti_affinity = {Term(Select("app", "alone"), kZone)};
  EXPECT_EQ(Starves(alone), false) << "a new node is in the same zone";
}

TEST_F(NewNodeTest, DaemonSetPodsAreOnANewNodeAsWell) {
  FitPod daemon{.requests = {{"cpu", 500}}};
  daemon.traits.owner = PodOwner{"DaemonSet", "apps/v1", "d", "u"};
  cluster_.Add(PoolNode("a"), {daemon, Member({{"cpu", 1000}})});
  EXPECT_EQ(Starves(Member({{"cpu", 2500}})), false);
  EXPECT_EQ(Starves(Member({{"cpu", 3500}})), true);
  EXPECT_EQ(Starves(Member({{"cpu", 3501}})), false) << "too large for any node";
}

TEST_F(NewNodeTest, PlaceholdersGiveWay) {
  FitPod placeholder{.requests = {{"cpu", 3500}}};
  placeholder.traits.placeholder = true;
  cluster_.Add(PoolNode("a"), {placeholder});
  EXPECT_EQ(Starves(Member({{"cpu", 3000}})), false);
}

TEST_F(NewNodeTest, WorkThatEndsIsTold) {
  cluster_.Add(PoolNode("a"), {Member({{"cpu", 4000}})});
  EXPECT_EQ(Starves(Member({{"cpu", 1000}})), true);
  EXPECT_EQ(Starves(Member({{"cpu", 1000}}), /*work=*/0), std::nullopt);
}

TEST_F(NewNodeTest, NodesThatAreTaintedTakeNoPod) {
  FitNode tainted = PoolNode("a");
  tainted.taints = {{kRemovalTaint, "1600000000", "NoSchedule"}};
  cluster_.Add(tainted);
  EXPECT_EQ(Starves(Member({{"cpu", 1000}})), false) << "without a node at work it grows anyway";
  cluster_.Add(PoolNode("b"), {Member({{"cpu", 4000}})});
  EXPECT_EQ(Starves(Member({{"cpu", 1000}})), true);
}

TEST_F(NewNodeTest, DaemonSetPodsComeOffTheTemplateWhereTheyFit) {
  groups_.resize(2);
  groups_[0].new_node = cluster_.Shape(PoolNode("t"));
  FitPod everywhere{.requests = {{"cpu", 300}, {"memory", 2}}};
  FitPod elsewhere{.requests = {{"cpu", 500}}};
  elsewhere.rules.node_selector = Labels(std::vector<Label>{{"pool", "y"}});
  FitPod large{.requests = {{"cpu", 3800}}};  // beside the first there is no room
  const std::vector<IncomingPod> daemons = {cluster_.Incoming(everywhere), cluster_.Incoming(elsewhere),
                                            cluster_.Incoming(large)};
  cluster_.state().set_resource_names(cluster_.names());
  Snapshot snapshot(cluster_.state());
  WorkBudget budget;
  MeasureDaemons(&snapshot, FitOptions(), daemons, groups_, &budget);
  EXPECT_EQ(groups_[0].new_node_daemons, (CpuMemory{300, 2}));
  EXPECT_EQ(groups_[1].new_node_daemons, CpuMemory());
  EXPECT_EQ(snapshot.depth(), 0u);
  EXPECT_EQ(snapshot.node_end(), 0);
}

}  // namespace
}  // namespace loadline
