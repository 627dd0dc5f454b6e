// Plans new nodes of several groups together for pods that have no place on nodes that are there.
#ifndef LOADLINE_CORE_EXPAND_JOINT_PLANNER_H_
#define LOADLINE_CORE_EXPAND_JOINT_PLANNER_H_

#include <cstdint>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"

namespace loadline {

// The part of PlanScaleUp() behind the room on existing nodes, whatever the priorities of pods and groups.
// `waiting`: how many of each of the estimator's pods wait for new nodes. The snapshot is as before when a
// call returns. Cost: that of PlanScaleUp().
struct JointPlanner {
  Estimator* estimator;
  Snapshot* snapshot;
  const GrowableGroups& groups;
  PlanOptions options;
  WorkBudget* budget;

  // Returns whether a new node takes any of the pods.
  bool TakesAny(const std::vector<int64_t>& waiting) const;

  // Returns a plan without the pods that fit on existing nodes by themselves.
  ScaleUpPlan Plan(const std::vector<int64_t>& waiting) const;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_JOINT_PLANNER_H_
