// Shares the nodes of a plan evenly among groups that are similar.
#ifndef LOADLINE_CORE_EXPAND_SHARE_GROWTH_H_
#define LOADLINE_CORE_EXPAND_SHARE_GROWTH_H_

#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/expand/plan_nodes.h"

namespace loadline {

// Returns the nodes of a plan, each at the group of its NodeGroup::balance_set that is smallest at that
// point, has room, and whose nodes take the same pods; those of groups without a set stay where they are. The
// nodes and what each holds are the same as before. Pods that depend on others have to be placed anew to see
// whether they still fit.
//
// The snapshot is as before when the call returns, with the searches of the estimator for new nodes begun
// anew. Where the budget ends, the nodes are those of the plan as it came. Deterministic. Cost: a trial of
// each distinct content on a node of each group of its set. Source: BalanceGrowth() is Cluster Autoscaler's
// way to share; it asks of a similar group that it takes all pods of the option, here each node's pods are
// tried.
std::vector<WantedNodes> ShareGrowth(const std::vector<PlannedNodes>& nodes, const GrowableGroups& groups,
                                     Estimator* estimator, Snapshot* snapshot, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_SHARE_GROWTH_H_
