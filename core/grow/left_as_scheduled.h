// Counts the pods that new nodes do not take where kube-scheduler places them, and not the plan.
#ifndef LOADLINE_CORE_GROW_LEFT_AS_SCHEDULED_H_
#define LOADLINE_CORE_GROW_LEFT_AS_SCHEDULED_H_

#include <cstdint>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/fit/node_filter.h"

namespace loadline {

// Nodes that are not there yet. The group, whose model is known, outlives it.
struct ComingNodes {
  const NodeGroup* group = nullptr;
  int64_t nodes = 0;
};

// Returns the number of pods without a place when the nodes are ready and kube-scheduler places one pod after
// the other by its default, LeastAllocated: the most of several orders, in some of which equal pods come
// together. A plan packs tighter, so that the last large pods may be left over. 0 where that would cost too
// much to find out: where pods times nodes are more than ten million, or half of what is left of the budget
// does not suffice. The budget has not ended by this call.
//
// The snapshot is as before when the call returns. Cost: O(nodes * log nodes), and for each order and
// pod that of SharesLeft::Take().
int64_t LeftAsScheduled(const std::vector<PendingPods>& pods, const std::vector<IncomingPod>& daemons,
                        const std::vector<ComingNodes>& coming, const FitOptions& fit, Snapshot* snapshot,
                        WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LEFT_AS_SCHEDULED_H_
