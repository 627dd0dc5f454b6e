// The cluster as it is: pods, nodes and machines, and what may be done to them. What happens is told to those
// who watch.
#ifndef LOADLINE_CORE_SIM_WORLD_H_
#define LOADLINE_CORE_SIM_WORLD_H_

#include <cstdint>
#include <vector>

#include "core/base/fingerprint.h"
#include "core/sim/event_queue.h"
#include "core/sim/random_stream.h"
#include "core/sim/scenario.h"

namespace loadline {

// 00:00 UTC on a Monday; simulations begin there.
inline constexpr int64_t kSimEpochS = 1'699'833'600;

enum class SimPodPhase : uint8_t { kWaiting, kStarting, kRunning, kTerminating, kGone };

// Pods, nodes and machines have numbers of their own, which are never used again.
struct SimPod {
  int32_t workload = 0;
  int32_t revision = 0;
  int32_t node = -1;
  int32_t place = -1;  // among the pods of its node; -1: on none
  int64_t created_ms = 0;
  int64_t bound_ms = 0;
  int64_t terminating_ms = 0;
  SimPodPhase phase = SimPodPhase::kWaiting;
  bool unschedulable = false;  // the scheduler has tried it in vain
  bool evicted = false;
};

// What an operator puts on a single node, and takes off again.
enum class SimMark : uint8_t { kLabel, kTaint, kCordon, kKeep };
inline constexpr int32_t kSimMarks = 4;
constexpr uint8_t BitOf(SimMark mark) { return static_cast<uint8_t>(1 << static_cast<int>(mark)); }
inline constexpr int8_t kNoStartupTaint = -1;

struct SimNode {
  int32_t group = 0;
  int32_t machine = -1;
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
  std::vector<int32_t> pods;
  CpuMemory requested;

  bool Has(SimMark mark) const { return (marks & BitOf(mark)) != 0; }
  // Pods that tolerate nothing may come to it; or may, once it has started.
  bool Offers() const { return WillOffer() && startup_taint == kNoStartupTaint; }
  bool WillOffer() const {
    return present && ready && !tainted && !reclaimed && !Has(SimMark::kTaint) && !Has(SimMark::kCordon);
  }
};

struct SimMachine {
  enum class State : uint8_t { kOrdered, kRunning, kDeleting, kGone };
  int32_t group = 0;
  int32_t node = -1;
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

// What a budget's status says.
struct SimBudget {
  int64_t expected = 0;
  int64_t healthy = 0;
  int64_t desired = 0;
  int64_t allowed() const { return healthy > desired ? healthy - desired : 0; }
};

// What a workload wants and has.
struct SimReplicas {
  int64_t wanted = 0;
  int64_t revision = 0;
  int64_t ready = 0;           // running and not terminating
  std::vector<int32_t> alive;  // not terminating
  bool reconciling = false;    // an event is on its way
};

// Is told of everything in the order in which it happens.
class SimObserver {
 public:
  virtual ~SimObserver() = default;
  virtual void PodChanged(int32_t pod) = 0;
  virtual void NodeChanged(int32_t node) = 0;
  // Apart from that: schedulers of this simulation do not look at soft taints.
  virtual void SoftTaintChanged(int32_t /*node*/) {}
  virtual void WorkloadChanged(int32_t workload) = 0;
};

// What is counted on the way.
struct SimCounts {
  int64_t evictions = 0;
  int64_t nodes_added = 0;
  int64_t nodes_removed = 0;
  int64_t refused_evictions = 0;
  int64_t growths = 0;             // orders of machines
  std::vector<int64_t> waited_ms;  // of each pod that found a node, but those of DaemonSets
};

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
  // They outlive the world. Each is told in the order in which it was added.
  void AddObserver(SimObserver* observer) { observers_.push_back(observer); }

  const SimPod& pod(int32_t pod) const { return pods_[static_cast<size_t>(pod)]; }
  const SimNode& node(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  const SimMachine& machine(int32_t machine) const { return machines_[static_cast<size_t>(machine)]; }
  SimMachine& machine(int32_t machine) { return machines_[static_cast<size_t>(machine)]; }
  const SimWorkload& workload(int32_t workload) const {
    return scenario_.workloads[static_cast<size_t>(workload)];
  }
  const SimGroup& group(int32_t group) const { return scenario_.groups[static_cast<size_t>(group)]; }
  SimReplicas& replicas(int32_t workload) { return replicas_[static_cast<size_t>(workload)]; }
  const SimReplicas& replicas(int32_t workload) const { return replicas_[static_cast<size_t>(workload)]; }
  int32_t pod_end() const { return static_cast<int32_t>(pods_.size()); }
  int32_t node_end() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t machine_end() const { return static_cast<int32_t>(machines_.size()); }
  // Numbers of the nodes that are there, in no order.
  const std::vector<int32_t>& nodes() const { return present_; }
  int64_t waiting() const { return waiting_; }
  int64_t pods_alive() const { return pods_alive_; }
  const SimCounts& counts() const { return counts_; }
  SimCounts& counts() { return counts_; }
  // Where the disruption controller sees the pods of a workload that has a budget.
  SimBudget BudgetOf(int32_t workload) const;
  bool IsDaemon(int32_t pod) const {
    return workload(this->pod(pod).workload).kind == SimWorkloadKind::kDaemon;
  }
  bool IsTerminating(int32_t pod) const { return this->pod(pod).phase == SimPodPhase::kTerminating; }

  // --- what happens -------------------------------------------------------------------------------------

  int32_t CreatePod(int32_t workload);
  // Puts a pod that waits on a node, where it starts.
  void Bind(int32_t pod, int32_t node);
  void MarkUnschedulable(int32_t pod);
  // From the kubelet: events of pods that are no longer there mean nothing.
  void SetRunning(int32_t pod);
  void Finish(int32_t pod);
  // Its grace period begins; a pod without a node, or on one that is not ready, is gone at once.
  void Terminate(int32_t pod);
  void Vanish(int32_t pod);
  // Through the eviction API.
  SimEviction Evict(int32_t pod);
  // A write of the loop to the API server fails. Draws.
  bool WriteFails();
  // The loop does not reach the API server: since when; -1: it does.
  int64_t api_down_since_ms() const { return now_ms_ < api_up_ms_ ? api_down_ms_ : -1; }
  // Upon kApiHour.
  void ApiHour();

  int32_t AddMachine(int32_t group);
  int32_t AddNode(int32_t machine, bool devices, int8_t startup_taint = kNoStartupTaint);
  void SetReady(int32_t node, bool ready);
  void SetFlaps(int32_t node, int32_t flaps) { nodes_[static_cast<size_t>(node)].flaps = flaps; }
  void SetDeletionCost(int32_t node, int32_t cost) { nodes_[static_cast<size_t>(node)].deletion_cost = cost; }
  void OfferDevices(int32_t node);
  void TakeStartupTaint(int32_t node);
  void SetMark(int32_t node, SimMark mark, bool is_set);
  // To be deleted: a soft taint goes with that.
  void SetTainted(int32_t node, bool tainted);
  // `since_s`: as SimNode::soft_tainted_s. Not on a node that is to be deleted.
  void SetSoftTaint(int32_t node, int64_t since_s);
  void SetAsked(int32_t node, int64_t at_ms) { nodes_[static_cast<size_t>(node)].asked_ms = at_ms; }
  void SetReclaimed(int32_t node);
  // Takes the node away, and all pods that are still on it.
  void RemoveNode(int32_t node);

  // A workload wants another number, or has another revision.
  void SetWanted(int32_t workload, int64_t wanted);
  void NextRevision(int32_t workload);

  // A hash of all that has happened.
  uint64_t digest() const { return digest_.Finish(); }

 private:
  SimPod& At(int32_t pod) { return pods_[static_cast<size_t>(pod)]; }
  void Tell(int32_t pod);
  void TellNode(int32_t node);
  void LeaveNode(int32_t pod);
  void Forget(int32_t pod);
  void Note(SimEventKind kind, int64_t subject, int64_t value);

  const Scenario& scenario_;
  EventQueue queue_;
  int64_t now_ms_ = 0;
  std::vector<SimObserver*> observers_;
  std::vector<SimPod> pods_;
  std::vector<int32_t> place_alive_;  // of each pod in SimReplicas::alive
  std::vector<SimNode> nodes_;
  std::vector<int32_t> present_;
  std::vector<int32_t> place_present_;
  std::vector<SimMachine> machines_;
  std::vector<SimReplicas> replicas_;
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
