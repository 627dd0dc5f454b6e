// The sum of what the nodes of groups cost, in parts by the sources of the prices.
#ifndef LOADLINE_CORE_OBSERVE_PRICE_SUMS_H_
#define LOADLINE_CORE_OBSERVE_PRICE_SUMS_H_

#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/drain/drain_question.h"
#include "core/price/price_tally.h"

namespace loadline {

// Adds up the nodes of groups with a price. Cost: O(slots + groups).
PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of, const ClusterState& cluster);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_PRICE_SUMS_H_
