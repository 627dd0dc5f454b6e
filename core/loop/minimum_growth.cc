#include "core/loop/minimum_growth.h"

#include <algorithm>
#include <cstdint>

namespace loadline {
namespace {

bool MayGrowToMinimum(const NodeGroup& group) {
  return group.model.has_value() && group.blocked_reason.empty() && !group.sized;
}

}  // namespace

void GrowToMinima(GrowthLedger* ledger) {
  for (const GroupIndex index : ledger->counts.indices()) {
    const NodeGroup& group = ledger->facts->groups[index];
    const int64_t missing = group.min_nodes - ledger->NodesOf(index);
    if (missing <= 0 || !MayGrowToMinimum(group)) continue;
    int64_t& upcoming = ledger->counts[index].upcoming;
    const int64_t most = std::min(ledger->NodesWithinLimits(index), kMostUpcomingNodes - upcoming);
    const int64_t added = group.atomic ? most : std::min(missing, most);
    if (added <= 0) continue;
    upcoming += added;
    ledger->Of(index).for_minimum = added;
  }
}

}  // namespace loadline
