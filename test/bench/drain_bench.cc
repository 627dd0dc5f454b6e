// Which nodes can go, together, at the sizes of real clusters.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "core/drain/planner.h"
#include "test/testing/fit_cluster.h"

namespace loadline {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
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
  test->problem.group_of.assign(static_cast<size_t>(nodes), 0);
  test->problem.now_s = kNow;
}

// As Cluster Autoscaler's BenchmarkRunOnceScaleDown: 40 pods on each node, each 1 % of it, all of which may
// be evicted; with all nodes alike, 60 % of them can go.
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
    for (const DrainRemoval& removal : plan.remove) moves += static_cast<int64_t>(removal.moves.size());
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

}  // namespace
}  // namespace loadline
