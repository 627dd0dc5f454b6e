// The loop under test: what the autoscaler knows of the simulated cluster, put to the planners that act on
// real ones.
#ifndef LOADLINE_CORE_SIM_TESTED_LOOP_H_
#define LOADLINE_CORE_SIM_TESTED_LOOP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/consolidate/consolidator.h"
#include "core/drain/planner.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/grow/waiting.h"
#include "core/loop/downscale_order.h"
#include "core/loop/loop_actions.h"
#include "core/observe/loop_findings.h"
#include "core/observe/loop_memory.h"
#include "core/sim/actuation.h"
#include "core/sim/cloud.h"
#include "core/sim/loop_view.h"
#include "core/sim/move_log.h"
#include "core/sim/observed_cluster.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// Observes, plans and acts once per scan interval, when growth has waited for long enough and soon after a
// node has gone: ObserveLoop(), PlanLoop() and ActionsOf(), as for a client with a real cluster. Cluster
// state, snapshot and planners live on from loop to loop, until the process that leads ends: the next one
// has the bytes of the memory as they were last written, and the marks of nodes.
//
// A loop before which nothing has changed since one that did nothing, and no timer has ended, would do
// nothing: it is not run, unless SimSettings::run_every_loop.
class TestedLoop {
 public:
  // All outlive it.
  TestedLoop(World* world, const Cloud* cloud, ObservedCluster* seen, Actuation* actuation,
             ActObserver* observer, const ShapesOf* shapes);

  // Schedules the events that need no cause.
  void Start();
  // Upon kLoop. False: it was not run.
  bool Run(bool at_interval, WorkBudget* budget);
  // Upon kRemovalEnded and kLeaderHour.
  void RemovalEnded();
  void LeaderHour();
  int64_t loops() const { return loops_; }
  const SimMoves& moves() const { return moves_; }

 private:
  // A process that leads.
  struct Leader {
    DrainPlanner drain;
    SlackPlanner slack;
    Consolidator consolidator;
    DrainState drain_state;  // of the last loop
    LoopMemory memory;
    LoopOutcomes outcomes;  // since the last loop
    int64_t clock_ms = 0;   // by how much its clock is ahead
    int64_t evicted_s = 0;  // the last eviction
  };

  bool MustRun() const;
  bool Decide(WorkBudget* budget);
  void SetUp(const ShapesOf& shapes);
  int64_t NowMs() const { return kSimEpochS * 1000 + world_.now_ms() + leader_->clock_ms; }
  int64_t NowS() const { return NowMs() / 1000; }
  // Ends the process if a fault says so at this point: returns true then.
  bool Ends();
  void BecomeLeader();
  void KeepMemory();

  // The first steps of a loop: they find out the state of things.
  void Observe();
  void WritePending();
  void WritePending(SimWorkloadIndex workload);
  void WriteBatch();
  void TakeProgress();
  void TellProgress();
  void WaitForPods();
  void StateDeletionCosts();

  // The last steps of a loop: they carry out its actions. False: the process has ended.
  bool Act(const std::vector<LoopAction>& actions);
  bool ActOn(const LoopAction& action);
  void Grow(const LoopAction& action);
  // Returns the workloads with waiting pods that are planned onto new nodes of a group.
  std::vector<SimWorkloadIndex> WorkloadsOn(GroupIndex group) const;
  void DeleteMachines(const LoopAction& action);
  void WriteSoftTaint(const LoopAction& action);
  bool Begin(const std::vector<const DrainRemoval*>& removals);
  bool Remove(const DrainRemoval& removal);
  void NoteOutcome(const LoopAction& action, CloudAnswer answer);

  void NoteNextTime();
  void RunAgainIn(int64_t after_ms);

  World& world_;
  ObservedCluster& seen_;
  Actuation& actuation_;
  ActObserver& observer_;
  LoopView view_;
  ObserveOptions options_;
  LoopFindings findings_;
  StrongVector<SimWorkloadIndex, IncomingPod> pods_;
  StrongVector<GroupIndex, NodeShape> templates_;
  Actuation::Progress progress_;
  LoopProblem problem_;
  // The first and the last of the pods that wait, by position in problem_.pending.
  std::vector<std::pair<SimPodIndex, SimPodIndex>> asked_about_;
  WaitingRules rules_;
  // When the next pod is old enough to wait, by the clock of the leader; nullopt: all are.
  std::optional<int64_t> old_enough_ms_;
  LoopPlan plan_;  // of the last loop: the drain planner refers to it
  std::unique_ptr<Leader> leader_;
  RandomStream chance_;
  std::string kept_;  // the memory, as bytes
  bool unwritten_ = false;
  int64_t leads_from_ms_ = 0;
  int64_t began_ms_ = 0;         // the last loop
  int64_t again_ms_ = -1;        // when one runs before its interval
  int64_t waits_until_ms_ = -1;  // growth, for further pods; -1: it does not
  int64_t loops_ = 0;
  SimMoves moves_;
  bool changed_ = true;
  bool acted_ = true;
  // When something changes by itself, since the start; nullopt: nothing does.
  std::optional<int64_t> next_ms_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIM_TESTED_LOOP_H_
