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
// came first wins. Nodes that are not ready, about to be deleted, or about to be taken back get no pods.
//
// Cost: O(nodes) for each pod that is placed; O(1) for one like a pod that has just found no place.
class Scheduler : public SimObserver {
 public:
  // Both outlive it.
  Scheduler(World* world, const ShapesOf* shapes);

  void PodChanged(int32_t pod) override;
  void NodeChanged(int32_t node) override;
  void WorkloadChanged(int32_t) override {}

  // Upon kSchedule.
  void Run();

 private:
  void Wake();
  bool Offers(int32_t node) const;
  void Enter(int32_t node);
  void Take(int32_t node);
  void Place(int32_t pod, NodeIndex node);
  void Remove(int32_t pod, int32_t node);
  void Rebuild();
  std::vector<int32_t> InTurn();
  void PlaceAllOf(int32_t workload);
  // The node with the best score of those that take a pod of the workload, nullopt: none does.
  std::optional<NodeIndex> FindNode(int32_t workload);
  NodeIndex BestByRequests(const SimWorkload& workload, NodeIndex first, PodFit* fit) const;
  NodeIndex BestByLimits(const SimWorkload& workload);
  int64_t RequestScore(const SimWorkload& workload, NodeIndex node) const;
  int64_t LimitShare(const SimWorkload& workload, NodeIndex node) const;

  World& world_;
  const ShapesOf& shapes_;
  const SimScore score_;
  const FitOptions fit_;
  ClusterState nothing_;  // a snapshot starts from some state
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<FitSearch> search_;
  std::vector<SearchPod> search_pods_;              // by workload
  std::vector<std::optional<NodeIndex>> index_of_;  // by node; nullopt: gets no pods
  std::vector<CpuMemory> limits_;                   // of the pods there, by index
  std::vector<int32_t> node_at_;                    // by index
  std::vector<std::deque<int32_t>> waiting_;        // by workload; those that are gone are passed over
  std::vector<int32_t> placed_on_;                  // by pod; -1: it is on no node that gets pods
  std::vector<NodeIndex> fits_;                     // room to work in
  std::vector<int64_t> limit_shares_;               // likewise
  bool awake_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_SCHEDULER_H_
