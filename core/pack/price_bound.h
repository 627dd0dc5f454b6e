// A lower bound for the cost of nodes, by prices of their contents.
#ifndef LOADLINE_CORE_PACK_PRICE_BOUND_H_
#define LOADLINE_CORE_PACK_PRICE_BOUND_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/work_budget.h"
#include "core/pack/packing.h"

namespace loadline {

// Prices of items, and of nodes within limits: any prices prove a lower bound.
struct PackingPrices {
  std::vector<double> items;  // by item, >= 0
  std::vector<double> types;  // by type: of a node within its limit, >= 0
  double all = 0;             // of a node within the limit of all, >= 0
};

// A cost that no nodes within the limits are below that hold `counts` of each item, however they are packed.
//
// A node is worth the sum of the prices of what it holds; that no node of a type can be worth more than w is
// known from weighing its resources into one. With the prices divided by the largest w / cost of all types
// no node is worth more than it costs, so that all items together cost at least what they are worth then
// (weak duality of the packing's relaxation, Gilmore and Gomory 1961). Any prices do; good ones give a good
// bound. `sample`: items by which the weights are chosen. Cost: O(types * items log items).
double PriceBound(const PackingProblem& problem, const std::vector<int64_t>& counts,
                  const PackingPrices& prices, const std::vector<int32_t>& sample, WorkBudget* budget);

// The amounts that nodes must offer together, whatever is on each: as if items could be divided between
// nodes.
struct ResourceRelaxation {
  PackingPrices prices;       // of what items request, per unit of each resource
  std::vector<double> nodes;  // by type
  bool covers = false;        // limits permit nodes that offer enough
};
// `types`: what of them takes part; PackingType::most is not read. `limit`: of all of them together.
// `counts`: of each item. Cost: O(items * resources), and a linear program with a row per resource and limit.
ResourceRelaxation RelaxResources(const std::vector<PackingItem>& items,
                                  const std::vector<PackingType>& types, std::optional<int64_t> limit,
                                  const std::vector<int64_t>& counts, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_PRICE_BOUND_H_
