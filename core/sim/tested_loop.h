// The loop under test: what the autoscaler knows of the simulated cluster, put to the planners that act on
// real ones.
#ifndef LOADLINE_CORE_SIM_TESTED_LOOP_H_
#define LOADLINE_CORE_SIM_TESTED_LOOP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/drain/planner.h"
#include "core/loop/plan_loop.h"
#include "core/sim/actuation.h"
#include "core/sim/cloud.h"
#include "core/sim/fleet_count.h"
#include "core/sim/observed_cluster.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// Asks PlanLoop() once per scan interval, and carries out what it answers. Cluster state, snapshot and
// planners live on from loop to loop.
//
// A loop before which nothing has changed since one that did nothing, and no timer has ended, would do
// nothing: it is not run, unless SimSettings::run_every_loop.
class TestedLoop {
 public:
  // All outlive it.
  TestedLoop(World* world, Cloud* cloud, ObservedCluster* seen, Actuation* actuation, const ShapesOf* shapes);

  // Upon kLoop. False: it was not run.
  bool Run(WorkBudget* budget);
  int64_t loops() const { return loops_; }

 private:
  bool MustRun(bool changed) const;
  void SetUp(const ShapesOf& shapes);
  void CountGroups();
  void WritePending();
  void TellProgress();
  void StartToGo(const std::string& name, DrainState* state) const;
  bool Act();
  bool DeleteLate();
  void NoteNextTime();

  World& world_;
  Cloud& cloud_;
  ObservedCluster& seen_;
  Actuation& actuation_;
  FleetCount fleet_;
  std::vector<IncomingPod> pods_;  // by workload
  DrainPlanner drain_;
  SlackPlanner slack_;
  DrainState state_;  // of the last loop, while nodes go
  LoopProblem problem_;
  LoopPlan plan_;                           // of the last loop: the drain planner refers to it
  std::vector<std::vector<int32_t>> late_;  // by group
  int64_t loops_ = 0;
  int64_t cloud_version_ = -1;
  bool acted_ = true;
  int64_t evicted_s_ = 0;  // the last eviction
  // When something changes by itself; nullopt: nothing does.
  std::optional<int64_t> next_ms_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_TESTED_LOOP_H_
