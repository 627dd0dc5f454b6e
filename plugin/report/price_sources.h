// The parts of a sum of prices by their sources, with sentences about them.
#ifndef LOADLINE_PLUGIN_REPORT_PRICE_SOURCES_H_
#define LOADLINE_PLUGIN_REPORT_PRICE_SOURCES_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "core/cluster/node_group.h"
#include "core/price/price_model.h"
#include "core/price/price_tally.h"
#include "loadline/v1/prices.pb.h"

namespace loadline {

// Returns the sums, and in sentences which lists, regions and ratios they rest on, and what is not known.
// `prices`: by which the nodes were priced. There are at most nine sentences, each of which names at most
// five things.
v1::PriceSources PriceSourcesOf(const PriceTally& tally, const PriceModel& prices);

// New nodes, by group.
using BoughtNodes = absl::btree_map<GroupIndex, int64_t>;

// Adds a sentence about nodes that are bought at an estimated price, if there are any: the sums above are of
// the nodes that are there.
void TellEstimatedPurchases(const NodeGroups& groups, const BoughtNodes& bought, v1::PriceSources* sources);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_REPORT_PRICE_SOURCES_H_
