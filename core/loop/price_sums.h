// The sum of what the nodes of groups cost, in parts by the sources of the prices.
#ifndef LOADLINE_CORE_LOOP_PRICE_SUMS_H_
#define LOADLINE_CORE_LOOP_PRICE_SUMS_H_

#include <cstdint>
#include <vector>

#include "core/loop/plan_loop.h"
#include "core/price/price_tally.h"

namespace loadline {

// Adds up the nodes of groups with a price. `group_of`: the position of the group of each slot; -1: none.
// Cost: O(slots + groups).
PriceTally TallyPrices(const std::vector<NodeGroup>& groups, const std::vector<int32_t>& group_of);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PRICE_SUMS_H_
