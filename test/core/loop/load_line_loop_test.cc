// One iteration under a load line: with all that it plans at once (pods that wait, drains that start, slack)
// no node that gets something ends above the line, by a count of our own.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/core/loop/loop_fixture.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

class LoadLineLoopTest : public LoopTest {
 protected:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  FitPod RandomPod(const std::string& name) {
    FitPod pod = Replica(name, Draw(1, 6) * 100);
    pod.requests.push_back({"memory", Draw(1, 9)});
    if (Draw(0, 7) > 0) pod.limits.push_back({"cpu", Draw(6, 40) * 100});
    if (Draw(0, 7) > 0) pod.limits.push_back({"memory", Draw(9, 60)});
    return pod;
  }

  static FitNode Sized(const std::string& name, int64_t milli_cpu, int64_t memory) {
    return {.name = name, .allocatable = {{"cpu", milli_cpu}, {"memory", memory}, {"pods", 110}}};
  }

  void Make(uint32_t seed) {
    random_.seed(seed);
    nodes_.clear();
    templates_.clear();
    problem_.groups.clear();
    ClearPending();
    waiting_.clear();
    slack_ = SlackState();
    drain_ = DrainState();
    cpu_line_ = Draw(0, 2) == 0 ? 0 : Draw(900, 3'000);
    memory_line_ = cpu_line_ > 0 && Draw(0, 3) == 0 ? 0 : Draw(900, 2'500);
    problem_.scale_down.fit.load_line = StrictLine(cpu_line_, memory_line_);
    problem_.decisions = {.scale_up = true, .slack = true, .scale_down = true};
    for (int32_t group = 0; group < 2; ++group) {
      const std::string name = "group-" + std::to_string(group);
      AddGroup(name, 4'000 * (group + 1), 1 + group, 0, 20);
      templates_.back() = Sized(name, 4'000 * (group + 1), 100 * (group + 1));
      problem_.groups.back().utilization_threshold = 0.9;
    }
    for (int i = 0; i < 8; ++i) {
      const int32_t group = static_cast<int32_t>(Draw(0, 1));
      const std::string name = "n" + std::to_string(i);
      TestNode node{Sized(name, 4'000 * (group + 1), 100 * (group + 1)), {}, GroupIndex{group}};
      for (int64_t pod = Draw(0, 3); pod > 0; --pod)
        node.pods.push_back(RandomPod(name + "-" + std::to_string(pod)));
      nodes_.push_back(std::move(node));
      ++problem_.groups[GroupIndex{group}].target;
    }
    for (int64_t i = Draw(0, 3); i > 0; --i) {
      waiting_.push_back(RandomPod(""));
      Pending(waiting_.back(), Draw(1, 5));
    }
  }

  // Adds the new pods of each node; fails if they lift it above the line.
  void Check(const LoopPlan& plan) {
    FitCluster cluster;
    for (const ResourceId resource : {kCpu, kMemory}) {
      const int64_t line = resource == kCpu ? cpu_line_ : memory_line_;
      if (line == 0) continue;
      std::vector<int64_t> sum, added;
      const auto counted = [&](const FitPod& pod, const FitNode& node) {
        return NaiveCounted(cluster.Shape(pod), resource, cluster.Shape(node).allocatable.Get(resource));
      };
      for (const TestNode& node : nodes_) {
        sum.push_back(0);
        added.push_back(0);
        for (const FitPod& pod : node.pods) sum.back() += counted(pod, node.node);
      }
      for (const auto& entry : plan.expected) {
        if (entry.node == NodeIndex{-1}) continue;
        const size_t node = IndexOf(entry.node);  // names are in the order of the slots
        added[node] += entry.count * counted(waiting_[static_cast<size_t>(entry.pods)], nodes_[node].node);
        expected_ += entry.count;
      }
      for (const DrainRemoval& removal : plan.scale_down.remove) {
        if (!removal.start) continue;
        for (const DrainMove& move : removal.moves()) {
          if (move.pod.is_placeholder()) continue;
          const FitPod& pod = nodes_[IndexOf(removal.slot)].pods[move.pod.position()];
          added[IndexOf(move.to)] += counted(pod, nodes_[IndexOf(move.to)].node);
          ++moves_;
        }
      }
      for (const Placeholder& placeholder : slack_.placeholders) {
        if (placeholder.node.empty()) continue;
        const size_t node = static_cast<size_t>(placeholder.node[1] - '0');
        added[node] += resource == kCpu ? placeholder.size.cpu : placeholder.size.memory;
        ++placeholders_;
      }
      for (size_t i = 0; i < nodes_.size(); ++i) {
        const int64_t allocatable = cluster.Shape(nodes_[i].node).allocatable.Get(resource);
        if (added[i] == 0) continue;
        ASSERT_LE((sum[i] + added[i]) * 1'000, line * allocatable) << "node " << i;
      }
      for (const PlannedNodes& nodes : plan.scale_up.nodes) {
        const FitNode& node = templates_[plan.grown[nodes.group]];
        int64_t on_node = 0;
        for (const PodCount& entry : nodes.pods) {
          on_node += entry.count * counted(waiting_[static_cast<size_t>(entry.pods)], node);
        }
        ASSERT_LE(on_node * 1'000, line * cluster.Shape(node).allocatable.Get(resource)) << "a new node";
        new_nodes_ += nodes.nodes;
      }
    }
  }

  std::mt19937 random_;
  int64_t cpu_line_ = 0;
  int64_t memory_line_ = 0;
  std::vector<FitPod> waiting_;
  int64_t expected_ = 0, moves_ = 0, placeholders_ = 0, new_nodes_ = 0;
};

TEST_F(LoadLineLoopTest, NothingOfAnAnswerLiftsANode) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Make(seed);
    for (int loop = 0; loop < 2; ++loop) {
      problem_.drain.now_s = kLoopNow + 30 * loop;
      Check(Plan());
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " loop " << loop;
    }
  }
  EXPECT_GT(expected_, 500);
  EXPECT_GT(moves_, 100);
  EXPECT_GT(placeholders_, 500);
  EXPECT_GT(new_nodes_, 50);
}

}  // namespace
}  // namespace loadline
