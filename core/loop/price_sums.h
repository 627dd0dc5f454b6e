// The sum of what the nodes of groups cost, in parts by the sources of the prices.
#ifndef LOADLINE_CORE_LOOP_PRICE_SUMS_H_
#define LOADLINE_CORE_LOOP_PRICE_SUMS_H_

#include <optional>

#include "core/loop/plan_loop.h"
#include "core/price/own_price.h"
#include "core/price/price_tally.h"

namespace loadline {

// Returns the price of a node of a group in US dollars per hour, see PriceOfNode(); nullopt: the group has
// none.
std::optional<double> UsdOf(const NodeGroup& group, const NodeTraits& traits);

// Adds up the nodes of groups with a price. Cost: O(slots + groups).
PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of, const ClusterState& cluster);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PRICE_SUMS_H_
