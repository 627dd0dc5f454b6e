// The cheapest mix of node types that holds given items, and how much cheaper it could be at most.
#ifndef LOADLINE_CORE_PACK_PACKING_H_
#define LOADLINE_CORE_PACK_PACKING_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/work_budget.h"

namespace loadline {

// Items that are the same for packing.
struct PackingItem {
  std::vector<int64_t> request;  // by resource, >= 0
  int64_t count = 0;             // >= 0
};

// Nodes of one type.
struct PackingType {
  std::vector<int64_t> free;     // by resource; below 0 counts as 0
  double cost = 0;               // of one node: finite, >= 0
  std::optional<int64_t> limit;  // nodes, >= 0; nullopt: none
  std::vector<int64_t> most;  // by item: what one node takes of it by itself at most; 0: it may not go there
};

// Items, types of nodes, and limits.
struct PackingProblem {
  std::vector<PackingItem> items;
  std::vector<PackingType> types;
  std::optional<int64_t> limit;  // nodes of all types together, >= 0; nullopt: none
};

// Nodes of one type with the same items on each.
struct PackedNodes {
  int32_t type = 0;
  int64_t nodes = 0;
  std::vector<std::pair<int32_t, int64_t>> items;  // item and count > 0 on one node, in the order of items
  friend bool operator==(const PackedNodes&, const PackedNodes&) = default;
};

// The nodes of a packing, its cost, and a lower bound of the cost.
struct Packing {
  std::vector<PackedNodes> nodes;  // by type, then by what they hold
  std::vector<int64_t> left;       // by item: not placed, because no type takes it or limits are reached
  double cost = 0;
  // Nodes that hold what this packing holds cannot cost less, by whichever packing within the limits.
  double lower_bound = 0;
  bool proven = false;  // the bound is that of a relaxation that was solved to its end
};

// Packs as many items as limits permit (by a penalty per item that is larger than the cost of a node), at
// little cost.
//
// The relaxation counts nodes by pattern, a pattern being what one node of a type holds: a linear program
// over patterns that are found as they are needed (Gilmore and Gomory 1961), each as a knapsack by the prices
// of the items. It sees what no sum over CPU, memory, GPU and pod slots can see: that an item is not
// divided between nodes. From its solution whole nodes are taken, the rest is solved anew, with patterns
// that fit the rest, and so on; where nothing is whole, several ways to round up are tried, and abandoned as
// soon as their relaxation costs more than the best packing known.
//
// Anytime: when the budget ends, the best so far is returned. Deterministic; does not depend on the order of
// items or types but for ties. Cost per round: O((items + limits)^2 * patterns), for few kinds of items. Of
// more than kKindsForOneWay the result competes with that of PackCoarsely(), and of more than kMostExactKinds
// the latter is the result. Memory is charged to the budget.
Packing Pack(const PackingProblem& problem, WorkBudget* budget);

// The bound alone: nodes within the limits that hold all items which some type takes do not cost less, if the
// limits permit it at all. `proven`: as in Packing.
struct PackingBound {
  double cost = 0;
  bool proven = false;
};
PackingBound LowerBound(const PackingProblem& problem, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_PACKING_H_
