#include "core/price/preferred.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/base/amount.h"

namespace loadline {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(TablePreferredNode, BoundsIncludeTheUpperOne) {
  const std::pair<int64_t, int64_t> shipped[] = {{0, 1},   {2, 1},    {3, 2},    {6, 2},
                                                 {7, 4},   {20, 4},   {21, 8},   {60, 8},
                                                 {61, 16}, {200, 16}, {201, 32}, {100000, 32}};
  for (const auto& [nodes, cpus] : shipped) {
    const NodeCapacity node = TablePreferredNode(PreferredTable::kClusterAutoscaler, nodes);
    EXPECT_EQ(node, (NodeCapacity{cpus * 1000, cpus * 3750 * kMiB})) << nodes;
  }
  const std::pair<int64_t, int64_t> proposal[] = {{1, 1},  {2, 1},  {3, 2},   {6, 2},    {7, 4},   {20, 4},
                                                  {21, 8}, {80, 8}, {81, 16}, {300, 16}, {301, 32}};
  for (const auto& [nodes, cpus] : proposal) {
    EXPECT_EQ(TablePreferredNode(PreferredTable::kProposal, nodes).milli_cpu, cpus * 1000) << nodes;
  }
}

PodDemand DemandOf(int64_t cpus, int64_t memory_mib, NodeCapacity largest = {100, kMiB}) {
  return {.total = {cpus * 1000, memory_mib * kMiB}, .largest = largest};
}

TEST(LearnPreferredNode, EntersTheRowsByCpus) {
  // p^5 <= cpus^2: 2^2.5 = 5.66, 4^2.5 = 32, 8^2.5 = 181.02, 16^2.5 = 1024, 32^2.5 = 5792.6.
  const std::pair<int64_t, int64_t> rows[] = {{0, 1},     {5, 1},     {6, 2},    {31, 2},
                                              {32, 4},    {181, 4},   {182, 8},  {1023, 8},
                                              {1024, 16}, {5792, 16}, {5793, 32}};
  for (const auto& [cpus, wanted] : rows) {
    EXPECT_EQ(LearnPreferredNode(DemandOf(cpus, cpus * 1024)).milli_cpu, wanted * 1000) << cpus;
  }
}

TEST(LearnPreferredNode, HasTheProportionsOfTheDemand) {
  EXPECT_EQ(LearnPreferredNode(DemandOf(32, 32 * 8192)).memory_bytes, 4 * 8192 * kMiB);
  EXPECT_EQ(LearnPreferredNode(DemandOf(32, 0)).memory_bytes, 0);
  EXPECT_EQ(LearnPreferredNode(PodDemand{}), (NodeCapacity{1000, 3750 * kMiB}));
}

TEST(LearnPreferredNode, GrowsInProportionUntilTheLargestPodFits) {
  EXPECT_EQ(LearnPreferredNode(DemandOf(32, 32 * 1024, {6000, kMiB})), (NodeCapacity{6000, 6 * 1024 * kMiB}));
  EXPECT_EQ(LearnPreferredNode(DemandOf(32, 32 * 1024, {100, 8 * 1024 * kMiB})),
            (NodeCapacity{8000, 8 * 1024 * kMiB}));
}

RC_GTEST_PROP(LearnPreferredNode, TakesTheLargestPodAndStaysWithinAmounts, ()) {
  PodDemand demand;
  const auto shapes = *rc::gen::inRange<size_t>(1, 6);
  for (size_t i = 0; i < shapes; ++i) {
    const NodeCapacity pod = {*rc::gen::inRange<int64_t>(0, kMaxAmount),
                              *rc::gen::inRange<int64_t>(0, kMaxAmount)};
    AddDemand(pod, *rc::gen::inRange<int64_t>(0, 1 << 30), &demand);
  }
  const NodeCapacity node = LearnPreferredNode(demand);
  RC_ASSERT(node.milli_cpu >= demand.largest.milli_cpu);
  RC_ASSERT(node.memory_bytes >= demand.largest.memory_bytes);
  RC_ASSERT(node.milli_cpu >= 1000 && node.milli_cpu <= kMaxAmount && node.memory_bytes <= kMaxAmount);
}

TEST(AddDemand, SumsSaturate) {
  PodDemand demand;
  AddDemand({500, kMiB}, 3, &demand);
  AddDemand({200, 2 * kMiB}, 0, &demand);
  EXPECT_EQ(demand.total, (NodeCapacity{1500, 3 * kMiB}));
  EXPECT_EQ(demand.largest, (NodeCapacity{500, kMiB}));
  AddDemand({kMaxAmount, kMaxAmount}, 1 << 30, &demand);
  EXPECT_EQ(demand.total, (NodeCapacity{kMaxAmount, kMaxAmount}));
}

TEST(Unfitness, LooksAtWhatItIsTold) {
  const NodeCapacity preferred = {8000, 30 << 20};
  EXPECT_EQ(Unfitness(preferred, {2000, 30 << 20}, UnfitnessResources::kCpuOnly), 4);
  EXPECT_EQ(Unfitness(preferred, {32000, 30 << 20}, UnfitnessResources::kCpuOnly), 4);
  EXPECT_EQ(Unfitness(preferred, {8000, 240 << 20}, UnfitnessResources::kCpuOnly), 1);
  EXPECT_EQ(Unfitness(preferred, {8000, 240 << 20}, UnfitnessResources::kCpuAndMemory), 8);
  EXPECT_EQ(Unfitness(preferred, {1000, 60 << 20}, UnfitnessResources::kCpuAndMemory), 8);
  EXPECT_EQ(Unfitness({8000, 0}, {8000, 240 << 20}, UnfitnessResources::kCpuAndMemory), 1);
  EXPECT_TRUE(std::isinf(Unfitness(preferred, {0, 1}, UnfitnessResources::kCpuOnly)));
}

}  // namespace
}  // namespace loadline
