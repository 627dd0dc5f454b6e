// How many nodes of a template pods need, at the sizes of Cluster Autoscaler's own benchmark and beyond.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "core/expand/estimate.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/naive_line.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

// A line that no pod passes whose limits are its requests: what it costs to look at it.
FitOptions UnderALine() {
  FitOptions options;
  options.load_line = StrictLine(3'000, 1'500);
  return options;
}

FitPod Limited(FitPod pod) {
  pod.limits = pod.requests;
  return pod;
}

// The input of BenchmarkBinpackingEstimate: 50,000 pods of 50m and 1,000 of 95m, nodes of 1 core and 100
// pods.
void Estimate51000(const FitOptions& options, benchmark::State& state) {
  FitCluster cluster;
  cluster.Add({.name = "oldnode", .allocatable = {{"cpu", 100}, {"memory", 100 * kMi}, {"pods", 10}}});
  const FitNode node{.name = "template",
                     .allocatable = {{"cpu", 1000}, {"memory", 5000 * kMi}, {"pods", 100}},
                     .labels = {{kZone, "zone-mars"}}};
  const NodeGroup shape{.name = "template", .model = NodeModel{cluster.Shape(node)}};
  const std::vector<PendingPods> pods = {
      {cluster.Incoming(Limited({.requests = {{"cpu", 50}, {"memory", 100}}})), 50'000},
      {cluster.Incoming(Limited({.requests = {{"cpu", 95}, {"memory", 190}}})), 1'000}};
  const NodeThreshold limit{.max_nodes = 3000};
  for (auto _ : state) {
    Snapshot snapshot(cluster.state());
    WorkBudget budget;
    Estimator estimator(&snapshot, &options, pods, {}, &budget);
    const NodeEstimate estimate = estimator.Estimate(shape, NodeLimiter({&limit, 1}), &budget);
    if (estimate.nodes != 2595 || estimate.pods != 51'000) state.SkipWithError("the answer is wrong");
  }
}
void BM_Estimate51000(benchmark::State& state) { Estimate51000(FitOptions(), state); }
BENCHMARK(BM_Estimate51000)->Unit(benchmark::kMicrosecond);
void BM_Estimate51000UnderALine(benchmark::State& state) { Estimate51000(UnderALine(), state); }
BENCHMARK(BM_Estimate51000UnderALine)->Unit(benchmark::kMicrosecond);

// In 50 deployments 10 spread over hosts, 10 over zones, 10 have one pod per host, 5 want a pool of nodes and
// 15 only need room.
FitPod PodOfDeployment(int64_t i) {
  const std::string app = "app-" + std::to_string(i);
  FitPod pod{.requests = {{"cpu", 100 + 37 * i % 900}, {"memory", (256 + 61 * i % 3000) * kMi}},
             .labels = {{"app", app}}};
  if (i % 10 < 4) {
    pod.rules.has_spread = true;
    pod.rules.spread = {{.max_skew = 5,
                         .topology_key = i % 10 < 2 ? std::string(kHostnameLabel) : std::string(kZone),
                         .selector = Select("app", app)}};
  } else if (i % 10 < 6) {
    pod.rules.anti_affinity = {Term(Select("app", app), kHostnameLabel)};
  } else if (i % 10 == 6) {
    pod.rules.node_selector = Labels(std::vector<Label>{{"pool", "pool-" + std::to_string(i % 4)}});
  }
  return pod;
}

// 100 pods of each deployment, against each of so many node groups; 5,000 nodes are full, with 8 pods each.
void EstimateGroups(const FitOptions& options, benchmark::State& state) {
  FitCluster cluster;
  for (int64_t i = 0; i < 5'000; ++i) {
    std::vector<FitPod> pods;
    for (int64_t k = 0; k < 8; ++k) {
      pods.push_back(Limited({.requests = {{"cpu", 500}, {"memory", 2 * kGi}},
                              .labels = {{"app", "app-" + std::to_string((i + 7 * k) % 50)}}}));
    }
    cluster.Add({.name = "node-" + std::to_string(100'000 + i),
                 .allocatable = {{"cpu", 4050}, {"memory", 17 * kGi}, {"pods", 110}},
                 .labels = {{kZone, "zone-" + std::to_string(i % 3)}}},
                pods);
  }
  std::vector<NodeGroup> templates;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const int64_t cores = int64_t{4} << (i % 5);
    FitNode node{
        .name = "group-" + std::to_string(i),
        .allocatable = {{"cpu", cores * 980}, {"memory", cores * 7 * kGi / 2}, {"pods", 110}},
        .labels = {{kZone, "zone-" + std::to_string(i % 3)}, {"pool", "pool-" + std::to_string(i % 4)}}};
    templates.push_back({.name = node.name, .model = NodeModel{cluster.Shape(node)}});
  }
  std::vector<PendingPods> pods;
  for (int64_t i = 0; i < 50; ++i) pods.push_back({cluster.Incoming(Limited(PodOfDeployment(i))), 100});
  for (PendingPods& entry : pods) entry.pod.names = cluster.names();
  Snapshot snapshot(cluster.state());
  int64_t placed = 0;
  int64_t nodes = 0;
  for (auto _ : state) {
    WorkBudget budget;
    Estimator estimator(&snapshot, &options, pods, {}, &budget);
    placed = nodes = 0;
    for (const NodeGroup& node : templates) {
      const NodeEstimate estimate = estimator.Estimate(node, NodeLimiter(), &budget);
      placed += estimate.pods;
      nodes += estimate.nodes;
    }
  }
  state.counters["placed"] = static_cast<double>(placed);
  state.counters["nodes"] = static_cast<double>(nodes);
}
void BM_EstimateGroups(benchmark::State& state) { EstimateGroups(FitOptions(), state); }
BENCHMARK(BM_EstimateGroups)->Arg(20)->Unit(benchmark::kMillisecond);
void BM_EstimateGroupsUnderALine(benchmark::State& state) { EstimateGroups(UnderALine(), state); }
BENCHMARK(BM_EstimateGroupsUnderALine)->Arg(20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
