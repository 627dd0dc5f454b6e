// Scoring in the core: strict preset, cpu and memory, min-max normalization included.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/drain/lasting_blockers.h"
#include "core/score/limit_score.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/units.h"
#include "test/testing/usage.h"

namespace loadline {
namespace {

void ScoreNodesBy(const LimitPolicy& policy, benchmark::State& state) {
  std::mt19937_64 random(217);
  ClusterBuilder builder;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const int64_t cores = 4 + static_cast<int64_t>(random() % 93);
    const int64_t memory = kGi + static_cast<int64_t>(random() % static_cast<uint64_t>(cores * 8 * kGi));
    std::vector<TestPod> pods;
    for (uint64_t pod = random() % 4; pod > 0; --pod) {
      pods.push_back({.limits = {{"cpu", 1 + static_cast<int64_t>(random() % 32'000)},
                                 {"memory", 1 + static_cast<int64_t>(random() % (64 * kGi))}}});
    }
    builder.Node("node-" + std::to_string(i), {{"cpu", cores * 1000}, {"memory", memory}}, pods);
  }
  std::vector<PodShape> pods;
  for (int i = 0; i < 64; ++i) {
    pods.push_back(builder.Shape({.limits = {{"cpu", 100 + static_cast<int64_t>(random() % 8000)},
                                             {"memory", 1 + static_cast<int64_t>(random() % (16 * kGi))}}}));
  }
  const std::vector<Slot> candidates = AllSlots(builder.cluster());
  LimitColumns columns(policy);
  columns.CatchUp(builder.cluster(), nullptr,
                  std::make_shared<const LastingBlockers>(builder.cluster().objects()));
  std::vector<int32_t> scores;
  size_t pod = 0;
  for (auto _ : state) {
    ScoreNodes(columns, builder.cluster(), pods[pod++ % pods.size()], candidates, &scores);
    benchmark::DoNotOptimize(scores.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_ScoreNodes(benchmark::State& state) {
  ScoreNodesBy(StrictPolicy({{"cpu", 1}, {"memory", 1}}), state);
}
BENCHMARK(BM_ScoreNodes)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

// No pod has an owner: each of them blocks drains.
void BM_ScoreNodesOfBlockers(benchmark::State& state) {
  LimitPolicy policy = StrictPolicy({{"cpu", 1}, {"memory", 1}});
  policy.blockers_together = 20;
  ScoreNodesBy(policy, state);
}
BENCHMARK(BM_ScoreNodesOfBlockers)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

// A day: quiet but for some hours, which begin at any.
HourlyAmounts DrawDay(int64_t limit, std::mt19937_64* random) {
  HourlyAmounts hours;
  const size_t begin = (*random)() % kHoursOfDay;
  const size_t length = 1 + (*random)() % 10;
  for (size_t i = 0; i < kHoursOfDay; ++i) {
    const int64_t percent = (i < length ? 30 : 5) + static_cast<int64_t>((*random)() % 20);
    hours[(begin + i) % kHoursOfDay] = 1 + limit * percent / 100;
  }
  return hours;
}

// Expected use: 15 pods on each node of 1,000 workloads. No two nodes offer the same.
void BM_ScoreNodesByHour(benchmark::State& state) {
  std::mt19937_64 random(217);
  ClusterBuilder builder;
  ClusterState& cluster = builder.cluster();
  std::vector<PodShape> workloads;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t cpu = 500 + static_cast<int64_t>(random() % 4'000);
    const int64_t memory = kGi + static_cast<int64_t>(random() % (8 * kGi));
    const std::string name = "Deployment/" + std::to_string(i);
    SetUsage(name, UseOfDay(DrawDay(cpu, &random), DrawDay(memory, &random)), &cluster.objects());
    workloads.push_back(OfWorkload(builder.Shape({.limits = {{"cpu", cpu}, {"memory", memory}},
                                                  .requests = {{"cpu", cpu / 10}, {"memory", memory / 10}}}),
                                   name));
  }
  for (int64_t i = 0; i < state.range(0); ++i) {
    const int64_t memory = 64 * kGi - static_cast<int64_t>(random() % kGi);
    const std::string name = "node-" + std::to_string(i);
    builder.Node(name, {{"cpu", 16'000 - i % 500}, {"memory", memory}});
    std::vector<PodContent> contents;
    for (int pod = 0; pod < 15; ++pod) {
      const PodShape& shape = workloads[random() % workloads.size()];
      contents.push_back({cluster.pod_shapes().Acquire(shape), 0, "", "", shape.fingerprint});
    }
    const Slot slot{static_cast<int32_t>(i)};
    cluster.SetNode(slot, name, cluster.node_shape(slot), contents);
  }
  const std::vector<Slot> candidates = AllSlots(cluster);
  ExpectedUseOptions options;
  options.on = true;
  LimitColumns columns(StrictPolicy({{"cpu", 1}, {"memory", 1}}));
  columns.CatchUp(cluster, std::make_shared<const ExpectedUse>(options, cluster.objects(), kProfileTimeS));
  std::vector<int32_t> scores;
  size_t pod = 0;
  for (auto _ : state) {
    ScoreNodes(columns, cluster, workloads[pod++ % workloads.size()], candidates, &scores);
    benchmark::DoNotOptimize(scores.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ScoreNodesByHour)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace loadline
