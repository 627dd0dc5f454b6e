// Plans which nodes can go together: one iteration of the parallel drain.
#ifndef LOADLINE_CORE_DRAIN_PLANNER_H_
#define LOADLINE_CORE_DRAIN_PLANNER_H_

#include <memory>

#include "core/base/work_budget.h"
#include "core/drain/drain_question.h"
#include "core/drain/drain_state.h"

namespace loadline {

// Keeps what it worked out between calls, so that the next one costs little when little has changed. The
// answer is the same as that of a new planner which is given the same state.
//
// One iteration, as the parallel drain proposal describes it:
//   * Pods on nodes being deleted, and missing replacements of pods evicted lately, find places first. If one
//     does not, or the budget ends before, nothing new is drained, and timers go on.
//   * Nodes of the former plan keep their places there, as far as each of their pods still fits where it was
//     planned to go.
//   * All other candidates in a total order: each with its pods to where they fit first, in an order that
//     prefers nodes which will stay. All pods of a node find a place, or none moves. A node that takes pods
//     is no candidate any more, and one that is removed takes none; it counts for spreading until it is gone.
//   * If there was no former plan, other orders compete; most nodes win, then those of the highest price.
// Pods are sorted by priority, then size, then name. Without a former plan the outcome depends on the cluster
// only.
//
// Deterministic. Not thread-safe.
class DrainPlanner {
 public:
  DrainPlanner();
  ~DrainPlanner();
  DrainPlanner(const DrainPlanner&) = delete;
  DrainPlanner& operator=(const DrainPlanner&) = delete;

  // Puts another state in place of the one of the last call.
  void SetState(DrainState state);
  // Same as SetState(), where the next call is about the cluster of the last one, with the same options of
  // filters, so that not all of it has to be read again.
  void ReplaceState(DrainState state);
  // The state after the last call, of which the problem still lives and the cluster has not changed since.
  // Cost: O(moves).
  DrainState state() const;

  // Plans for the cluster as it is now. The plan lives until the next call. The cluster state of `problem` is
  // the one of the last call, or SetState() was called in between.
  // Cost: O(pods) with a small factor; O(moves * log) the first time and for what has changed.
  const DrainPlan& Plan(const DrainProblem& problem, const DrainOptions& options, WorkBudget* budget);

  // Returns about how much memory the counts take that are kept for the next call.
  int64_t count_bytes() const;

  // Checks what is kept for the next call. For tests.
  void CheckConsistent() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_PLANNER_H_
