// Pending pods and node groups as a packing problem.
#ifndef LOADLINE_CORE_EXPAND_PLAN_PROBLEM_H_
#define LOADLINE_CORE_EXPAND_PLAN_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/work_budget.h"
#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/pack/packing.h"

namespace loadline {

// The packing problem of a joint plan, with the pods and groups behind its items and types.
struct PlanProblem {
  PackingProblem packing;
  // By item: positions of the pods that it represents, with how many of each.
  std::vector<std::vector<PodCount>> pods;
  // By type: the groups whose nodes are of that type, in the order of their names.
  std::vector<std::vector<GrowableIndex>> groups;
  // False: the budget ended before, and nothing is in it.
  bool complete = true;
  std::unique_ptr<ReservedMemory> memory;  // of the tables
};

// The rules that a packing problem contains.
enum class PlanView {
  // The rules that a plan should keep to: for pods that depend on others it is tried out how many one node
  // takes, and pods that spread over zones are divided among them beforehand.
  kAsPlanned,
  // Only what room and the node itself forbid: no plan can do without it, so it is fit for a lower bound.
  kRelaxed,
};

// `counts`: how many to place, by position of the pods. `room`: new nodes that each group may still get.
// Leaves the snapshot of `estimator` as it is. Memory: O(kinds of pods * groups), which is charged.
PlanProblem MakePlanProblem(Estimator* estimator, Snapshot* snapshot, const GrowableGroups& groups,
                            const std::vector<int64_t>& counts,
                            const StrongVector<GrowableIndex, int64_t>& room, NodeLimit max_new_nodes,
                            PlanView view, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_PLAN_PROBLEM_H_
