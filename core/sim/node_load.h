// How loaded the nodes of a simulated cluster are over time, what their pods use, and how many there are.
#ifndef LOADLINE_CORE_SIM_NODE_LOAD_H_
#define LOADLINE_CORE_SIM_NODE_LOAD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/cpu_memory.h"
#include "core/sim/random_stream.h"
#include "core/sim/sim_use.h"
#include "core/sim/world.h"

namespace loadline {

// The time in which pods use more than their nodes offer. See message SimulatedOverload.
struct SimOverload {
  double cpu_node_hours = 0;
  double memory_node_hours = 0;
  double cpu_volume = 0;
  double memory_volume = 0;
};

// Limits over allocatable and numbers of nodes, over all moments that were looked at.
struct SimLoad {
  // 99th percentile, by nearest rank, over each node at each moment; in hundredths, rounded up, and at most
  // NodeLoadWatch::kHighest.
  double cpu_p99 = 0;
  double memory_p99 = 0;
  double nodes_mean = 0;
  int64_t nodes_max = 0;
  std::optional<SimOverload> overload;  // nullopt: no workload states its use
};

// The use of all nodes at one moment.
struct SimUseNow {
  // Use over allocatable on the node where it is highest.
  double busiest_cpu = 0;
  double busiest_memory = 0;
  int64_t overloaded = 0;  // nodes
};

// Follows what the pods on each node are limited to. A pod without a limit counts as nothing, as for the
// scheduler's scores. Where a workload states its use, the watch also follows what pods use, from the moment
// at which they are bound until they are gone: it changes with the hour.
class NodeLoadWatch : public SimObserver {
 public:
  static constexpr int64_t kHighest = 100;
  // The share of allocatable above which memory is overloaded.
  static constexpr int64_t kMemoryPercent = 97;

  // `world` outlives it.
  explicit NodeLoadWatch(const World* world);
  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex) override {}
  void WorkloadChanged(SimWorkloadIndex) override {}

  // Upon kUseHour, and before anything else happens. Cost: O(workloads + pods on nodes).
  void NextHour();
  // Looks at all nodes. Cost: O(nodes).
  void Look();
  SimUseNow UseNow() const;
  SimLoad Load() const;

 private:
  // The use of the pods on a node, since when.
  struct NodeUse {
    CpuMemory now;
    int64_t since_ms = 0;
  };
  // Sums over nodes.
  struct Overload {
    int64_t cpu_ms = 0;
    int64_t memory_ms = 0;
    absl::int128 cpu_volume = 0;  // milliseconds times millionths of a node
    absl::int128 memory_volume = 0;
  };

  const CpuMemory& AllocatableOf(SimNodeIndex node) const {
    return world_.group(world_.node(node).group).allocatable;
  }
  int64_t RealUse(int64_t reported, int64_t request, int64_t limit, int64_t percent) const;
  void ChangeUse(SimNodeIndex node, SimWorkloadIndex workload, bool added);
  void AddUntilNow(SimNodeIndex node, Overload* overload) const;

  const World& world_;
  StrongVector<SimPodIndex, OptionalIndex<SimNodeIndex>> node_of_;
  StrongVector<SimNodeIndex, CpuMemory> limits_;  // of the pods there
  // The number of samples of all nodes, by the load in hundredths.
  std::vector<int64_t> cpu_;
  std::vector<int64_t> memory_;
  int64_t moments_ = 0;
  int64_t nodes_ = 0;  // summed over moments
  int64_t nodes_max_ = 0;
  // The use of pods by the hour; empty: no workload states it.
  StrongVector<SimWorkloadIndex, SimHours> reported_;
  StrongVector<SimWorkloadIndex, CpuMemory> use_;  // of a pod in this hour
  StrongVector<SimNodeIndex, NodeUse> nodes_use_;
  RandomStream chance_;
  Overload overload_;  // but for what nodes have used since their last change
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_NODE_LOAD_H_
