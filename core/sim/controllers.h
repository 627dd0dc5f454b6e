// The controllers that create and delete pods: Deployments, Jobs and DaemonSets.
#ifndef LOADLINE_CORE_SIM_CONTROLLERS_H_
#define LOADLINE_CORE_SIM_CONTROLLERS_H_

#include <cstdint>
#include <vector>

#include "core/sim/random_stream.h"
#include "core/sim/world.h"

namespace loadline {

// Deployments have as many pods as their curve asks for. Pods to go are those that wait, then those on the
// nodes with the lowest deletion cost, then any: which one is chance, as after some days in a cluster. A
// rollout brings so many new pods as it may surge, and as they are ready old ones go, never more than that
// leaves as many ready as are wanted.
class Controllers : public SimObserver {
 public:
  explicit Controllers(World* world);

  // Schedules the events that need no cause.
  void Start();
  void PodChanged(SimPodIndex pod) override;
  void NodeChanged(SimNodeIndex node) override;
  void WorkloadChanged(SimWorkloadIndex workload) override;

  // Upon kLoadStep, kWave, kReconcile and kPodFinished.
  void FollowLoad();
  void StartWave(SimWorkloadIndex workload);
  void Reconcile(SimWorkloadIndex workload);
  void FinishPod(SimPodIndex pod);

 private:
  void Wake(SimWorkloadIndex workload);
  void StartRollouts(int64_t from_s, int64_t to_s);
  void ScaleTo(SimWorkloadIndex workload, int64_t wanted);
  void Roll(SimWorkloadIndex workload, int64_t old);
  SimPodIndex PodToGo(SimWorkloadIndex workload);
  void RunDaemonsOn(SimNodeIndex node);

  World& world_;
  RandomStream downscale_;
  RandomStream batch_;
  std::vector<SimWorkloadIndex> daemons_;
  StrongVector<SimWorkloadIndex, size_t> next_arrival_;  // of kTrace
  int64_t followed_s_ = -1;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_CONTROLLERS_H_
