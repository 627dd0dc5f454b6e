// Scoring in the core: strict preset, cpu and memory, min-max normalization included.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "core/score/limit_score.h"
#include "test/testing/cluster_builder.h"
#include "test/testing/units.h"

namespace loadline {
namespace {

void BM_ScoreNodes(benchmark::State& state) {
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
  LimitColumns columns(StrictPolicy({{"cpu", 1}, {"memory", 1}}));
  columns.CatchUp(builder.cluster());
  std::vector<int32_t> scores;
  size_t pod = 0;
  for (auto _ : state) {
    ScoreNodes(columns, builder.cluster(), pods[pod++ % pods.size()], candidates, &scores);
    benchmark::DoNotOptimize(scores.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ScoreNodes)->Arg(5'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace loadline
