// The input of a simulation: a cluster's groups, its load, its faults, and the settings of the loop under
// test.
#ifndef LOADLINE_CORE_SIM_SCENARIO_H_
#define LOADLINE_CORE_SIM_SCENARIO_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cpu_memory.h"
#include "core/base/strong_vector.h"
#include "core/cluster/expected_use.h"
#include "core/cluster/node_group.h"
#include "core/cluster/objects.h"
#include "core/observe/replacement_policy.h"

namespace loadline {

// The bounds of one simulation; a scenario beyond them is refused. Chosen: a year of a large cluster.
inline constexpr int64_t kMostSimDays = 400;
inline constexpr int64_t kMostSimGroups = 100;
inline constexpr int64_t kMostSimWorkloads = 2'000;
inline constexpr int64_t kMostSimNodes = 5'000;       // that all groups may have
inline constexpr int64_t kMostSimPods = 200'000;      // that all workloads want at their peaks
inline constexpr int64_t kMostSimArrivals = 200'000;  // of a trace
inline constexpr int64_t kMostSimPodsEver = 2'000'000;
inline constexpr int64_t kMostSimSeconds = kMostSimDays * 86'400;

// Nodes that are alike.
struct SimGroup {
  std::string name;
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  // At the start, in [min_nodes, max_nodes].
  int64_t nodes = 0;
  CpuMemory allocatable;
  int64_t pods = 110;
  int64_t gpus = 0;
  double usd_per_hour = 0;
  // From the order of a machine to its node, drawn evenly.
  int64_t start_s_min = 60;
  int64_t start_s_max = 90;
  // From its node to a node that is ready, and from a deletion that the cloud has taken to its end.
  int64_t ready_s = 10;
  int64_t stop_s = 30;
  // The cloud may take its machines back.
  bool spot = false;
  // Only pods that name the group go there.
  bool tainted = false;
  // Empty: its nodes have none.
  std::string zone;
};

// The kinds of workloads.
enum class SimWorkloadKind {
  kDeployment,  // as many replicas as the hour of the week asks for
  kBatch,       // waves of jobs, which run for a time and end
  kDaemon,      // a pod on each node
  kTrace,       // pods at given times, which run for a time and end
};

// A time of more replicas.
struct SimBurst {
  int64_t at_s = 0;
  int64_t for_s = 0;
  int64_t replicas = 0;  // beside those of the curve
};

// The arrival of pods of a trace, in seconds since the begin of the simulation.
struct SimArrival {
  int64_t at_s = 0;
  int64_t count = 1;
};

// The course of a day.
enum class SimUsePattern { kHours, kFlat, kOfficeHours, kNightBatch };

// The use of a pod in each hour of the day. See message SimulatedUse.
struct SimUse {
  SimUsePattern pattern = SimUsePattern::kHours;
  int64_t cpu_peak_percent = 0;  // of the limit
  int64_t memory_peak_percent = 0;
  int64_t phase_hours = 0;
  // Amounts with kHours; an hour of 0 is not known.
  HourlyAmounts cpu_milli = {};
  HourlyAmounts memory_bytes = {};
  // The most by which the use differs from that, either way.
  int64_t deviation_percent = 0;
};

// Its position in its scenario.
enum class SimWorkloadIndex : int32_t {};

// A workload: its pods, and how their number changes.
struct SimWorkload {
  std::string name;
  SimWorkloadKind kind = SimWorkloadKind::kDeployment;
  // The pods of kDeployment at the peak, or of kBatch in each wave.
  int64_t replicas = 0;
  CpuMemory request;
  CpuMemory limit;  // 0: none
  int64_t gpus = 0;
  int32_t priority = 0;
  // The group that its pods name; empty: any that is not tainted.
  std::string group;
  int64_t grace_s = 30;
  // cluster-autoscaler.kubernetes.io/safe-to-evict: "false".
  bool not_evictable = false;
  // Two budgets select its pods: the API server evicts none of them.
  bool two_budgets = false;
  // Its pods say that they are of a DaemonSet, which there is not.
  bool forged_owner = false;
  // No two of its pods are on one node: required anti-affinity by hostname.
  bool apart = false;
  // Zones differ by at most so many of its pods: a required spread constraint. 0: there is none.
  int64_t max_zone_skew = 0;
  // Its pods go only to nodes that an operator has labelled: see SimFaults::hand_mark.
  bool labelled_nodes_only = false;
  // From the node to Ready, drawn evenly.
  int64_t start_s_min = 2;
  int64_t start_s_max = 10;

  // The pods that are missing at the quietest hour, and on Saturday and Sunday; percent of the replicas.
  int64_t daily_percent = 0;
  int64_t weekend_percent = 0;
  int64_t peak_s = 14 * 3600;  // of the day
  std::vector<SimBurst> bursts;
  // A new revision each so many seconds; 0: never. `surge_percent` of the replicas come before others go.
  int64_t rollout_every_s = 0;
  int64_t surge_percent = 25;
  // The number of its pods that may be disrupted at once; below 0: there is no budget.
  int64_t max_unavailable = -1;

  // The first wave and the time between two, for kBatch; and for kBatch and kTrace the time for which a pod
  // runs.
  int64_t first_s = 0;
  int64_t every_s = 0;
  int64_t run_s_min = 60;
  int64_t run_s_max = 600;
  std::vector<SimArrival> arrivals;
  // nullopt: a pod uses what it requests.
  std::optional<SimUse> use;
};

// The score by which the simulated scheduler chooses among feasible nodes.
enum class SimScore { kLeastAllocated, kMostAllocated, kLimitAware };

// The line of each resource over allocatable, in thousandths; 0: none.
struct SimLine {
  int64_t cpu = 0;
  int64_t memory = 0;

  bool any() const { return cpu > 0 || memory > 0; }
};

// How the scheduler and the loop under test are set. Defaults are those of the autoscaler.
struct SimSettings {
  SimScore score = SimScore::kLeastAllocated;
  int64_t scan_interval_s = 10;
  double utilization_threshold = 0.5;
  int64_t unneeded_time_s = 600;
  int64_t unready_time_s = 1200;
  int64_t max_scale_down_parallelism = 10;
  int64_t max_drain_parallelism = 5;
  // The nodes of each group that may be removed at once, for whatever reason; 0: any number.
  int64_t node_budget = 0;
  bool scale_down = true;
  // The times in which no node is removed: after a group has grown, after a node was removed, and after
  // tainting has failed.
  int64_t after_add_s = 600;
  int64_t after_delete_s = 0;
  int64_t after_failure_s = 180;
  // Until an eviction that was refused is tried again, and until it is seen whether pods have ended.
  int64_t eviction_retry_ms = 10'000;
  int64_t poll_ms = 5'000;
  // Younger pods do not wait for a node yet: see WaitingRules.
  int64_t new_pod_scale_up_delay_s = 0;
  // Growth waits for further pods, see GrowthBatch.
  int64_t batch_idle_ms = 1'000;
  int64_t batch_max_ms = 10'000;
  // Room that is kept beside what pods request, as a share of that. Placeholders are those of the planner: no
  // pods of the cluster stand for them.
  int64_t slack_percent = 10;
  // Machines that have no node after so long are given up.
  int64_t max_node_provision_s = 900;
  // Nodes are replaced by cheaper ones, by this policy; needs `scale_down`.
  bool replace = false;
  ReplacementPolicy replacement;
  // Deployments that shrink give up the pods of nodes first that could go; needs `scale_down`.
  bool downscale_order = false;
  // How the expected use of pods counts for scheduler and loop, and the load line that both keep to.
  ExpectedUseOptions expected_use;
  SimLine limits_line;
  SimLine expected_line;  // needs `expected_use`
  // LimitPolicy::blockers_together of the score; it takes kLimitAware.
  int64_t blockers_together = 0;
  bool HasLine() const { return limits_line.any() || expected_line.any(); }
  // A loop runs also where nothing has changed: for tests.
  bool run_every_loop = false;
};

// The faults and their frequencies: chances in a million. None by default.
struct SimFaults {
  // From a change to the loop's view of it, drawn evenly.
  int64_t watch_lag_ms_min = 0;
  int64_t watch_lag_ms_max = 0;
  // A change that the watch loses; the next full list has it.
  int64_t lost_event = 0;
  int64_t relist_s = 600;
  // An order of machines for which there is no capacity; the group has none for so long.
  int64_t stock_out = 0;
  int64_t stock_out_s = 1800;
  // A machine that never becomes a node; one that takes ten times as long.
  int64_t phantom = 0;
  int64_t slow_start = 0;
  // Devices are offered so long after the node is ready.
  int64_t late_devices_s = 0;
  // Calls that change something which the cloud answers in a minute; 0: any number.
  int64_t calls_per_minute = 0;
  // A call that fails and changes nothing; one whose answer is lost, so that nobody knows whether it did; a
  // list of machines that fails.
  int64_t failed_call = 0;
  int64_t lost_answer = 0;
  int64_t failed_list = 0;
  // In an hour: the cloud tells nothing of a group for so long, though it lists the others.
  int64_t unread_group = 0;
  int64_t unread_group_s = 1200;
  // A machine that cannot be created, as the cloud says later; an order that the cloud takes back later; a
  // deletion that takes so long although the cloud has acknowledged it.
  int64_t failed_machine = 0;
  int64_t taken_back = 0;
  int64_t stuck_deletion = 0;
  int64_t stuck_deletion_s = 3600;
  // In an hour and for each group: somebody else lets it grow or deletes one of its machines.
  int64_t hand_scaling = 0;
  // Likewise: an operator labels, taints, cordons or annotates one of its nodes, for so long. The annotation
  // keeps the node.
  int64_t hand_mark = 0;
  int64_t hand_mark_s = 7200;
  // A new node with a startup taint, for so long at most, drawn evenly.
  int64_t startup_taint = 0;
  int64_t startup_taint_s = 120;
  // In an hour: a spot machine is taken back two minutes after it was said; a node is not ready for a while;
  // a node is gone.
  int64_t spot_interruption = 0;
  int64_t node_unready = 0;
  int64_t node_unready_s = 300;
  int64_t node_lost = 0;
  // Likewise: a node is ready and not ready by turns of ten seconds, for some minutes; one is gone and
  // registers again by the same name a minute later.
  int64_t node_flaps = 0;
  int64_t node_returns = 0;
  // A change that is reported twice; a full list of pods that lacks some or all of them, until the next one a
  // minute later.
  int64_t doubled_event = 0;
  int64_t broken_list = 0;
  // An eviction or a taint that the API server answers with an error. In an hour: the loop does not reach the
  // API server for so long.
  int64_t failed_write = 0;
  int64_t api_down = 0;
  int64_t api_down_s = 300;
  // A pod that takes so long to end beyond its grace period.
  int64_t stuck_pod = 0;
  int64_t stuck_pod_s = 1800;
  // The process that leads ends, in an hour and at each thing that it does, before it has taken note of it.
  // The next one continues with the state that was kept, which is an older one where a write of it failed.
  int64_t leader_ends = 0;
  int64_t leader_ends_acting = 0;
  int64_t failed_state_write = 0;
  // By how much the clock of each leader is wrong at most, either way.
  int64_t leader_clock_ms = 0;
  friend bool operator==(const SimFaults&, const SimFaults&) = default;
};

// A field of SimFaults, by its name in scenario files, and the most that it may be.
struct SimFaultField {
  const char* name;
  int64_t SimFaults::*value;
  int64_t lowest = 0;
  int64_t highest = 1'000'000;
};
std::span<const SimFaultField> SimFaultFields();

// The question of a simulation; CheckScenario() checks it.
struct Scenario {
  StrongVector<GroupIndex, SimGroup> groups;
  StrongVector<SimWorkloadIndex, SimWorkload> workloads;
  SimSettings settings;
  SimFaults faults;
  int64_t days = 1;
  // The seconds after which it ends if the days do not end before; 0: no such end.
  int64_t duration_s = 0;
  uint64_t seed = 1;
  // How often workloads follow their curves.
  int64_t load_step_s = 300;

  // Returns whether a workload states what its pods use.
  bool StatesUse() const {
    return std::any_of(workloads.begin(), workloads.end(),
                       [](const SimWorkload& workload) { return workload.use.has_value(); });
  }
};

// kInvalidArgument, with the field, where a value is out of its range, names are not unique, or it is all too
// much for one simulation.
absl::Status CheckScenario(const Scenario& scenario);

// How many replicas a deployment wants at this time, in seconds since the Monday on which all begins. Whole
// numbers only: the same on every machine. The curve falls from its peak to its lowest point twelve hours
// later and rises again, smoothly.
int64_t WantedReplicas(const SimWorkload& workload, int64_t at_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SCENARIO_H_
