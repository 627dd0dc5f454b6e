// The lower bound for the cost of a cluster, and the worth of its pods.
#ifndef LOADLINE_CORE_CONSOLIDATE_COST_BOUND_H_
#define LOADLINE_CORE_CONSOLIDATE_COST_BOUND_H_

#include <vector>

#include "core/base/work_budget.h"
#include "core/consolidate/consolidation.h"
#include "core/consolidate/trial_cluster.h"

namespace loadline {

// A lower bound of the cost of all pods that may move, with its shadow prices.
struct CostBound {
  double usd = 0;       // of nodes that may go, and what takes their place, US dollars per hour
  bool proven = false;  // the budget sufficed
  std::vector<ShadowPrice> shadow_prices;  // of the part that requests most
};

// A cost that nodes which hold the pods of all nodes that may go are never below, whichever nodes of the
// groups they are, with the room on nodes that stay for nothing. Prepares all kinds, and writes into
// `trial_cluster` what each is worth.
//
// How: it relaxes what pods forbid each other, and that a pod is not divided between nodes. Groups whose
// kinds of pods have nothing in common are bound one by one. A type is a group: what a new node of it offers;
// nodes of it that are there count as new ones, and where they offer more or cost less they are a type of
// their own. Where a group keeps a minimum, the nodes up to it are paid for whatever they hold. Prices of
// resources come from a linear program; that no node holds more than it costs at these prices is shown by
// weak duality, so that the bound is one however the program was solved. It is rounded down by a billionth.
//
// Cost: O(kinds * groups), and a linear program with a row per resource and limit.
CostBound BoundCost(TrialCluster* trial_cluster, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_CONSOLIDATE_COST_BOUND_H_
