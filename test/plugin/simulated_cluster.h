// A cluster as an autoscaler meets it, with its workloads, a scheduler and a cloud: sent to the engine as
// messages, and changed by the engine's answers.
#ifndef LOADLINE_TEST_PLUGIN_SIMULATED_CLUSTER_H_
#define LOADLINE_TEST_PLUGIN_SIMULATED_CLUSTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "loadline/v1/loop.pb.h"
#include "test/plugin/random_cluster.h"

namespace loadline {

// CPU in millicores, memory in MiB.
struct SimulatedSize {
  int64_t milli_cpu = 0;
  int64_t mib = 0;
};

struct SimulatedGroup {
  std::string name;
  SimulatedSize node;
  double usd_per_hour = 1;
  int64_t min_nodes = 0;
  int64_t max_nodes = 0;
  int32_t backs_off = 0;  // loops for which it is blocked after a machine failed to start
  std::string zone = {};  // of its nodes; empty: they have none
  bool tainted = false;   // its nodes take only pods that tolerate that
};

// The rules of pods of a workload beside room.
struct SimulatedRules {
  bool alone = false;                           // no two of them on one node
  bool tolerates = false;                       // the taint of groups
  std::string zone = {};                        // their nodes are of this zone; empty: of any or none
  std::optional<int64_t> max_unavailable = {};  // of their disruption budget; nullopt: they have none
  bool none() const { return !alone && !tolerates && zone.empty() && !max_unavailable.has_value(); }
};

struct SimulatedPod {
  size_t workload;
  int64_t number;
};

struct SimulatedNode {
  std::string name;
  int64_t number;  // tells its UID
  size_t group;
  std::vector<SimulatedPod> pods;
  SimulatedSize free;
  int32_t leaves = -1;  // loops until it is gone; -1: it stays
};

// A machine that was asked for and is not a node yet.
struct SimulatedMachine {
  size_t group;
  int32_t loops;
  bool fails;
};

// The faults: one in so many; 0: none.
struct SimulatedFaults {
  size_t failed_machines = 0;
  size_t lost_nodes = 0;    // per loop and cluster
  int32_t start_loops = 0;  // a machine is a node after up to so many loops more
  int32_t drain_loops = 0;  // loops between the taint of a node and its end
};

// Pods of a workload are equal, as those of a ReplicaSet are.
class SimulatedCluster {
 public:
  static constexpr int64_t kPodsPerNode = 110;
  static constexpr int64_t kStart = 1'800'000'000;

  explicit SimulatedCluster(uint64_t seed) : random_(seed) {}

  size_t AddGroup(SimulatedGroup group);
  size_t AddWorkload(const SimulatedSize& pod, const SimulatedRules& rules = {});
  // A node that is there at once; returns its slot.
  int32_t AddNode(size_t group);
  // Pods that run there at once, as far as there is room.
  void Fill(int32_t slot, size_t workload, int64_t pods);
  // Ends pods of the workload or adds some that wait.
  void Scale(size_t workload, int64_t replicas);
  // Ends one pod that runs, if any does, and adds one that waits.
  void ReplaceOne(int32_t slot);
  void set_faults(const SimulatedFaults& faults) { faults_ = faults; }

  // A scheduler: each pod that waits is placed on the first node, by slot, that has room.
  void Schedule();
  // Another one, which spreads: each pod that waits is placed on any node that has room.
  void ScheduleAnywhere();
  // Asks the cloud for machines, and starts to remove nodes.
  void Act(const v1::PlanLoopResponse& answer);
  // Time passes: machines come or fail, nodes go, some are lost.
  void Step(int64_t seconds);

  // The whole cluster, in messages of so many nodes.
  std::vector<v1::Changes> FullList(int32_t nodes_per_message = 500);
  // Returns the changes since the last FullList() or Deltas(), step by step; at least one.
  std::vector<v1::Changes> Deltas(int32_t nodes_per_message = 500);
  // Names the state after the last of them.
  v1::Changes At() const;
  // The whole cluster as one that serves a question only.
  v1::Changes Own() const;
  // Groups, pods that wait, time and progress; the cluster and options are the caller's.
  v1::PlanLoopRequest Question();

  const std::vector<SimulatedGroup>& groups() const { return groups_; }
  const std::map<int32_t, SimulatedNode>& nodes() const { return nodes_; }
  const std::vector<SimulatedMachine>& machines() const { return machines_; }
  const SimulatedSize& pod(size_t workload) const { return workloads_[workload]; }
  const SimulatedRules& rules(size_t workload) const { return rules_[workload]; }
  // Returns whether the pod's rules permit nodes of the group, whatever runs there.
  bool Permits(size_t workload, size_t group) const;
  static int64_t PodsOf(const SimulatedNode& node, size_t workload);
  size_t workloads() const { return workloads_.size(); }
  int64_t waiting(size_t workload) const { return waiting_[workload]; }
  int64_t AllWaiting() const;
  int64_t Running(size_t workload) const;
  // Nodes of a group, and machines that come to it.
  int64_t CurrentNodes(size_t group) const;
  int64_t now() const { return now_; }
  bool Quiet() const;  // no node is added or removed
  static std::string Uid(int64_t number);
  static std::string ProviderId(const SimulatedNode& node);

 private:
  std::string NodeBytes(const SimulatedNode& node) const;
  // `running`: as it is on a node, and ready.
  std::string PodBytes(size_t workload, bool running) const;
  v1::NodeRecord Record(int32_t slot) const;
  void AddShapes(v1::Changes* changes) const;
  // With as many replicas as they want now, and their budgets with what those have left.
  void AddOwners(v1::Changes* changes) const;
  v1::ClusterObject Budget(size_t workload) const;
  v1::Changes Header() const;
  bool Fits(const SimulatedNode& node, size_t workload) const;
  void Bind(int32_t slot, size_t workload);
  void End(int32_t slot, size_t position);
  void Lose(int32_t slot);

  Random random_;
  std::vector<SimulatedGroup> groups_;
  std::vector<SimulatedSize> workloads_;
  std::vector<SimulatedRules> rules_;       // by workload
  std::vector<int64_t> waiting_;            // by workload
  std::map<int32_t, SimulatedNode> nodes_;  // by slot
  std::set<int32_t> free_slots_;
  int32_t slot_end_ = 0;
  std::vector<SimulatedMachine> machines_;
  SimulatedFaults faults_;
  int64_t now_ = kStart;
  int64_t made_ = 0;  // nodes and pods, for their names
  int64_t epoch_ = 0;
  int64_t revision_ = 0;
  std::set<int32_t> changed_;  // slots
};

}  // namespace loadline

#endif  // LOADLINE_TEST_PLUGIN_SIMULATED_CLUSTER_H_
