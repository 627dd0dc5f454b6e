// The memory of the drain planner between two calls.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_MEMORY_H_
#define LOADLINE_CORE_DRAIN_DRAIN_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/drain_question.h"
#include "core/drain/drain_state.h"
#include "core/drain/drain_trial.h"
#include "core/drain/planned_node.h"
#include "core/drain/vanished_pods.h"

namespace loadline {

// The plan with its timers, drains that failed, nodes being deleted, evictions and counts: a DrainState,
// whose plan is kept as applied to the trial cluster. A former plan has one entry per node, in the order in
// which nodes were accepted.
class DrainMemory {
 public:
  // Takes a state in place of all that is remembered.
  void Set(DrainState state);
  // All of it as a state. `last`: the call that it was remembered from; nullptr: there was none since Set().
  DrainState ToState(const DrainCall* last) const;

  // The state but for `unneeded`, which is read when a call begins.
  const DrainState& state() const { return state_; }
  // Forgets evictions whose replacements were waited for long enough.
  void ForgetOldEvictions(int64_t now_s, int64_t recent_eviction_s);

  // Returns whether rules and objects are those of the last call that asked, and there are no budgets: pods
  // that have not changed are then as movable as they were.
  bool SawSameRules(const DrainCall& call);

  // The nodes of the plan, and those of it that are known by names only, for the call that begins.
  std::vector<PlannedNode> TakePlanned();
  std::vector<FormerNode> TakeTimers();

  // The plan as it grows: nodes whose moves are applied to the trial cluster.
  std::vector<PlannedNode>& planned() { return planned_; }
  const std::vector<PlannedNode>& planned() const { return planned_; }
  // Keeps the timer of a node that has no place in the plan.
  void KeepTimer(FormerNode former) { timers_.push_back(std::move(former)); }

  // Remembers what the call came to, and puts the nodes that stay into its answer. `plan` has the nodes that
  // go; `pods`: all pods of the cluster, counted. Cost: O(nodes + pods of nodes that start to go).
  void Remember(const DrainCall& call, const DrainTrial& trial, std::string resume_at,
                std::vector<OwnerPods> pods, DrainPlan* plan);

 private:
  void RememberFailures(const DrainCall& call, DrainPlan* plan);
  void RememberTimers(const DrainCall& call, const DrainTrial& trial);
  void RememberCounts(const DrainCall& call, const DrainPlan& plan, std::vector<OwnerPods> pods);

  std::vector<PlannedNode> planned_;
  std::vector<FormerNode> timers_;
  DrainState state_;
  DrainRuleOptions rules_;                  // of the last call
  std::optional<int64_t> objects_version_;  // of the last call
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_MEMORY_H_
