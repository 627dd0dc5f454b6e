// Small clusters in all ways: greedy's set is maximal given its moves, and how near it is to the best set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "core/drain/node_reason.h"
#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"
#include "test/core/drain/naive_checker.h"

namespace loadline {
namespace {

// Nodes by cpu alone: what each holds and may hold.
struct SmallCluster {
  std::vector<int64_t> capacity;
  std::vector<std::vector<int64_t>> pods;  // by node
};

SmallCluster Draw(std::mt19937* random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>((*random)() % static_cast<uint32_t>(high - low + 1));
  };
  SmallCluster cluster;
  const int64_t nodes = draw(2, 5);
  int64_t pods = draw(1, 7);
  for (int64_t i = 0; i < nodes; ++i) {
    cluster.capacity.push_back(draw(2, 10) * 100);
    cluster.pods.emplace_back();
    int64_t free = cluster.capacity.back();
    while (pods > 0 && draw(0, 2) > 0) {
      const int64_t pod = draw(1, 6) * 100;
      if (pod > free) break;
      free -= pod;
      cluster.pods.back().push_back(pod);
      --pods;
    }
  }
  return cluster;
}

DrainCluster Objects(const SmallCluster& small) {
  DrainCluster cluster;
  cluster.groups[GroupIndex{0}].utilization_threshold = 1.0;
  for (size_t i = 0; i < small.capacity.size(); ++i) {
    DrainNode node;
    node.node.name = "n" + std::to_string(i);
    node.node.allocatable = {{"cpu", small.capacity[i]}, {"memory", 1000}, {"pods", 110}};
    for (size_t k = 0; k < small.pods[i].size(); ++k) {
      node.pods.push_back(ReplicaPod("p" + std::to_string(i) + "-" + std::to_string(k), small.pods[i][k]));
    }
    cluster.nodes.push_back(std::move(node));
  }
  return cluster;
}

// Returns whether pods fit into what is free, in any way.
bool FitAnyhow(const std::vector<int64_t>& pods, size_t next, std::vector<int64_t>* free) {
  if (next == pods.size()) return true;
  for (int64_t& room : *free) {
    if (room < pods[next]) continue;
    room -= pods[next];
    const bool fit = FitAnyhow(pods, next + 1, free);
    room += pods[next];
    if (fit) return true;
  }
  return false;
}

// The most nodes that can go together, by trying all sets.
int64_t BestCount(const SmallCluster& cluster) {
  const size_t nodes = cluster.capacity.size();
  int64_t best = 0;
  for (uint32_t set = 0; set < (uint32_t{1} << nodes); ++set) {
    std::vector<int64_t> pods;
    std::vector<int64_t> free;
    int64_t count = 0;
    for (size_t i = 0; i < nodes; ++i) {
      int64_t used = 0;
      for (const int64_t pod : cluster.pods[i]) used += pod;
      if ((set >> i & 1) != 0) {
        ++count;
        pods.insert(pods.end(), cluster.pods[i].begin(), cluster.pods[i].end());
      } else {
        free.push_back(cluster.capacity[i] - used);
      }
    }
    if (count > best && FitAnyhow(pods, 0, &free)) best = count;
  }
  return best;
}

TEST(DrainPlannerExhaustiveTest, GreedyIsMaximalAndNearTheBest) {
  std::mt19937 random(20'260'217);
  int64_t plain_sum = 0;
  int64_t improved_sum = 0;
  int64_t best_sum = 0;
  for (int round = 0; round < 3'000; ++round) {
    const SmallCluster small = Draw(&random);
    const DrainCluster cluster = Objects(small);
    const DrainModel model(cluster);
    const int64_t best = BestCount(small);
    int64_t counts[2] = {};
    for (const bool improve : {false, true}) {
      DrainOptions options;
      options.improve = improve;
      DrainPlanner planner;
      WorkBudget budget;
      const DrainPlan& plan = planner.Plan(model.problem(), options, &budget);
      counts[improve] = static_cast<int64_t>(plan.remove.size());
      // The free amounts once all moves are made, on nodes that stay.
      std::vector<int64_t> free = small.capacity;
      std::vector<bool> stays(free.size(), true);
      for (size_t i = 0; i < free.size(); ++i) {
        for (const int64_t pod : small.pods[i]) free[i] -= pod;
      }
      for (const DrainRemoval& removal : plan.remove) {
        stays[IndexOf(removal.slot)] = false;
        for (const DrainMove& move : removal.moves()) {
          free[IndexOf(move.to)] -= small.pods[IndexOf(removal.slot)][move.pod.position()];
        }
      }
      for (const DrainKeep& keep : plan.keep) {
        ASSERT_GE(free[IndexOf(keep.slot)], 0) << "round " << round;
        if (keep.reason == NodeReason::kAlreadyADestination) continue;
        std::vector<int64_t> elsewhere;
        for (size_t i = 0; i < free.size(); ++i) {
          if (stays[i] && i != IndexOf(keep.slot)) elsewhere.push_back(free[i]);
        }
        ASSERT_FALSE(FitAnyhow(small.pods[IndexOf(keep.slot)], 0, &elsewhere))
            << "round " << round << ": " << model.name(keep.slot) << " could go as well\n"
            << PlanText(model, plan);
      }
    }
    ASSERT_LE(counts[1], best) << "round " << round;
    ASSERT_GE(counts[1], counts[0]) << "round " << round;
    plain_sum += counts[0];
    improved_sum += counts[1];
    best_sum += best;
  }
  std::printf("nodes that go: plain %lld, improved %lld, best possible %lld\n",
              static_cast<long long>(plain_sum), static_cast<long long>(improved_sum),
              static_cast<long long>(best_sum));
  RecordProperty("plain", static_cast<int>(plain_sum));
  RecordProperty("improved", static_cast<int>(improved_sum));
  RecordProperty("best", static_cast<int>(best_sum));
  // 6,711, 6,762 and 6,875.
  EXPECT_GE(100 * plain_sum, 97 * best_sum);
  EXPECT_GE(100 * improved_sum, 98 * best_sum);
  EXPECT_GT(improved_sum, plain_sum);
}

}  // namespace
}  // namespace loadline
