// Benchmarks of nodes that can be removed together, at the sizes of real clusters.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/drain/planner.h"
#include "test/core/drain/drain_cluster.h"
#include "test/core/drain/naive_checker.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/groups_by_slot.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

constexpr int64_t kNow = 1'700'000'000;

// A cluster with what planning reads beside it.
struct DrainCase {
  FitCluster cluster;
  DrainProblem problem;
  DrainOptions options;
};

FitPod OwnedPod(int64_t milli_cpu, int64_t memory, const std::string& app, std::string name) {
  FitPod pod{.requests = {{"cpu", milli_cpu}, {"memory", memory}}, .labels = {{"app", app}}};
  pod.traits.owner = PodOwner{"ReplicaSet", "apps/v1", app, "uid-" + app};
  pod.traits.ready = true;
  pod.traits.safe_to_evict = SafeToEvict::kYes;
  pod.name = name;
  pod.uid = "00000000-0000-0000-0000-" + std::move(name);
  return pod;
}

std::string NodeName(int64_t i) { return "node-" + std::to_string(1'000'000 + i); }

// One group of all nodes.
void Ask(DrainCase* test) {
  test->problem.cluster = &test->cluster.state();
  const int64_t nodes = test->cluster.state().node_count();
  test->problem.groups = {{.name = "group", .min_nodes = 0, .target = nodes}};
  test->problem.group_of = AllInFirstGroup(nodes);
  test->problem.now_s = kNow;
}

// Builds the cluster of Cluster Autoscaler's BenchmarkRunOnceScaleDown: 40 pods on each node, each 1 % of it,
// all of which may be evicted; with all nodes alike, 60 % of them can go.
std::unique_ptr<DrainCase> Uniform(int64_t nodes) {
  auto test = std::make_unique<DrainCase>();
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<FitPod> pods;
    for (int64_t k = 0; k < 40; ++k) {
      pods.push_back(OwnedPod(100, kGi / 10, "app", "pod-" + std::to_string(i) + "-" + std::to_string(k)));
    }
    test->cluster.Add(
        {.name = NodeName(i), .allocatable = {{"cpu", 10'000}, {"memory", 10 * kGi}, {"pods", 110}}}, pods);
  }
  Ask(test.get());
  return test;
}

void PlanOnce(benchmark::State& state, const DrainCase& test, size_t expected) {
  size_t removed = 0;
  int64_t moves = 0;
  for (auto _ : state) {
    auto planner = std::make_unique<DrainPlanner>();
    WorkBudget budget;
    const DrainPlan& plan = planner->Plan(test.problem, test.options, &budget);
    state.PauseTiming();
    removed = plan.remove.size();
    moves = 0;
    for (const DrainRemoval& removal : plan.remove) moves += static_cast<int64_t>(removal.moves().size());
    planner.reset();
    state.ResumeTiming();
  }
  if (expected > 0 && removed != expected) state.SkipWithError("another number of nodes than expected");
  state.counters["removed"] = static_cast<double>(removed);
  state.counters["moves"] = static_cast<double>(moves);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_PlanDrain(benchmark::State& state) {
  const auto test = Uniform(state.range(0));
  PlanOnce(state, *test, static_cast<size_t>(state.range(0) * 3 / 5));
}
BENCHMARK(BM_PlanDrain)->Arg(1'000)->Arg(2'000)->Arg(4'000)->Arg(15'000)->Unit(benchmark::kMillisecond);

std::vector<FitPod> UniformPods(int64_t node, int64_t pods, int64_t round) {
  std::vector<FitPod> result;
  for (int64_t k = 0; k < pods; ++k) {
    result.push_back(
        OwnedPod(100, kGi / 10, "app",
                 "pod-" + std::to_string(node) + "-" + std::to_string(k) + "-" + std::to_string(round)));
  }
  return result;
}

// The next loop, after 1 % of the nodes got other pods: as many as before, one more or one less.
void BM_PlanDrainNext(benchmark::State& state) {
  const auto test = Uniform(state.range(0));
  const int64_t nodes = state.range(0);
  DrainPlanner planner;
  WorkBudget unlimited;
  planner.Plan(test->problem, test->options, &unlimited);
  int64_t round = 0;
  size_t removed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    ++round;
    for (int64_t i = 0; i < nodes / 100; ++i) {
      const int64_t node = (i * 97 + round * 31) % nodes;
      test->cluster.Put(
          Slot{static_cast<int32_t>(node)},
          {.name = NodeName(node), .allocatable = {{"cpu", 10'000}, {"memory", 10 * kGi}, {"pods", 110}}},
          UniformPods(node, 39 + (i + round) % 3, round));
    }
    test->problem.now_s += 10;
    WorkBudget budget;
    state.ResumeTiming();
    removed = planner.Plan(test->problem, test->options, &budget).remove.size();
  }
  state.counters["removed"] = static_cast<double>(removed);
  state.SetItemsProcessed(state.iterations() * nodes);
}
BENCHMARK(BM_PlanDrainNext)->Arg(2'000)->Arg(15'000)->Unit(benchmark::kMillisecond);

// 40 pods on each node, of apps of a quarter as many pods as there are nodes; no two of an app share a node.
void BM_PlanDrainAntiAffinity(benchmark::State& state) {
  const int64_t nodes = state.range(0);
  const int64_t apps = 160;
  DrainCase test;
  for (int64_t i = 0; i < nodes; ++i) {
    std::vector<FitPod> pods;
    for (int64_t k = 0; k < 40; ++k) {
      const std::string app = "app-" + std::to_string((i * 40 + k) % apps);
      FitPod pod = OwnedPod(100, kGi / 10, app, "pod-" + std::to_string(i) + "-" + std::to_string(k));
      pod.rules.anti_affinity = {Term(Select("app", app), kHostnameLabel)};
      pods.push_back(std::move(pod));
    }
    test.cluster.Add(
        {.name = NodeName(i), .allocatable = {{"cpu", 10'000}, {"memory", 10 * kGi}, {"pods", 110}}}, pods);
  }
  Ask(&test);
  PlanOnce(state, test, 0);
}
BENCHMARK(BM_PlanDrainAntiAffinity)->Arg(250)->Arg(500)->Unit(benchmark::kMillisecond);

// 200 shapes of pods, 5 types of nodes in 3 zones, 500 budgets, and a fifth of the apps spread over zones.
void BM_PlanDrainMixed(benchmark::State& state) {
  constexpr int64_t kCores[] = {4, 8, 16, 32, 64};
  DrainCluster cluster;
  const int64_t nodes = state.range(0);
  cluster.groups.clear();
  for (const int64_t cores : kCores) {
    cluster.groups.push_back({.name = "cores-" + std::to_string(cores),
                              .min_nodes = 3,
                              .target = nodes / 5,
                              .utilization_threshold = 0.7,
                              .node_price = 0.04 * static_cast<double>(cores)});
  }
  std::mt19937 random(20'260'217);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
  };
  int64_t serial = 0;
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t cores = kCores[i % 5];
    DrainNode node{
        .node = {.name = NodeName(i),
                 .allocatable = {{"cpu", cores * 1000}, {"memory", cores * 4 * kGi}, {"pods", 110}},
                 .labels = {{kZone, "zone-" + std::to_string(i / 5 % 3)}}},
        .group = IndexAt<GroupIndex>(static_cast<size_t>(i) % 5)};
    int64_t free = cores * draw(20, 65) * 10;
    while (free > 0 && node.pods.size() < 60) {
      const int64_t shape = draw(0, 199);
      const int64_t milli_cpu = 50 + shape * 37 % 900;
      const std::string app = "app-" + std::to_string(shape) + "-" + std::to_string(draw(0, 2));
      FitPod pod = OwnedPod(milli_cpu, milli_cpu * kGi / 400, app, "pod-" + std::to_string(++serial));
      pod.traits.safe_to_evict = SafeToEvict::kUnstated;
      if (shape % 5 == 0) {
        pod.rules.has_spread = true;
        pod.rules.spread = {{.max_skew = 5, .topology_key = kZone, .selector = Select("app", app)}};
      }
      free -= milli_cpu;
      node.pods.push_back(std::move(pod));
    }
    cluster.nodes.push_back(std::move(node));
  }
  for (int64_t i = 0; i < 500; ++i) {
    DrainBudget budget{.name = "pdb-" + std::to_string(i)};
    budget.budget.selector = Select("app", "app-" + std::to_string(i % 200) + "-" + std::to_string(i / 200));
    budget.budget.disruptions_allowed = static_cast<int32_t>(draw(20, 60));
    cluster.budgets.push_back(std::move(budget));
  }
  const DrainModel model(cluster);
  DrainOptions options;
  NamedPlan named;
  for (auto _ : state) {
    DrainPlanner planner;
    WorkBudget budget;
    const DrainPlan& plan = planner.Plan(model.problem(), options, &budget);
    state.PauseTiming();
    named = Named(model, plan);
    state.counters["removed"] = static_cast<double>(plan.remove.size());
    state.counters["price"] = plan.price_saved;
    state.ResumeTiming();
  }
  const std::vector<std::string> errors = CheckPlan(cluster, {}, named);
  if (!errors.empty()) state.SkipWithError(errors.front().c_str());
  state.counters["pods"] = static_cast<double>(serial);
  options.improve = false;
  DrainPlanner plain;
  WorkBudget budget;
  const DrainPlan& plan = plain.Plan(model.problem(), options, &budget);
  state.counters["plain_removed"] = static_cast<double>(plan.remove.size());
  state.counters["plain_price"] = plan.price_saved;
}
BENCHMARK(BM_PlanDrainMixed)->Arg(2'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
