// Finds the most valuable contents of one node.
#ifndef LOADLINE_CORE_PACK_KNAPSACK_H_
#define LOADLINE_CORE_PACK_KNAPSACK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/work_budget.h"

namespace loadline {

// A kind of items for one knapsack.
struct KnapsackItem {
  std::span<const int64_t> request;  // by resource, >= 0
  double value = 0;                  // > 0
  int64_t most = 0;                  // >= 1
};

// The best content that was found, with an upper bound of its value.
struct KnapsackResult {
  double value = 0;
  std::vector<int64_t> counts;  // by item
  double bound = 0;             // no choice is worth more
};

// The part of the best value by which a result that is not cut short may miss it. Chosen: half of what a
// packing is off by when it is good enough (kGoodEnough in exact_packing.cc).
inline constexpr double kKnapsackTolerance = 5e-4;

// Maximizes the value of whole numbers of items whose requests fit into `free`, by branch and bound: items in
// the order of value per weighted sum of requests, the weights being those among a few that bound it best.
// Choices that are better by less than kKnapsackTolerance need not be found. After `most_nodes` branches the
// best so far is the answer. Stops early, too, when nothing can be worth more
// than `at_least`: the result is then any, and the bound at most that. Deterministic.
KnapsackResult SolveKnapsack(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                             double at_least, int64_t most_nodes, WorkBudget* budget);

// Weights of the resources, by which what `free` offers weighs 1, that bound the value of what fits well.
// Cost: O(resources * items log items) a few dozen times, as long as the budget lasts.
std::vector<double> BestShares(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                               WorkBudget* budget);
// No choice of items that fits into `free` is worth more. Cost: O(items log items).
double WeighedBound(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                    const std::vector<double>& shares);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_KNAPSACK_H_
