// The prices of existing nodes, which may be others than those of new nodes of their groups.
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

// Returns the price of a node of a group whose new nodes cost `of_group`: the amount that the node itself
// states, with the same share for interruptions and the same surcharge. The price of the group holds where
// the node states nothing that can be read, where that price is given for all of the group, and where none is
// known.
NodePrice PriceOfNode(const NodePrice& of_group, absl::string_view stated);

// Prices the existing nodes that their groups would make otherwise now, and keeps these prices in the groups.
// A node differs from a new one if instance type, region or system are known of both and are not the same; if
// its labels state another capacity type than that of new nodes, which are on demand where nobody says it,
// and either somebody does or the price of a new node is known; or, where that price is an estimate, if CPU,
// memory or GPUs of both are known and one of them has a quarter more than the other. A smaller difference
// may be that between a template and its machine. A node that differs in nothing costs exactly as much as a
// new one: else replacement would go on for ever.
//
// The prices that the cloud and annotations state of new nodes do not hold for a node that differs. Where
// only an estimate is known of it, and a better price of a new node, that price holds. A price that is given
// for the group holds for all of its nodes. Architecture and zone are not compared, as no price depends on
// them alone. Cost: O(nodes), and a price for each kind.
void PriceOtherKinds(const PriceModel& model, const GroupsOfNodes& group_of, const ClusterState& cluster,
                     NodeGroups* groups);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_OWN_PRICE_H_
