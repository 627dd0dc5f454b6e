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

void GrowToMinima(const LoopProblem& problem, std::vector<GroupCounts>* counts, LoopPlan* plan) {
  if (!problem.enforce_minima || !problem.decisions.scale_up) return;
  for (size_t i = 0; i < problem.groups.size(); ++i) {
    const NodeGroup& group = problem.groups[i];
    const int64_t nodes = (*counts)[i].registered + (*counts)[i].upcoming;
    const int64_t missing = group.min_nodes - nodes;
    if (missing <= 0 || !MayGrowToMinimum(group)) continue;
    const int64_t most =
        std::min(NodesWithinLimits(problem, *counts, *plan, i), kMostUpcomingNodes - (*counts)[i].upcoming);
    const int64_t added = group.atomic ? most : std::min(missing, most);
    if (added <= 0) continue;
    (*counts)[i].upcoming += added;
    GrowthOf(static_cast<int32_t>(i), plan).for_minimum = added;
  }
}

}  // namespace loadline
