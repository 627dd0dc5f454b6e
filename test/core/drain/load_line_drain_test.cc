// Drains under a load line: whatever moves, no node that receives pods ends above it, by a count of our own.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"
#include "test/testing/naive_line.h"

namespace loadline {
namespace {

class LineDrains {
 public:
  explicit LineDrains(uint32_t seed) : random_(seed) {
    cpu_line_ = Draw(0, 2) == 0 ? 0 : Draw(900, 3'000);
    memory_line_ = cpu_line_ > 0 && Draw(0, 3) == 0 ? 0 : Draw(900, 2'500);
    options_.fit.load_line = StrictLine(cpu_line_, memory_line_);
    cluster_.groups = {{.name = "group", .target = 12, .utilization_threshold = 0.9}};
    for (int64_t i = 0; i < 12; ++i) {
      DrainNode node{
          .node = {.name = "n" + std::to_string(i),
                   .allocatable = {{"cpu", Draw(2, 8) * 500}, {"memory", Draw(5, 16) * 10}, {"pods", 110}}}};
      for (int64_t pod = Draw(0, 3); pod > 0; --pod) node.pods.push_back(RandomPod());
      cluster_.nodes.push_back(std::move(node));
    }
  }

  // Adds or removes a pod, so that the next plan follows the change.
  void Change() {
    DrainNode& node = cluster_.nodes[static_cast<size_t>(Draw(0, 11))];
    if (!node.pods.empty() && Draw(0, 1) == 0) {
      node.pods.pop_back();
    } else {
      node.pods.push_back(RandomPod());
    }
    cluster_.now_s += 30;
  }

  // Fails where a node that receives pods would end above the line. Returns how many pods move.
  int64_t Check(const DrainModel& model, const DrainPlan& plan) const {
    const ClusterState& state = *model.problem().cluster;
    std::map<Slot, std::vector<const PodShape*>> pods;
    const auto shape = [&](Slot slot, size_t i) {
      return &state.pod_shapes()[state.pods(slot).pods()[i].shape];
    };
    for (int32_t i = 0; i < state.slot_end(); ++i) {
      for (size_t pod = 0; pod < state.pods(Slot{i}).pods().size(); ++pod) {
        pods[Slot{i}].push_back(shape(Slot{i}, pod));
      }
    }
    int64_t moves = 0;
    std::map<Slot, size_t> there;
    for (const auto& [slot, on_node] : pods) there[slot] = on_node.size();
    for (const DrainRemoval& removal : plan.remove) {
      for (const DrainMove& move : removal.moves()) {
        pods[move.to].push_back(shape(removal.slot, move.pod.position()));
        ++moves;
      }
    }
    for (const auto& [slot, on_node] : pods) {
      for (const auto& [resource, line] : {std::pair{kCpu, cpu_line_}, std::pair{kMemory, memory_line_}}) {
        if (line == 0) continue;
        for (const size_t lifter : NaiveLifters(on_node, state.node_shape(slot), resource, line)) {
          EXPECT_LT(lifter, there[slot]) << "a pod lifts node " << model.name(slot);
        }
      }
    }
    return moves;
  }

  DrainCluster cluster_;
  DrainOptions options_;

 private:
  int64_t Draw(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  FitPod RandomPod() {
    FitPod pod = ReplicaPod("p" + std::to_string(++pods_), Draw(0, 4) * 100, Draw(0, 8));
    if (Draw(0, 7) > 0) pod.limits.push_back({"cpu", Draw(1, 20) * 100});
    if (Draw(0, 7) > 0) pod.limits.push_back({"memory", Draw(1, 60)});
    return pod;
  }

  std::mt19937 random_;
  int64_t cpu_line_ = 0;
  int64_t memory_line_ = 0;
  int64_t pods_ = 0;
};

TEST(LoadLineDrainTest, NoMoveLiftsANodeAboveTheLine) {
  int64_t moves = 0;
  int64_t without = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    LineDrains drains(seed);
    DrainModel model(drains.cluster_);
    DrainPlanner planner;
    for (int loop = 0; loop < 4; ++loop) {
      WorkBudget budget;
      moves += drains.Check(model, planner.Plan(model.problem(), drains.options_, &budget));
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " loop " << loop;
      DrainOptions off = drains.options_;
      off.fit.load_line = LoadLine();
      DrainPlanner other;
      for (const DrainRemoval& removal : other.Plan(model.problem(), off, &budget).remove) {
        without += static_cast<int64_t>(removal.moves().size());
      }
      drains.Change();
      model.Update(drains.cluster_);
    }
  }
  EXPECT_GT(moves, 1'000);
  EXPECT_GT(without, moves);  // the line keeps some where they are
}

}  // namespace
}  // namespace loadline
