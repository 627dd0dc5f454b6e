// The price that a node states itself, beside that of its group.
#ifndef LOADLINE_CORE_PRICE_OWN_PRICE_H_
#define LOADLINE_CORE_PRICE_OWN_PRICE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "core/cluster/node_price.h"

namespace loadline {

// Returns the amount in the annotation of a node that states what it costs; nullopt: it is no price.
std::optional<double> ReadStatedPrice(absl::string_view stated);

// Returns the price of a node of a group whose new nodes cost `of_group`: the amount that the node itself
// states, with the same share for interruptions and the same surcharge. The price of the group holds where
// the node states nothing that can be read, where that price is given for all of the group, and where none is
// known.
NodePrice PriceOfNode(const NodePrice& of_group, absl::string_view stated);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_OWN_PRICE_H_
