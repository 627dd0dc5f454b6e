// A lower bound for the cost of nodes for the pods of a simulated cluster.
#ifndef LOADLINE_CORE_SIM_BILL_BOUND_H_
#define LOADLINE_CORE_SIM_BILL_BOUND_H_

#include <cstdint>
#include <vector>

#include "core/base/cpu_memory.h"
#include "core/sim/world.h"

namespace loadline {

// The least that any set of nodes costs in an hour which offers so many cores and so much memory: the linear
// program
//
//   min sum of price * nodes   where   sum of cpu * nodes >= cpu,  sum of memory * nodes >= memory
//
// over parts of nodes, without maxima, devices, and numbers of pods: a lower bound of each packing, and as a
// rule one that none attains. By duality it is the greatest value of u * cpu + v * memory over the corners of
// {u, v >= 0: u * cpu + v * memory <= price for each group}, which do not depend on the pods.
class BillBound {
 public:
  // Cost: O(groups^3).
  explicit BillBound(const std::vector<SimGroup>& groups);
  // Cost: O(corners).
  double UsdPerHour(const CpuMemory& requested) const;

 private:
  struct Corner {
    double usd_per_cpu = 0;
    double usd_per_memory = 0;
  };
  std::vector<Corner> corners_;
};

// Follows what the pods on nodes request, and sums up what nodes for them cost at least.
class BillBoundWatch : public SimObserver {
 public:
  // `world` outlives it.
  explicit BillBoundWatch(const World* world);
  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex) override {}
  void WorkloadChanged(SimWorkloadIndex) override {}

  double UsdPerHour() const { return usd_per_hour_; }
  // Until now.
  double Usd() const;

 private:
  const World& world_;
  BillBound bound_;
  StrongVector<SimPodIndex, bool> on_node_;
  CpuMemory requested_;
  double usd_per_hour_ = 0;
  double usd_ = 0;
  int64_t since_ms_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_BILL_BOUND_H_
