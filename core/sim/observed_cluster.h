// The cluster as the loop under test sees it: late, and not always whole.
#ifndef LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_
#define LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/sim/shapes_of.h"
#include "core/sim/world.h"

namespace loadline {

// Takes note of every change of pods and nodes, and tells it to the loop after the lag of the watch, in
// order; some are lost until the next full list. Statuses of workloads and budgets come at most once in a
// second.
class ObservedCluster : public SimObserver {
 public:
  // Both outlive it.
  ObservedCluster(World* world, const ShapesOf* shapes);
  ~ObservedCluster() override;

  void PodChanged(int32_t pod) override;
  void NodeChanged(int32_t node) override;
  void WorkloadChanged(int32_t workload) override;

  // Brings state and snapshot up to what the watch has told by now. False: there was nothing.
  // Cost: O(news + pods of the nodes that changed).
  bool CatchUp();

  const ClusterState& state() const { return state_; }
  Snapshot* snapshot() { return snapshot_.get(); }
  // The node that a slot holds; -1: none.
  int32_t NodeIn(Slot slot) const { return IndexOf(slot) < node_in_.size() ? node_in_[IndexOf(slot)] : -1; }
  // nullopt: the loop does not see it.
  std::optional<Slot> SlotOf(int32_t node) const;
  // It has registered, and may not have started yet: until it was ready once, with its devices, it is on its
  // way and none of the state.
  bool Registered(int32_t node) const;
  // The last slot that was ever used, and one.
  size_t slot_end() const { return node_in_.size(); }
  // Pods of a workload that the scheduler could not place.
  int64_t unschedulable(int32_t workload) const { return unschedulable_[static_cast<size_t>(workload)]; }
  static std::string PodName(int32_t pod);
  // "group-12".
  std::string NodeName(int32_t node) const;
  // A pod as it is told of when it was evicted.
  PodShape EvictedShape(int32_t pod) const;

 private:
  struct News {
    int64_t due_ms = 0;
    int32_t pod = -1;  // or
    int32_t node = -1;
    // Of a pod.
    int32_t on = -1;
    int32_t terminating_s = 0;  // since the start
    SimPodPhase phase = SimPodPhase::kWaiting;
    // Of a pod that waits: unschedulable; of a node: bits of NodeSeen.
    uint8_t bits = 0;
  };
  struct PodSeen {
    int32_t on = -1;
    int32_t place = -1;  // among the pods seen on its node
    int32_t terminating_s = 0;
    int32_t shape = -1;  // of its own, while it is terminating
    SimPodPhase phase = SimPodPhase::kGone;
    bool unschedulable = false;
  };
  enum NodeBit : uint8_t { kPresent = 1, kReady = 2, kDevices = 4, kTainted = 8, kReclaimed = 16 };
  struct NodeSeen {
    uint8_t bits = 0;
    Slot slot = Slot{-1};
    bool started = false;
    bool dirty = false;
    std::vector<int32_t> pods;
    bool shown() const { return started && (bits & kPresent) != 0; }
  };

  int64_t Due();
  News NewsOfPod(int32_t pod) const;
  News NewsOfNode(int32_t node) const;
  void Apply(const News& news);
  void ApplyPod(const News& news);
  void ApplyNode(const News& news);
  void Attach(int32_t pod);
  void Detach(int32_t pod);
  void TellLost();
  void MarkDirty(int32_t node);
  void StatusChanged(int32_t workload);
  bool WriteStatuses();
  void WriteStatus(int32_t workload);
  void WriteNodes();
  void WriteNode(int32_t node);
  void WriteSnapshot();
  int32_t ShapeIn(int32_t pod);
  const NodeShape& ShapeOfNode(int32_t group, uint8_t bits);

  World& world_;
  const ShapesOf& shapes_;
  RandomStream chance_;
  ClusterState state_;
  std::unique_ptr<Snapshot> snapshot_;
  int64_t snapshot_read_ = 0;  // in the journal of the state
  int32_t most_shapes_ = 0;

  std::deque<News> news_;
  std::vector<News> lost_;
  int64_t next_relist_ms_ = 0;
  std::vector<PodSeen> pods_;
  std::vector<NodeSeen> nodes_;
  std::vector<int32_t> dirty_;
  std::vector<int32_t> node_in_;  // by slot
  std::vector<int32_t> free_slots_;
  std::vector<int64_t> unschedulable_;
  std::vector<int32_t> released_;  // shapes of pods that are gone, until their nodes are written
  // Of each workload: shapes that are not ready and ready, and when its status was to be told.
  std::vector<int32_t> shape_;
  std::vector<int64_t> status_since_ms_;
  std::vector<int32_t> statuses_;
  std::vector<std::optional<NodeShape>> node_shapes_;  // by group and bits
  // Room to work in.
  std::vector<PodContent> contents_;
  std::vector<char> text_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_
