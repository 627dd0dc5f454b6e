#include "core/loop/price_sums.h"

#include <cstddef>

namespace loadline {

PriceTally TallyPrices(const std::vector<NodeGroup>& groups, const std::vector<int32_t>& group_of) {
  std::vector<int64_t> nodes(groups.size(), 0);
  for (const int32_t group : group_of) {
    if (group >= 0) ++nodes[static_cast<size_t>(group)];
  }
  PriceTally tally;
  for (size_t i = 0; i < groups.size(); ++i) {
    tally.Add(groups[i].name, groups[i].priced, groups[i].price, nodes[i]);
  }
  return tally;
}

}  // namespace loadline
