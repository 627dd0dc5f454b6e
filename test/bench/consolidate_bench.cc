// A consolidation plan for thousands of nodes, from nothing and after a hundredth of the nodes changed.
#include <benchmark/benchmark.h>

#include "core/consolidate/consolidator.h"
#include "test/testing/consolidation_cluster.h"

namespace loadline {
namespace {

// About 39 pods on each node, 12 groups.
ModelCluster ClusterOf(int64_t nodes) {
  return RandomModel(1, {.nodes = static_cast<size_t>(nodes), .apps = 100, .smallest_pod = 16});
}

void PlanOnce(benchmark::State& state, const ConsolidationOptions& options) {
  PlannedCluster cluster(ClusterOf(state.range(0)));
  Snapshot snapshot(cluster.cluster().state());
  double over_bound = 0;
  for (auto _ : state) {
    WorkBudget budget;
    const ConsolidationPlan plan = Consolidator().Plan(&snapshot, cluster.problem(), options, &budget);
    over_bound = plan.bill.reachable / plan.bill.bound;
  }
  state.counters["reachable_over_bound"] = over_bound;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_PlanConsolidation(benchmark::State& state) { PlanOnce(state, {}); }
BENCHMARK(BM_PlanConsolidation)->Arg(200)->Arg(2'000)->Unit(benchmark::kMillisecond);

// Asks in the way of the autoscaler.
void BM_PlanConsolidationAsScheduled(benchmark::State& state) {
  ConsolidationOptions options;
  options.as_scheduled = true;
  PlanOnce(state, options);
}
BENCHMARK(BM_PlanConsolidationAsScheduled)->Arg(200)->Arg(2'000)->Unit(benchmark::kMillisecond);

// The planner knows a cluster in which most has been tried; every hundredth node lost half of its pods since.
void BM_PlanConsolidationAgain(benchmark::State& state) {
  ModelCluster model = ClusterOf(state.range(0));
  Consolidator planner;
  ConsolidationOptions remove;
  remove.mode = ConsolidationMode::kRemove;
  PlannedCluster before(model);
  Snapshot old(before.cluster().state());
  WorkBudget first;
  planner.Plan(&old, before.problem(), remove, &first);
  for (size_t i = 0; i < model.nodes.size(); i += 100) {
    model.nodes[i].pods.resize(model.nodes[i].pods.size() / 2);
  }
  PlannedCluster cluster(model);
  Snapshot snapshot(cluster.cluster().state());
  for (auto _ : state) {
    state.PauseTiming();
    Consolidator warm = planner;
    state.ResumeTiming();
    WorkBudget budget;
    benchmark::DoNotOptimize(warm.Plan(&snapshot, cluster.problem(), remove, &budget));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_PlanConsolidationAgain)->Arg(2'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
