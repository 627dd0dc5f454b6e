// Chooses a node that suits the pods that wait and further ones like them.
#ifndef LOADLINE_CORE_EXPAND_LOOK_AHEAD_H_
#define LOADLINE_CORE_EXPAND_LOOK_AHEAD_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/expand/estimate.h"
#include "core/expand/growable.h"
#include "core/expand/plan.h"
#include "core/expand/plan_nodes.h"

namespace loadline {

// Returns the further pods that a cluster of this size expects: the larger it is, the more.
FurtherPods FurtherPodsOf(int64_t cluster_nodes);

// Pods that arrive one by one each find the cheapest node for themselves alone, which together are far from
// the cheapest nodes for all: each node carries its DaemonSets, and keeps a part for the system, anew.
//
// The rule: a round is as many pods as wait now, of the same kinds. A node of group g costs c(g) and holds
// m(g) rounds, of which no more than H + 1 count: those that wait, and the H further ones within FurtherPods.
// The group with the least c(g) / m(g) is the best, the smaller node between equals.
//
// The expected value over an unknown number of further rounds was tried in place of H: it costs more in
// `make bench-arrivals`, as each pod then finds that few others come. Groups that have all of their nodes or
// none are not considered, nor those with GPUs, whose nodes cost most if nobody uses
// them. For pods of Jobs, which end, no further ones are expected.
struct LookAhead {
  Estimator* estimator;
  const GrowableGroups& groups;
  FurtherPods further;
  WorkBudget* budget;

  // Returns one node that takes all of `placed` (by position of the pods) and costs less per round than
  // `alone`, the nodes of a plan for them alone, of which more than one hold one round; nullopt: there is
  // none. `room`: see MakePlanProblem(). Leaves other counts with the estimator. Cost: O(groups * log H)
  // estimates of one node.
  std::optional<WantedNodes> Choose(const std::vector<int64_t>& placed,
                                    const std::vector<PlannedNodes>& alone,
                                    const StrongVector<GrowableIndex, int64_t>& room) const;

 private:
  int64_t FurtherRounds(const std::vector<int64_t>& placed) const;
  std::optional<NodeEstimate> OneNode(GrowableIndex group, const std::vector<int64_t>& placed,
                                      int64_t rounds) const;
  double UsdPerRound(const std::vector<PlannedNodes>& alone, const std::vector<int64_t>& placed,
                     int64_t most) const;
  int64_t RoundsOn(GrowableIndex group, const std::vector<int64_t>& placed, int64_t most) const;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_LOOK_AHEAD_H_
