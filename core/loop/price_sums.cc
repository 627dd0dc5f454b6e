#include "core/loop/price_sums.h"

#include <cstddef>
#include <string>

#include "core/price/own_price.h"

namespace loadline {

PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of, const ClusterState& cluster) {
  StrongVector<GroupIndex, int64_t> as_new(groups.size(), 0);
  PriceTally tally;
  for (const auto [slot, index] : group_of) {
    const NodeGroup& group = groups[index];
    if (cluster.Occupied(slot)) {
      const std::string& stated = cluster.traits(slot).stated_price;
      if (!stated.empty() && !ReadStatedPrice(stated).has_value()) {
        tally.AddUnreadable(cluster.name(slot), stated);
      }
    }
    if (CostsAsNew(group, cluster, slot)) {
      ++as_new[index];
    } else {
      tally.Add(group.name, PricedAsItIs(group, cluster, slot), PriceOfNode(group, cluster, slot), 1);
    }
  }
  for (const GroupIndex group : groups.indices()) {
    tally.Add(groups[group].name, groups[group].priced, groups[group].price, as_new[group]);
  }
  return tally;
}

}  // namespace loadline
