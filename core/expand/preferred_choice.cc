#include "core/expand/preferred_choice.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/base/resource_names.h"

namespace loadline {
namespace {

PodDemand PendingDemand(std::span<const PodRequests> pods, std::span<const ExpansionOption> options) {
  std::vector<int64_t> most(pods.size());
  std::vector<int64_t> of_option(pods.size());
  for (const ExpansionOption& option : options) {
    for (const PodRun& run : option.pods) of_option[run.pod] += run.count;
    for (const PodRun& run : option.pods) {
      most[run.pod] = std::max(most[run.pod], of_option[run.pod]);
      of_option[run.pod] = 0;
    }
  }
  PodDemand demand;
  for (size_t i = 0; i < pods.size(); ++i) {
    AddDemand({pods[i].milli_cpu, pods[i].memory_bytes}, most[i], &demand);
  }
  return demand;
}

}  // namespace

PodDemand RunningDemand(const ClusterState& cluster) {
  std::vector<int64_t> pods_of_shape;
  for (int32_t slot = 0; slot < cluster.slot_end(); ++slot) {
    if (!cluster.Occupied(Slot{slot})) continue;
    for (const NodePods::Pod& pod : cluster.pods(Slot{slot}).pods()) {
      const auto shape = static_cast<size_t>(pod.shape);
      if (shape >= pods_of_shape.size()) pods_of_shape.resize(shape + 1);
      ++pods_of_shape[shape];
    }
  }
  PodDemand demand;
  for (size_t i = 0; i < pods_of_shape.size(); ++i) {
    if (pods_of_shape[i] == 0) continue;
    const ResourceAmounts& requests = cluster.pod_shapes()[static_cast<int32_t>(i)].requests;
    AddDemand({requests.Get(kCpu), requests.Get(kMemory)}, pods_of_shape[i], &demand);
  }
  return demand;
}

std::optional<NodeCapacity> ChoosePreferredNode(PreferredTable table, const GrowingCluster& cluster,
                                                std::span<const PodRequests> pods,
                                                std::span<const ExpansionOption> options) {
  if (table == PreferredTable::kLearned) {
    PodDemand demand = cluster.running;
    const PodDemand pending = PendingDemand(pods, options);
    AddDemand(pending.total, 1, &demand);
    demand.largest = cluster.running.largest;
    demand.largest.milli_cpu = std::max(demand.largest.milli_cpu, pending.largest.milli_cpu);
    demand.largest.memory_bytes = std::max(demand.largest.memory_bytes, pending.largest.memory_bytes);
    return LearnPreferredNode(demand);
  }
  if (!cluster.nodes.has_value()) return std::nullopt;
  return TablePreferredNode(table, *cluster.nodes);
}

}  // namespace loadline
