#include "core/loop/minimum_growth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loadline {
namespace {

bool MayGrowToMinimum(const NodeGroup& group) {
  return group.model.has_value() && group.blocked_reason.empty() && !group.sized;
}

}  // namespace

void GrowToMinima(const LoopProblem& problem, CountsOfGroups* counts, LoopPlan* plan) {
  if (!problem.enforce_minima || !problem.decisions.scale_up) return;
  for (const GroupIndex index : problem.groups.indices()) {
    const NodeGroup& group = problem.groups[index];
    GroupCounts& count = (*counts)[index];
    const int64_t nodes = count.registered + count.upcoming;
    const int64_t missing = group.min_nodes - nodes;
    if (missing <= 0 || !MayGrowToMinimum(group)) continue;
    const int64_t most =
        std::min(NodesWithinLimits(problem, *counts, *plan, index), kMostUpcomingNodes - count.upcoming);
    const int64_t added = group.atomic ? most : std::min(missing, most);
    if (added <= 0) continue;
    count.upcoming += added;
    GrowthOf(index, plan).for_minimum = added;
  }
}

}  // namespace loadline
