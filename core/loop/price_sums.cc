#include "core/loop/price_sums.h"

#include <cstddef>

namespace loadline {

PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of) {
  StrongVector<GroupIndex, int64_t> nodes(groups.size(), 0);
  for (const auto [slot, group] : group_of) ++nodes[group];
  PriceTally tally;
  for (const GroupIndex group : groups.indices()) {
    tally.Add(groups[group].name, groups[group].priced, groups[group].price, nodes[group]);
  }
  return tally;
}

}  // namespace loadline
