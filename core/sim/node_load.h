// How loaded the nodes of a simulated cluster are over time, and how many there are.
#ifndef LOADLINE_CORE_SIM_NODE_LOAD_H_
#define LOADLINE_CORE_SIM_NODE_LOAD_H_

#include <cstdint>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/sim/world.h"

namespace loadline {

// Limits over allocatable and numbers of nodes, over all moments that were looked at.
struct SimLoad {
  // 99th percentile, by nearest rank, over each node at each moment; in hundredths, rounded up, and at most
  // NodeLoadWatch::kHighest.
  double cpu_p99 = 0;
  double memory_p99 = 0;
  double nodes_mean = 0;
  int64_t nodes_max = 0;
};

// Follows what the pods on each node are limited to. A pod without a limit counts as nothing, as for the
// scheduler's scores.
class NodeLoadWatch : public SimObserver {
 public:
  static constexpr int64_t kHighest = 100;

  // `world` outlives it.
  explicit NodeLoadWatch(const World* world);
  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex) override {}
  void WorkloadChanged(SimWorkloadIndex) override {}

  // Looks at all nodes. Cost: O(nodes).
  void Look();
  SimLoad Load() const;

 private:
  const World& world_;
  StrongVector<SimPodIndex, OptionalIndex<SimNodeIndex>> node_of_;
  StrongVector<SimNodeIndex, CpuMemory> limits_;  // of the pods there
  // The number of samples of all nodes, by the load in hundredths.
  std::vector<int64_t> cpu_;
  std::vector<int64_t> memory_;
  int64_t moments_ = 0;
  int64_t nodes_ = 0;  // summed over moments
  int64_t nodes_max_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_NODE_LOAD_H_
