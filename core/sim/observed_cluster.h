// The cluster as the loop under test sees it: late, and not always whole.
#ifndef LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_
#define LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/observe/loop_findings.h"
#include "core/sim/shapes_of.h"
#include "core/sim/world.h"

namespace loadline {

// Takes note of every change of pods and nodes, and tells it to the loop after the lag of the watch, those of
// pods in order and those of nodes; some are lost until the next full list. Statuses of workloads and budgets
// come at most once in a second.
class ObservedCluster : public SimObserver {
 public:
  // Both outlive it.
  ObservedCluster(World* world, const ShapesOf* shapes);
  ~ObservedCluster() override;

  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex node) override;
  void SoftTaintChanged(SimNodeIndex node) override;
  void WorkloadChanged(SimWorkloadIndex workload) override;

  // Takes the news of the watch until now. False: there were none. Cost: O(news).
  bool TakeNews();
  // When it last heard of the API server, in milliseconds since the start.
  int64_t heard_ms() const { return heard_ms_; }
  // Pods that it knows of.
  int64_t pods() const { return hides_ == kAllPods ? 0 : pods_known_; }
  // Brings the state up to what was taken, with all nodes as they are. Cost: O(pods of the nodes that
  // changed).
  void Show();
  // Nodes that stand in the plan of this loop as another shape says; and brings the snapshot up to the state.
  void ShowAs(const std::vector<ShownNode>& nodes);

  const ClusterState& state() const { return state_; }
  Snapshot* snapshot() { return snapshot_.get(); }
  // Returns whether all news have arrived and are shown.
  bool IsUpToDate() const {
    return snapshot_ != nullptr && pod_news_.empty() && node_news_.empty() && lost_.empty() &&
           dirty_.empty() && hides_ == kNoPods;
  }
  // Returns what pods of a node request, as the snapshot counts it; nullopt: it is not there.
  std::optional<CpuMemory> RequestedOn(SimNodeIndex node) const;
  // The node that a slot holds.
  std::optional<SimNodeIndex> NodeIn(Slot slot) const {
    return node_in_.Contains(slot) ? node_in_[slot] : std::nullopt;
  }
  // nullopt: it is not in the state, which Show() wrote.
  std::optional<Slot> SlotOf(SimNodeIndex node) const;
  // Returns the slot of the machine's node, if it has been observed.
  std::optional<Slot> SlotOfMachine(SimMachineIndex machine) const;
  // When some pod that is ending begins to count for nothing, since it takes too long, in seconds since 1970
  // and behind `now_s`; nullopt: none does.
  std::optional<int64_t> NextLateEndS(int64_t now_s);
  // The nodes that it sees, by number, in no order.
  const StrongVector<SimPlace, SimNodeIndex>& registered() const { return registered_; }
  bool Registered(SimNodeIndex node) const { return Has(node, kPresent); }
  bool Ready(SimNodeIndex node) const { return Has(node, kReady); }
  bool Tainted(SimNodeIndex node) const { return Has(node, kTainted); }
  // Pods of a workload that the scheduler could not place; by number is by time.
  const absl::btree_set<SimPodIndex>& unschedulable(SimWorkloadIndex workload) const {
    return Hides(workload) ? no_pods_ : unschedulable_[workload];
  }
  // When one of them was created, and when it came, in milliseconds since the start. As clients find out, who
  // know full seconds only, or when they first saw it.
  int64_t CreatedMs(SimPodIndex pod) const { return world_.pod(pod).created_ms / 1000 * 1000; }
  int64_t CameMs(SimPodIndex pod) const;
  static std::string PodName(SimPodIndex pod);
  // The pod of that name.
  static SimPodIndex PodNamed(absl::string_view name);
  static std::string NodeUid(SimNodeIndex node);
  // "group-12", by its machine: one that registers again has the name that it had.
  std::string NodeName(SimNodeIndex node) const;
  // Returns the shape of a pod in the report of its eviction.
  PodShape EvictedShape(SimPodIndex pod) const;

 private:
  struct News {
    int64_t due_ms = 0;
    OptionalIndex<SimPodIndex> pod;  // or
    OptionalIndex<SimNodeIndex> node;
    // The node of a pod, and the end of its termination.
    OptionalIndex<SimNodeIndex> on;
    int32_t terminating_s = 0;  // since the start
    SimPodPhase phase = SimPodPhase::kWaiting;
    // The state of a pod that waits (unschedulable) or of a node: bits of NodeSeen.
    uint8_t bits = 0;
    uint8_t marks = 0;                       // of a node, as the next one
    int8_t startup_taint = kNoStartupTaint;  // see SimNode
    int64_t soft_tainted_s = -1;             // of a node
  };
  struct PodSeen {
    OptionalIndex<SimNodeIndex> on;
    OptionalIndex<SimPlace> place;  // among the pods seen on its node
    int32_t terminating_s = 0;
    int32_t shape = -1;          // of its own, while it is terminating
    int64_t waits_since_ms = 0;  // when that was seen first, while it is unschedulable
    SimPodPhase phase = SimPodPhase::kGone;
    bool unschedulable = false;
  };
  enum NodeBit : uint8_t { kPresent = 1, kReady = 2, kDevices = 4, kTainted = 8, kReclaimed = 16 };
  struct NodeSeen {
    uint8_t bits = 0;
    uint8_t marks = 0;
    int8_t startup_taint = kNoStartupTaint;
    int64_t soft_tainted_s = -1;
    std::optional<Slot> slot;
    std::optional<SimPlace> place;  // among registered_
    bool dirty = false;
    StrongVector<SimPlace, SimPodIndex> pods;
    bool shown() const { return (bits & kPresent) != 0; }
  };
  using NewsQueue = std::deque<News>;
  // The pods that a broken list lacks: those of workloads with even or odd numbers, or all.
  static constexpr int64_t kNoPods = -1;
  static constexpr int64_t kAllPods = 2;

  // Returns the reported end of a pod: in steps, so that pods which end together share a shape.
  static int64_t ReportedEndS(int32_t terminating_s);
  bool Has(SimNodeIndex node, NodeBit bit) const {
    return nodes_.Contains(node) && (nodes_[node].bits & bit) != 0;
  }
  void Send(News news, RandomStream* chance, NewsQueue* queue);
  News NewsOfPod(SimPodIndex pod) const;
  News NewsOfNode(SimNodeIndex node) const;
  void Apply(const News& news);
  void ApplyPod(const News& news);
  void ApplyNode(const News& news);
  void SetBits(SimNodeIndex node, uint8_t bits);
  void Attach(SimPodIndex pod);
  void Detach(SimPodIndex pod);
  void TellLost();
  bool List();
  bool Hides(SimWorkloadIndex workload) const {
    return hides_ == kAllPods || hides_ == static_cast<int64_t>(workload) % 2;
  }
  void MarkDirty(SimNodeIndex node);
  void StatusChanged(SimWorkloadIndex workload);
  bool WriteStatuses();
  void WriteStatus(SimWorkloadIndex workload);
  void WriteNodes();
  void WriteNode(SimNodeIndex node, const NodeShape& shape);
  void WriteSnapshot();
  int32_t ShapeIn(SimPodIndex pod);
  const NodeShape& ShapeOfNode(GroupIndex group, const NodeSeen& seen);
  NodeShape WithSoftTaint(const NodeShape& shape, int64_t since_s) const;

  World& world_;
  const ShapesOf& shapes_;
  RandomStream chance_;
  RandomStream soft_taint_chance_;
  ClusterState state_;
  std::unique_ptr<Snapshot> snapshot_;
  int64_t snapshot_read_ = 0;  // in the journal of the state
  int32_t most_shapes_ = 0;

  NewsQueue pod_news_;
  NewsQueue node_news_;
  std::vector<News> lost_;
  int64_t next_relist_ms_ = 0;
  int64_t heard_ms_ = 0;
  int64_t hides_ = kNoPods;
  int64_t pods_known_ = 0;
  absl::btree_set<int64_t> late_ends_s_;
  StrongVector<SimPodIndex, PodSeen> pods_;
  StrongVector<SimNodeIndex, NodeSeen> nodes_;
  StrongVector<SimPlace, SimNodeIndex> registered_;
  StrongVector<SimMachineIndex, std::optional<SimNodeIndex>> node_of_machine_;  // the last one that was seen
  std::vector<SimNodeIndex> dirty_;
  std::vector<SimNodeIndex> otherwise_;  // that ShowAs() has shown
  StrongVector<Slot, std::optional<SimNodeIndex>> node_in_;
  std::vector<Slot> free_slots_;
  StrongVector<SimWorkloadIndex, absl::btree_set<SimPodIndex>> unschedulable_;
  absl::btree_set<SimPodIndex> no_pods_;
  std::vector<int32_t> released_;  // shapes of pods that are gone, until their nodes are written
  // By workload: the shapes that are not ready and ready, and the time from which its status is due.
  StrongVector<SimWorkloadIndex, std::array<int32_t, 2>> shape_;
  StrongVector<SimWorkloadIndex, int64_t> status_since_ms_;
  std::vector<SimWorkloadIndex> statuses_;
  // By group, bits, marks and startup taint; they stay where they are.
  absl::btree_map<std::tuple<GroupIndex, uint8_t, uint8_t, int8_t>, std::unique_ptr<const NodeShape>>
      node_shapes_;
  // Room to work in.
  std::vector<PodContent> contents_;
  std::vector<char> text_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_OBSERVED_CLUSTER_H_
