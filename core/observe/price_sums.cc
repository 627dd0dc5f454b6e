#include "core/observe/price_sums.h"

#include <cstdint>
#include <string>

#include "core/price/own_price.h"

namespace loadline {

PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of, const ClusterState& cluster) {
  StrongVector<GroupIndex, int64_t> nodes(groups.size(), 0);
  PriceTally tally;
  for (const auto [slot, group] : group_of) {
    const std::string& stated = cluster.Occupied(slot) ? cluster.traits(slot).stated_price : "";
    if (!stated.empty() && !ReadStatedPrice(stated).has_value()) {
      tally.AddUnreadable(cluster.name(slot), stated);
    }
    const PricedKind* const other = OtherKindOf(groups[group], slot);
    if (other == nullptr) {
      ++nodes[group];
    } else {
      tally.Add(groups[group].name, other->node, other->price, 1);
    }
  }
  for (const GroupIndex group : groups.indices()) {
    tally.Add(groups[group].name, groups[group].priced, groups[group].price, nodes[group]);
  }
  return tally;
}

}  // namespace loadline
