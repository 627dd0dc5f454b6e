// The prices of nodes that exist, which may be others than those of new nodes of their groups.
#ifndef LOADLINE_CORE_PRICE_OWN_PRICE_H_
#define LOADLINE_CORE_PRICE_OWN_PRICE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_price.h"
#include "core/price/price_model.h"

namespace loadline {

// Returns the amount in the annotation of a node that states what it costs; nullopt: it is no price.
std::optional<double> ReadStatedPrice(absl::string_view stated);

// Prices the nodes whose labels name another instance type, region or way of buying than new nodes of their
// group have, such as those of a group of several instance types, and keeps the prices in the groups. What
// the cloud or an annotation says of new nodes does not hold for them. A group whose price is given for all
// of its nodes, or is not known, is left as it is. Cost: O(nodes * known labels), and a price for each kind.
void PriceOtherKinds(const PriceModel& model, const GroupsOfNodes& group_of, const ClusterState& cluster,
                     NodeGroups* groups);

// Returns the node as prices see it: as a new node of its group, but for what its labels name.
PricedNode PricedAsItIs(const NodeGroup& group, const ClusterState& cluster, Slot slot);

// Returns the price of a node of the group: that of its kind, see PriceOtherKinds(), and if the node states
// an amount itself, that amount with the same share for interruptions and the same surcharge. A price that
// is given for all of the group, or is not known, holds for each node.
NodePrice PriceOfNode(const NodeGroup& group, const ClusterState& cluster, Slot slot);

// Returns the same in US dollars per hour; nullopt: the group has no price.
std::optional<double> UsdOf(const NodeGroup& group, const ClusterState& cluster, Slot slot);

// Returns what the removal of the node saves per hour, in the currency of NodeGroup::node_price; nullopt: it
// is not known.
std::optional<double> SavedPrice(const NodeGroup& group, const ClusterState& cluster, Slot slot);

// Returns whether the node costs what a new node of its group does.
bool CostsAsNew(const NodeGroup& group, const ClusterState& cluster, Slot slot);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_OWN_PRICE_H_
