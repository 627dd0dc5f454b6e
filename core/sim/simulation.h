// Days of a cluster in seconds: the loop that acts on real clusters, on a simulated one.
#ifndef LOADLINE_CORE_SIM_SIMULATION_H_
#define LOADLINE_CORE_SIM_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/work_budget.h"
#include "core/sim/move_log.h"
#include "core/sim/node_load.h"
#include "core/sim/scenario.h"

namespace loadline {

// A moment.
struct SimSample {
  int64_t at_s = 0;
  int64_t nodes = 0;
  int64_t on_the_way = 0;  // machines without a node
  int64_t pods = 0;        // with and without a node
  int64_t waiting = 0;
  double usd_per_hour = 0;
  double bound_usd_per_hour = 0;  // see BillBound
  // How long those pods had waited that found a node since the sample before, in seconds.
  double wait_p50 = 0;
  double wait_p95 = 0;
  double wait_max = 0;
  SimUseNow use;  // all 0 where no workload states it
};

// The times for which pods waited for a node, in seconds. Pods of DaemonSets do not wait.
struct SimWaits {
  int64_t pods = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double max = 0;
  // The number of pods by waiting time: up to each of kWaitBounds, and longer.
  std::vector<int64_t> histogram;
};
inline constexpr int64_t kWaitBounds[] = {0, 1, 10, 30, 60, 90, 120, 180, 300, 600, 1200, 3600};

// The result of a simulation.
struct SimResult {
  // The digest of all that happened, but for which loops were run. Equal scenarios with equal seeds have
  // equal ones.
  uint64_t digest = 0;
  int64_t loops = 0;  // that were run
  double usd = 0;
  double bound_usd = 0;  // that it costs at least, see BillBound
  SimWaits waits;
  SimLoad load;
  SimMoves moves;
  int64_t evictions = 0;
  int64_t refused_evictions = 0;
  int64_t growths = 0;  // orders of machines
  int64_t nodes_added = 0;
  int64_t nodes_removed = 0;
  int64_t left_waiting = 0;  // pods that had no node at the end
  std::vector<std::string> violations;
  std::vector<SimSample> series;  // at most kMostSimSamples, evenly
  // Not empty: what ended before the days did, and this is what was simulated until then: what of the budget,
  // or "pods" where there were more than kMostSimPodsEver.
  std::string cut_short_by;
};
inline constexpr int64_t kMostSimSamples = 1'500;  // chosen: a sample a minute for a day

// Runs a scenario that has passed CheckScenario(). One unit of `budget` is an event.
// Deterministic. Cost: O(events * log) and that of PlanLoop() for each loop that is run.
SimResult Simulate(const Scenario& scenario, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SIMULATION_H_
