// A scheduler: our filters, and one of three scores.
#ifndef LOADLINE_CORE_SIM_SCHEDULER_H_
#define LOADLINE_CORE_SIM_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/snapshot.h"
#include "core/fit/fit_search.h"
#include "core/sim/shapes_of.h"
#include "core/sim/world.h"

namespace loadline {

// Places pods that wait whenever something has happened that may help one: those of the highest priority
// first, then the workload of the oldest one. It sees the cluster as it is. Of equal scores the node that
// came first wins. Nodes that are not ready, about to be deleted, or about to be taken back get no pods; they
// go on counting in their domains, see MarkLeaving(). A pod that fits nowhere preempts expendable pods, and
// no others.
//
// Cost: O(nodes) for each pod that is placed; O(1) for one like a pod that has just found no place, and
// O(pods) where there are expendable ones.
class Scheduler : public SimObserver {
 public:
  // Both outlive it.
  Scheduler(World* world, const ShapesOf* shapes);

  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex node) override;
  void WorkloadChanged(SimWorkloadIndex) override {}

  // Upon kSchedule.
  void Run();

 private:
  void Wake();
  void Enter(SimNodeIndex node);
  void Take(SimNodeIndex node);
  void Place(SimPodIndex pod, NodeIndex node);
  void Remove(SimPodIndex pod, SimNodeIndex node);
  bool Ends(SimPodIndex pod) const;
  int32_t ShapeOf(SimPodIndex pod) const;
  void Rebuild();
  std::vector<SimWorkloadIndex> InTurn();
  void PlaceAllOf(SimWorkloadIndex workload);
  // The node with the best score of those that take a pod of the workload, nullopt: none does.
  std::optional<NodeIndex> FindNode(SimWorkloadIndex workload);
  std::optional<NodeIndex> MakeRoom(SimWorkloadIndex workload);
  NodeIndex BestByRequests(const SimWorkload& workload, NodeIndex first, PodFit* fit) const;
  NodeIndex BestByLimits(const SimWorkload& workload);
  int64_t AllocatedScore(const SimWorkload& workload, NodeIndex node) const;
  int64_t RequestScore(const SimWorkload& workload, NodeIndex node) const;
  int64_t LostByTaint(NodeIndex node) const;
  int64_t LimitShare(const SimWorkload& workload, NodeIndex node) const;
  void FindHourShares(SimWorkloadIndex workload);

  World& world_;
  const ShapesOf& shapes_;
  const SimScore score_;
  const FitOptions fit_;
  // The amounts that pods count as in each hour, for the score: those of cpu, then those of memory; empty:
  // pods count by their limits.
  const LimitSumsSpec hours_;
  // The workloads whose pods block drains, and what a node without such a pod loses of its share for them.
  const StrongVector<SimWorkloadIndex, bool> blocking_;
  const int64_t lost_apart_;
  ClusterState nothing_;  // a snapshot starts from some state
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<FitSearch> search_;
  StrongVector<SimWorkloadIndex, SearchPod> search_pods_;
  // The shape of terminating pods, which spread constraints do not count; nullopt: none has any.
  StrongVector<SimWorkloadIndex, std::optional<int32_t>> ending_shapes_;
  StrongVector<SimNodeIndex, std::optional<NodeIndex>> index_of_;  // nullopt: not there
  StrongVector<NodeIndex, CpuMemory> limits_;                      // of the pods there
  StrongVector<NodeIndex, int64_t> blockers_;                      // pods there that block drains
  StrongVector<NodeIndex, SimNodeIndex> node_at_;
  // May have pods that are gone: these are skipped.
  StrongVector<SimWorkloadIndex, std::deque<SimPodIndex>> waiting_;
  // None: it is on no node.
  StrongVector<SimPodIndex, OptionalIndex<SimNodeIndex>> placed_on_;
  StrongVector<SimPodIndex, bool> ending_;  // it was placed with the shape of a terminating pod
  std::vector<NodeIndex> fits_;             // room to work in
  std::vector<int64_t> limit_shares_;       // likewise
  bool awake_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SCHEDULER_H_
