#include "core/price/preferred.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/numeric/int128.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

constexpr int64_t kMilliPerCpu = 1000;
// Published: Cluster Autoscaler's price expander prefers nodes with 3,750 MiB for each CPU.
constexpr int64_t kMemoryPerCpu = int64_t{3750} << 20;

// The largest cluster of each row; the last one has no bound. Row i is for 2^i CPUs.
using Bounds = std::array<int64_t, 6>;
constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
constexpr Bounds kClusterAutoscalerBounds = {2, 6, 20, 60, 200, kNoBound};
constexpr Bounds kProposalBounds = {2, 6, 20, 80, 300, kNoBound};

NodeCapacity OfCpus(int64_t cpus) { return {cpus * kMilliPerCpu, cpus * kMemoryPerCpu}; }

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  const absl::int128 product = absl::int128(a) * b;
  return product > kMaxAmount ? kMaxAmount : static_cast<int64_t>(product);
}

// a * b / c, rounded up, at most kMaxAmount. c > 0.
int64_t Scale(int64_t a, int64_t b, int64_t c) {
  const absl::int128 scaled = (absl::int128(a) * b + (c - 1)) / c;
  return scaled > kMaxAmount ? kMaxAmount : static_cast<int64_t>(scaled);
}

double Ratio(int64_t preferred, int64_t node) {
  const auto p = static_cast<double>(preferred);
  const auto n = static_cast<double>(node);
  return std::max(p / n, n / p);
}

}  // namespace

NodeCapacity TablePreferredNode(PreferredTable table, int64_t cluster_nodes) {
  const Bounds& bounds = table == PreferredTable::kProposal ? kProposalBounds : kClusterAutoscalerBounds;
  const auto row =
      std::find_if(bounds.begin(), bounds.end() - 1, [&](int64_t bound) { return cluster_nodes <= bound; });
  return OfCpus(int64_t{1} << (row - bounds.begin()));
}

void AddDemand(NodeCapacity pod, int64_t count, PodDemand* demand) {
  if (count <= 0) return;
  demand->total.milli_cpu = SaturatingAdd(demand->total.milli_cpu, SaturatingMultiply(pod.milli_cpu, count));
  demand->total.memory_bytes =
      SaturatingAdd(demand->total.memory_bytes, SaturatingMultiply(pod.memory_bytes, count));
  demand->largest.milli_cpu = std::max(demand->largest.milli_cpu, pod.milli_cpu);
  demand->largest.memory_bytes = std::max(demand->largest.memory_bytes, pod.memory_bytes);
}

NodeCapacity LearnPreferredNode(const PodDemand& demand) {
  // Beyond 32^2.5 CPUs nothing changes, and the square stays small.
  const int64_t cpus = std::min<int64_t>(demand.total.milli_cpu / kMilliPerCpu, 1'000'000);
  int64_t size = 1;
  for (int64_t next = 2; next <= 32 && next * next * next * next * next <= cpus * cpus; next *= 2)
    size = next;
  NodeCapacity node = OfCpus(size);
  if (demand.total.milli_cpu > 0) {
    node.memory_bytes = Scale(node.milli_cpu, demand.total.memory_bytes, demand.total.milli_cpu);
  }
  if (demand.largest.milli_cpu > node.milli_cpu) {
    node.memory_bytes = Scale(node.memory_bytes, demand.largest.milli_cpu, node.milli_cpu);
    node.milli_cpu = demand.largest.milli_cpu;
  }
  if (demand.largest.memory_bytes > node.memory_bytes && node.memory_bytes > 0) {
    node.milli_cpu = Scale(node.milli_cpu, demand.largest.memory_bytes, node.memory_bytes);
    node.memory_bytes = demand.largest.memory_bytes;
  }
  return node;
}

double Unfitness(NodeCapacity preferred, NodeCapacity node, UnfitnessResources resources) {
  const double cpu = Ratio(preferred.milli_cpu, node.milli_cpu);
  if (resources == UnfitnessResources::kCpuOnly || preferred.memory_bytes == 0) return cpu;
  return std::max(cpu, Ratio(preferred.memory_bytes, node.memory_bytes));
}

}  // namespace loadline
