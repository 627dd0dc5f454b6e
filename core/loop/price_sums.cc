#include "core/loop/price_sums.h"

#include <cstddef>

namespace loadline {

std::optional<double> UsdOf(const NodeGroup& group, const NodeTraits& traits) {
  if (!group.usd_per_hour.has_value() || traits.stated_price.empty()) return group.usd_per_hour;
  return PriceOfNode(group.price, traits.stated_price).price;
}

PriceTally TallyPrices(const NodeGroups& groups, const GroupsOfNodes& group_of, const ClusterState& cluster) {
  StrongVector<GroupIndex, int64_t> nodes(groups.size(), 0);
  PriceTally tally;
  for (const auto [slot, group] : group_of) {
    const std::string& stated = cluster.Occupied(slot) ? cluster.traits(slot).stated_price : "";
    if (stated.empty()) {
      ++nodes[group];
      continue;
    }
    if (!ReadStatedPrice(stated).has_value()) tally.AddUnreadable(cluster.name(slot), stated);
    tally.Add(groups[group].name, groups[group].priced, PriceOfNode(groups[group].price, stated), 1);
  }
  for (const GroupIndex group : groups.indices()) {
    tally.Add(groups[group].name, groups[group].priced, groups[group].price, nodes[group]);
  }
  return tally;
}

}  // namespace loadline
