// The cluster as it is: pods, nodes and machines, and what may be done to them. Observers are informed of
// each event.
#ifndef LOADLINE_CORE_SIM_WORLD_H_
#define LOADLINE_CORE_SIM_WORLD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/fingerprint.h"
#include "core/base/strong_vector.h"
#include "core/sim/event_queue.h"
#include "core/sim/random_stream.h"
#include "core/sim/scenario.h"

namespace loadline {

// 00:00 UTC on a Monday; simulations begin there.
inline constexpr int64_t kSimEpochS = 1'699'833'600;

// The phases of a pod, in their order.
enum class SimPodPhase : uint8_t { kWaiting, kStarting, kRunning, kTerminating, kGone };

// Pods, nodes and machines have numbers of their own, which are never used again.
enum class SimPodIndex : int32_t {};
enum class SimNodeIndex : int32_t {};
enum class SimMachineIndex : int32_t {};
// A position in a list of some of them whose order means nothing.
enum class SimPlace : int32_t {};

// A pod of the simulated cluster.
struct SimPod {
  SimWorkloadIndex workload{};
  int32_t revision = 0;
  OptionalIndex<SimNodeIndex> node;  // stays when it has left it
  OptionalIndex<SimPlace> place;     // among the pods of its node; none: on none
  int64_t created_ms = 0;
  int64_t bound_ms = 0;
  int64_t terminating_ms = 0;
  SimPodPhase phase = SimPodPhase::kWaiting;
  bool unschedulable = false;  // the scheduler has tried it in vain
  bool evicted = false;

  OptionalIndex<SimNodeIndex> on() const { return place.has_value() ? node : std::nullopt; }
};

// The marks that an operator puts on a single node, and takes off again.
enum class SimMark : uint8_t { kLabel, kTaint, kCordon, kKeep };
inline constexpr int32_t kSimMarks = 4;
constexpr uint8_t BitOf(SimMark mark) { return static_cast<uint8_t>(1 << static_cast<int>(mark)); }
inline constexpr int8_t kNoStartupTaint = -1;

// A node of the simulated cluster.
struct SimNode {
  GroupIndex group{};
  SimMachineIndex machine{};
  int64_t joined_ms = 0;
  bool present = true;
  bool ready = false;
  bool devices = true;    // they are offered
  bool tainted = false;   // to be deleted
  int64_t asked_ms = -1;  // when the cloud was asked for that, as its mark says; -1: it was not
  // Since when it is not needed, as its soft taint says, in seconds since 1970; -1: it has none.
  int64_t soft_tainted_s = -1;
  bool reclaimed = false;                  // the cloud has said that it takes it back
  int32_t deletion_cost = 0;               // of its pods that have an owner which shrinks
  int32_t flaps = 0;                       // how often it still becomes ready, or not
  uint8_t marks = 0;                       // bits of SimMark
  int8_t startup_taint = kNoStartupTaint;  // which of SimStartupTaints() it carries
  StrongVector<SimPlace, SimPodIndex> pods;
  CpuMemory requested;

  bool Has(SimMark mark) const { return (marks & BitOf(mark)) != 0; }
  // Pods that tolerate nothing may come to it; or may, once it has started.
  bool Offers() const { return WillOffer() && startup_taint == kNoStartupTaint; }
  bool WillOffer() const {
    return present && ready && !tainted && !reclaimed && !Has(SimMark::kTaint) && !Has(SimMark::kCordon);
  }
};

// A machine of the simulated cloud.
struct SimMachine {
  enum class State : uint8_t { kOrdered, kRunning, kDeleting, kGone };
  GroupIndex group{};
  std::optional<SimNodeIndex> node;
  State state = State::kOrdered;
  bool phantom = false;
  bool faulty = false;  // it cannot be created, and the cloud says so
  bool had_node = false;
  bool deleted_by_hand = false;
  int64_t ordered_ms = 0;
};

// How an eviction ended.
enum class SimEviction {
  kDone,
  kRefused,     // the budget has nothing left (429)
  kTwoBudgets,  // more than one selects it (500)
  kFailed,      // for another reason
};

// The status of a budget.
struct SimBudget {
  int64_t expected = 0;
  int64_t healthy = 0;
  int64_t desired = 0;
  int64_t allowed() const { return healthy > desired ? healthy - desired : 0; }
};

// The numbers of pods that a workload wants and has.
struct SimReplicas {
  int64_t wanted = 0;
  int64_t revision = 0;
  int64_t ready = 0;                          // running and not terminating
  StrongVector<SimPlace, SimPodIndex> alive;  // not terminating
  bool reconciling = false;                   // an event is on its way
};

// Hears of all events in the order in which they happen.
class SimObserver {
 public:
  virtual ~SimObserver() = default;
  virtual void PodChanged(SimPodIndex pod) = 0;
  virtual void NodeChanged(SimNodeIndex node) = 0;
  // Apart from that: a soft taint keeps no pod away.
  virtual void SoftTaintChanged(SimNodeIndex /*node*/) {}
  virtual void WorkloadChanged(SimWorkloadIndex workload) = 0;
};

// The counters of a simulation.
struct SimCounts {
  int64_t evictions = 0;
  int64_t nodes_added = 0;
  int64_t nodes_removed = 0;
  int64_t refused_evictions = 0;
  int64_t growths = 0;             // orders of machines
  std::vector<int64_t> waited_ms;  // of each pod that found a node, but those of DaemonSets
};

// The simulated cluster as it is, whatever its observers know; it owns the clock and the event queue.
class World {
 public:
  explicit World(const Scenario& scenario);

  const Scenario& scenario() const { return scenario_; }
  int64_t now_ms() const { return now_ms_; }
  int64_t now_s() const { return kSimEpochS + now_ms_ / 1000; }
  void set_now_ms(int64_t now_ms) { now_ms_ = now_ms; }
  EventQueue& queue() { return queue_; }
  void After(int64_t delay_ms, SimEventKind kind, int32_t subject = 0) {
    queue_.Put(now_ms_ + delay_ms, kind, subject);
  }
  template <StrongIndex Index>
  void After(int64_t delay_ms, SimEventKind kind, Index subject) {
    After(delay_ms, kind, static_cast<int32_t>(subject));
  }
  // Adds an observer, which outlives the world. Observers are informed in the order in which they were added.
  void AddObserver(SimObserver* observer) { observers_.push_back(observer); }

  const SimPod& pod(SimPodIndex pod) const { return pods_[pod]; }
  const SimNode& node(SimNodeIndex node) const { return nodes_[node]; }
  const SimMachine& machine(SimMachineIndex machine) const { return machines_[machine]; }
  SimMachine& machine(SimMachineIndex machine) { return machines_[machine]; }
  const SimWorkload& workload(SimWorkloadIndex workload) const { return scenario_.workloads[workload]; }
  const SimGroup& group(GroupIndex group) const { return scenario_.groups[group]; }
  SimReplicas& replicas(SimWorkloadIndex workload) { return replicas_[workload]; }
  const SimReplicas& replicas(SimWorkloadIndex workload) const { return replicas_[workload]; }
  // The pods that there ever were.
  int64_t pods_ever() const { return static_cast<int64_t>(pods_.size()); }
  // Numbers of the nodes that are there, in no order.
  const StrongVector<SimPlace, SimNodeIndex>& nodes() const { return present_; }
  int64_t waiting() const { return waiting_; }
  int64_t pods_alive() const { return pods_alive_; }
  const SimCounts& counts() const { return counts_; }
  SimCounts& counts() { return counts_; }
  // Returns the budget as the disruption controller sees the pods of a workload that has one.
  SimBudget BudgetOf(SimWorkloadIndex workload) const;
  bool IsDaemon(SimPodIndex pod) const {
    return workload(this->pod(pod).workload).kind == SimWorkloadKind::kDaemon;
  }
  // Returns whether plans treat pods of the workload as if they were not there.
  bool IsExpendable(SimWorkloadIndex workload) const;
  bool IsExpendable(SimPodIndex pod) const { return IsExpendable(this->pod(pod).workload); }
  bool IsTerminating(SimPodIndex pod) const { return this->pod(pod).phase == SimPodPhase::kTerminating; }

  // --- what happens -------------------------------------------------------------------------------------

  SimPodIndex CreatePod(SimWorkloadIndex workload);
  // Puts a pod that waits on a node, where it starts.
  void Bind(SimPodIndex pod, SimNodeIndex node);
  void MarkUnschedulable(SimPodIndex pod);
  // From the kubelet: events of pods that are no longer there mean nothing.
  void SetRunning(SimPodIndex pod);
  void Finish(SimPodIndex pod);
  // Its grace period begins; a pod without a node, or on one that is not ready, is gone at once.
  void Terminate(SimPodIndex pod);
  void Vanish(SimPodIndex pod);
  // The scheduler takes it off its node for another pod, at once: grace periods of preemption are not
  // simulated.
  void Preempt(SimPodIndex pod);
  // Through the eviction API.
  SimEviction Evict(SimPodIndex pod);
  // A write of the loop to the API server fails. Draws.
  bool WriteFails();
  // The loop does not reach the API server: since when; -1: it does.
  int64_t api_down_since_ms() const { return now_ms_ < api_up_ms_ ? api_down_ms_ : -1; }
  // Upon kApiHour.
  void ApiHour();

  SimMachineIndex AddMachine(GroupIndex group);
  SimNodeIndex AddNode(SimMachineIndex machine, bool devices, int8_t startup_taint = kNoStartupTaint);
  void SetReady(SimNodeIndex node, bool ready);
  void SetFlaps(SimNodeIndex node, int32_t flaps) { nodes_[node].flaps = flaps; }
  void SetDeletionCost(SimNodeIndex node, int32_t cost) { nodes_[node].deletion_cost = cost; }
  void OfferDevices(SimNodeIndex node);
  void TakeStartupTaint(SimNodeIndex node);
  void SetMark(SimNodeIndex node, SimMark mark, bool is_set);
  // Sets or removes the deletion taint. A soft taint is removed with it.
  void SetTainted(SimNodeIndex node, bool tainted);
  // `since_s`: as SimNode::soft_tainted_s. Not on a node that is to be deleted.
  void SetSoftTaint(SimNodeIndex node, int64_t since_s);
  void SetAsked(SimNodeIndex node, int64_t at_ms) { nodes_[node].asked_ms = at_ms; }
  void SetReclaimed(SimNodeIndex node);
  // Takes the node away, and all pods that are still on it.
  void RemoveNode(SimNodeIndex node);

  // A workload wants another number, or has another revision.
  void SetWanted(SimWorkloadIndex workload, int64_t wanted);
  void NextRevision(SimWorkloadIndex workload);

  // A hash of all that has happened.
  uint64_t digest() const { return digest_.Finish(); }

 private:
  SimPod& At(SimPodIndex pod) { return pods_[pod]; }
  void Tell(SimPodIndex pod);
  void TellNode(SimNodeIndex node);
  void LeaveNode(SimPodIndex pod);
  void Forget(SimPodIndex pod);
  template <typename Subject, typename Value>
  void Note(SimEventKind kind, Subject subject, Value value);

  const Scenario& scenario_;
  EventQueue queue_;
  int64_t now_ms_ = 0;
  std::vector<SimObserver*> observers_;
  StrongVector<SimPodIndex, SimPod> pods_;
  StrongVector<SimPodIndex, SimPlace> place_alive_;  // of each pod in SimReplicas::alive
  StrongVector<SimNodeIndex, SimNode> nodes_;
  StrongVector<SimPlace, SimNodeIndex> present_;
  StrongVector<SimNodeIndex, SimPlace> place_present_;
  StrongVector<SimMachineIndex, SimMachine> machines_;
  StrongVector<SimWorkloadIndex, SimReplicas> replicas_;
  RandomStream pod_start_;
  RandomStream pod_end_;
  RandomStream api_;
  int64_t api_down_ms_ = -1;
  int64_t api_up_ms_ = 0;
  int64_t waiting_ = 0;
  int64_t pods_alive_ = 0;
  SimCounts counts_;
  FingerprintBuilder digest_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_WORLD_H_
