// Slack beside scale-down: a cluster that is followed rests in the end, and nothing is bought to be deleted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/core/loop/loop_fixture.h"

namespace loadline {
namespace {

constexpr char kTypeLabel[] = "node.kubernetes.io/instance-type";

// Follows plans: nodes that are asked for come as the template of their group, and nodes whose drain starts
// go, their pods to where they were planned to move.
class SlackAtRestTest : public LoopTest {
 protected:
  SlackAtRestTest() {
    problem_.decisions = {.scale_up = true, .slack = true, .scale_down = true};
    problem_.slack.removal_delay_s = 30;
    problem_.scale_down.deletion.timers.unneeded_time_s = 20;
    problem_.scale_down.most_vanished_percent = 100;
  }

  void AddNode(GroupIndex group, std::vector<FitPod> pods) {
    FitNode node = templates_[group];
    node.name = "node-" + std::to_string(1000 + ++serial_);
    for (FitPod& pod : pods) pod.name = pod.uid = "pod-" + std::to_string(++serial_);
    nodes_.push_back({std::move(node), std::move(pods), group});
    ++problem_.groups[group].target;
  }

  // One iteration, and what becomes of it. Returns how many nodes come and go.
  int64_t Follow() {
    problem_.drain.now_s += 10;
    const LoopPlan plan = Plan();
    int64_t changes = 0;
    std::vector<bool> gone(nodes_.size(), false);
    for (const DrainRemoval& removal : plan.scale_down.remove) {
      if (!removal.start) continue;
      const size_t from = static_cast<size_t>(removal.slot);
      for (const DrainMove& move : removal.moves()) {
        if (move.pod.is_placeholder()) continue;
        nodes_[static_cast<size_t>(move.to)].pods.push_back(nodes_[from].pods[move.pod.position()]);
      }
      gone[from] = true;
      ++gone_;
      --problem_.groups[*nodes_[from].group].target;
      ++changes;
    }
    std::vector<TestNode> left;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!gone[i]) left.push_back(std::move(nodes_[i]));
    }
    nodes_ = std::move(left);
    drain_.deleting.clear();
    for (const LoopGrowth& growth : plan.growth) {
      for (int64_t i = 0; i < growth.nodes(); ++i) AddNode(growth.group, {});
      changes += growth.nodes();
      grown_ += growth.nodes();
    }
    return changes;
  }

  // The loop after which nothing has changed for so many.
  int FollowUntilRest(int at_rest, int at_most) {
    int last_change = 0;
    for (int loop = 1; loop <= last_change + at_rest; ++loop) {
      if (Follow() > 0) last_change = loop;
      if (last_change > at_most) break;
    }
    return last_change;
  }

  int64_t grown_ = 0;
  int64_t gone_ = 0;

 private:
  int64_t serial_ = 0;
};

FitNode Labelled(int64_t milli_cpu, std::vector<Label> labels, std::vector<Taint> taints = {}) {
  FitNode node = NodeOf("template", milli_cpu);
  node.labels = std::move(labels);
  node.taints = std::move(taints);
  return node;
}

// A pod of 100m could go to a1, and the placeholder beside it would fit the node of the batch pods; but slack
// does not put it there. The node stays, and none is bought.
TEST_F(SlackAtRestTest, ADrainPutsNoPlaceholderWhereSlackDoesNot) {
  AddGroup("plain", 4000, 1, 0);
  AddGroup("batch", 4000, 1, 0);
  templates_[GroupIndex{0}] = Labelled(4000, {{kZone, "a"}});
  templates_[GroupIndex{1}] = Labelled(4000, {{kZone, "a"}, {"workload", "batch"}});
  FitPod batch = Replica("", 400);
  batch.rules.node_selector = MakeLabels({{"workload", "batch"}});
  AddNode(GroupIndex{0}, {Replica("", 3900)});
  AddNode(GroupIndex{0}, {Replica("", 100)});
  AddNode(GroupIndex{1}, {batch});
  for (int loop = 0; loop < 200; ++loop) ASSERT_EQ(Follow(), 0) << loop;
}

// The same for nodes of another type, where pods select nodes by it.
TEST_F(SlackAtRestTest, ADrainPutsNoPlaceholderOnAnotherTypeThatPodsSelect) {
  AddGroup("small", 4000, 1, 0);
  AddGroup("other", 4000, 1, 0);
  templates_[GroupIndex{0}] = Labelled(4000, {{kTypeLabel, "small"}});
  templates_[GroupIndex{1}] = Labelled(4000, {{kTypeLabel, "other"}});
  FitPod typed = Replica("", 400);
  typed.rules.node_selector = MakeLabels({{kTypeLabel, "other"}});
  AddNode(GroupIndex{0}, {Replica("", 3900)});
  AddNode(GroupIndex{0}, {Replica("", 100)});
  AddNode(GroupIndex{1}, {typed});
  for (int loop = 0; loop < 200; ++loop) ASSERT_EQ(Follow(), 0) << loop;
}

class RandomFleet {
 public:
  explicit RandomFleet(uint64_t seed) : random_(seed) {}
  int64_t Draw(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Percent(int64_t percent) { return Draw(1, 100) <= percent; }

  // Groups of two sizes in two zones, some labelled, some tainted.
  FitNode Template() {
    const bool large = Percent(40);
    std::vector<Label> labels = {{kZone, Percent(50) ? "a" : "b"}, {kTypeLabel, large ? "large" : "small"}};
    std::vector<Taint> taints;
    if (Percent(30)) labels.push_back({"workload", Percent(50) ? "batch" : "web"});
    if (Percent(30)) taints.push_back({"dedicated", "x", "NoSchedule"});
    if (Percent(20)) labels.push_back({"disk", Percent(50) ? "ssd" : "hdd"});
    return Labelled(large ? 8000 : 4000, std::move(labels), std::move(taints));
  }

  // A pod that may run on such a node, and may or may not say so.
  FitPod PodFor(const FitNode& node) {
    FitPod pod = Replica("", Draw(1, 20) * 100);
    std::vector<Label> selector;
    for (const Label& label : node.labels) {
      if (Percent(label.key == kTypeLabel ? 10 : 25)) selector.push_back(label);
    }
    pod.rules.node_selector = MakeLabels(std::move(selector));
    if (!node.taints.empty()) pod.rules.tolerations = {{"dedicated", "Equal", "x", "NoSchedule"}};
    return pod;
  }

 private:
  std::mt19937_64 random_;
};

class FleetOfSeed : public SlackAtRestTest {
 public:
  explicit FleetOfSeed(int seed) { Build(seed); }
  void TestBody() override {}
  using SlackAtRestTest::FollowUntilRest;
  int64_t grown() const { return grown_; }
  int64_t gone() const { return gone_; }

 private:
  void Build(int seed);
};

void FleetOfSeed::Build(int seed) {
  RandomFleet fleet(static_cast<uint64_t>(seed));
  const int64_t groups = fleet.Draw(1, 5);
  for (int64_t group = 0; group < groups; ++group) {
    AddGroup("group-" + std::to_string(group), 4000, 1, 0, /*max=*/30);
    templates_.back() = fleet.Template();
    problem_.groups.back().usd_per_hour = static_cast<double>(fleet.Draw(1, 9));
  }
  for (int64_t node = fleet.Draw(2, 14); node > 0; --node) {
    const GroupIndex group{static_cast<int32_t>(fleet.Draw(0, groups - 1))};
    std::vector<FitPod> pods;
    int64_t left = templates_[group].allocatable[0].second;
    for (int64_t pod = fleet.Draw(0, 6); pod > 0; --pod) {
      pods.push_back(fleet.PodFor(templates_[group]));
      left -= pods.back().requests[0].second;
      if (left < 0) pods.pop_back();
      if (left < 0) break;
    }
    AddNode(group, std::move(pods));
  }
  problem_.slack.rate = fleet.Draw(1, 8) * kWholeRate / 20;
  problem_.slack.reserve = static_cast<ReserveMode>(fleet.Draw(0, 3));
  problem_.slack.granularity = fleet.Draw(1, 6);
  if (fleet.Percent(30)) problem_.slack.basis = SlackBasis::kCapacity;
}

class SlackOfRandomFleetsTest : public ::testing::TestWithParam<int> {};

TEST_P(SlackOfRandomFleetsTest, ComesToRestAndStaysThere) {
  FleetOfSeed fleet(GetParam());
  const int at_rest = GetParam() < 10 ? 1000 : 60;
  EXPECT_LE(fleet.FollowUntilRest(at_rest, /*at_most=*/150), 150) << "nodes still come and go";
}

// Rest is worth nothing where nothing ever moves: most fleets grow for slack first, or lose nodes.
TEST(SlackOfRandomFleets, MostGrowOrShrinkBeforeTheyRest) {
  int grew = 0, shrank = 0, either = 0;
  for (int seed = 0; seed < 120; ++seed) {
    FleetOfSeed fleet(seed);
    fleet.FollowUntilRest(/*at_rest=*/20, /*at_most=*/150);
    grew += fleet.grown() > 0 ? 1 : 0;
    shrank += fleet.gone() > 0 ? 1 : 0;
    either += fleet.grown() + fleet.gone() > 0 ? 1 : 0;
  }
  EXPECT_GE(grew, 30);
  EXPECT_GE(shrank, 30);
  EXPECT_GE(either, 80);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SlackOfRandomFleetsTest, ::testing::Range(0, 120));

}  // namespace
}  // namespace loadline
