// Benchmarks of moves and searches at the sizes of real clusters.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/fit/fit_search.h"
#include "test/testing/fit_cluster.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

FitNode Node(int64_t i, int64_t cores) {
  return {.name = "node-" + std::to_string(1'000'000 + i),
          .allocatable = {{"cpu", cores * 1000}, {"memory", cores * 4 * kGi}, {"pods", 110}},
          .labels = {{kZone, "zone-" + std::to_string(i % 3)}, {"size", std::to_string(cores)}}};
}

FitPod Pod(int64_t milli_cpu, const std::string& app) {
  return {.requests = {{"cpu", milli_cpu}, {"memory", milli_cpu * kGi / 500}}, .labels = {{"app", app}}};
}

// Nodes of 5 types, half full.
void AddHalfFullNodes(int64_t nodes, FitCluster* cluster) {
  constexpr int64_t kCores[] = {4, 8, 16, 32, 64};
  for (int64_t i = 0; i < nodes; ++i) {
    const int64_t cores = kCores[i % 5];
    cluster->Add(Node(i, cores), std::vector<FitPod>(4, Pod(cores * 125, "old-" + std::to_string(i % 20))));
  }
}

// 30 pods on 30 nodes, and back. The nodes are the same each time.
void BM_ForkPlaceRevert(benchmark::State& state) {
  FitCluster cluster;
  AddHalfFullNodes(state.range(0), &cluster);
  Snapshot snapshot(cluster.state());
  const int32_t shape = snapshot.InternShape(cluster.Shape(Pod(100, "new")));
  for (auto _ : state) {
    snapshot.Fork();
    for (int64_t i = 0; i < 30; ++i) {
      snapshot.PlacePod(NodeIndex{static_cast<int32_t>(i * (state.range(0) / 30))}, shape);
    }
    snapshot.Revert();
  }
  state.SetItemsProcessed(state.iterations() * 30);
}
BENCHMARK(BM_ForkPlaceRevert)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

// Places pods one after the other where they fit first, and undoes it; pods are of `shapes` in turn. What the
// search remembers is thrown away each time, and so is the snapshot.
void PlaceAll(benchmark::State& state, FitCluster* cluster, const std::vector<FitPod>& shapes, int64_t pods) {
  const FitOptions options;
  int64_t placed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto snapshot = std::make_unique<Snapshot>(cluster->state());
    state.ResumeTiming();
    FitSearch search(snapshot.get(), &options);
    std::vector<SearchPod> handles;
    for (const FitPod& shape : shapes) handles.push_back(search.Add(cluster->Incoming(shape)));
    placed = 0;
    for (int64_t i = 0; i < pods; ++i) {
      const SearchPod pod = handles[static_cast<size_t>(i) % handles.size()];
      const std::optional<NodeIndex> node = search.FirstFit(pod);
      if (!node.has_value()) continue;
      snapshot->PlacePod(*node, search.fit(pod).shape());
      ++placed;
    }
    state.PauseTiming();
    snapshot.reset();
    state.ResumeTiming();
  }
  state.counters["placed"] = static_cast<double>(placed);
  state.SetItemsProcessed(state.iterations() * pods);
}

// 50,000 pods of 50 shapes onto half-full nodes of 5 types.
void BM_FirstFit(benchmark::State& state) {
  FitCluster cluster;
  AddHalfFullNodes(state.range(0), &cluster);
  std::vector<FitPod> shapes;
  for (int64_t i = 0; i < 50; ++i) shapes.push_back(Pod(50 + 37 * i % 1000, "app-" + std::to_string(i)));
  PlaceAll(state, &cluster, shapes, 50'000);
}
BENCHMARK(BM_FirstFit)->Arg(5'000)->Unit(benchmark::kMillisecond);

// 20,000 pods of 40 deployments, no two of one deployment on the same node.
void BM_FirstFitAntiAffinity(benchmark::State& state) {
  FitCluster cluster;
  for (int64_t i = 0; i < state.range(0); ++i) cluster.Add(Node(i, 64));
  std::vector<FitPod> shapes;
  for (int64_t i = 0; i < 40; ++i) {
    const std::string app = "app-" + std::to_string(i);
    FitPod pod = Pod(100, app);
    pod.rules.anti_affinity = {Term(Select("app", app), kHostnameLabel)};
    shapes.push_back(std::move(pod));
  }
  PlaceAll(state, &cluster, shapes, 20'000);
}
BENCHMARK(BM_FirstFitAntiAffinity)->Arg(500)->Unit(benchmark::kMillisecond);

// 10,000 pods of 10 deployments, spread over zones and nodes.
void BM_FirstFitSpread(benchmark::State& state) {
  FitCluster cluster;
  for (int64_t i = 0; i < state.range(0); ++i) cluster.Add(Node(i, 16));
  std::vector<FitPod> shapes;
  for (int64_t i = 0; i < 10; ++i) {
    const std::string app = "app-" + std::to_string(i);
    FitPod pod = Pod(100, app);
    pod.rules.has_spread = true;
    pod.rules.spread = {{.max_skew = 1, .topology_key = kZone, .selector = Select("app", app)},
                        {.max_skew = 1, .topology_key = kHostnameLabel, .selector = Select("app", app)}};
    shapes.push_back(std::move(pod));
  }
  PlaceAll(state, &cluster, shapes, 10'000);
}
BENCHMARK(BM_FirstFitSpread)->Arg(5'000)->Unit(benchmark::kMillisecond);

// Nodes that each hold a pod which does not want others of its app beside it.
void AddLonelyNodes(int64_t nodes, const FitPod& lonely, FitCluster* cluster) {
  for (int64_t i = 0; i < nodes; ++i) cluster->Add(Node(i, 16), {lonely});
}

FitPod Lonely(int64_t milli_cpu) {
  FitPod pod = Pod(milli_cpu, "lonely");
  pod.rules.anti_affinity = {Term(Select("app", "lonely"), kHostnameLabel)};
  return pod;
}

// Finds the nodes on which a pod fits whose shape was never seen before: its request is another each time,
// and the timed part begins with the pod as it arrives. The terms that keep it away are known from earlier
// questions; between two questions one of the pods on the nodes leaves and returns. Every thousand questions
// all is made anew.
void BM_FitAntiAffinity(benchmark::State& state) {
  FitCluster cluster;
  AddLonelyNodes(state.range(0), Lonely(100), &cluster);
  std::vector<IncomingPod> pods;
  for (int64_t i = 0; i < 1'000; ++i) pods.push_back(cluster.Incoming(Lonely(101 + i)));
  const IncomingPod earlier = cluster.Incoming(Lonely(100));
  const FitOptions options;
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<FitSearch> search;
  std::vector<NodeIndex> nodes;
  int32_t shape = 0;
  size_t next = pods.size();
  for (auto _ : state) {
    if (next == pods.size()) {
      state.PauseTiming();
      search.reset();
      snapshot = std::make_unique<Snapshot>(cluster.state());
      search = std::make_unique<FitSearch>(snapshot.get(), &options);
      const SearchPod asked = search->Add(earlier);
      search->AllFits(asked, &nodes);
      shape = search->fit(asked).shape();
      next = 0;
      state.ResumeTiming();
    }
    const NodeIndex node{static_cast<int32_t>(next) % static_cast<int32_t>(state.range(0))};
    snapshot->RemovePod(node, 0);
    snapshot->PlacePod(node, shape);
    search->AllFits(search->Add(pods[next++]), &nodes);
    if (!nodes.empty()) state.SkipWithError("a pod fits beside one that does not want it");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_FitAntiAffinity)->Arg(5'000)->Unit(benchmark::kMicrosecond);

// The same where nothing is known: the terms, too, are met for the first time, and the pods on all nodes have
// to be matched with them.
void BM_FitAntiAffinityFirst(benchmark::State& state) {
  FitCluster cluster;
  AddLonelyNodes(state.range(0), Lonely(100), &cluster);
  const IncomingPod pod = cluster.Incoming(Lonely(101));
  const FitOptions options;
  std::vector<NodeIndex> nodes;
  for (auto _ : state) {
    state.PauseTiming();
    auto snapshot = std::make_unique<Snapshot>(cluster.state());
    auto search = std::make_unique<FitSearch>(snapshot.get(), &options);
    state.ResumeTiming();
    search->AllFits(search->Add(pod), &nodes);
    state.PauseTiming();
    search.reset();
    snapshot.reset();
    state.ResumeTiming();
    if (!nodes.empty()) state.SkipWithError("a pod fits beside one that does not want it");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_FitAntiAffinityFirst)->Arg(5'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace loadline
