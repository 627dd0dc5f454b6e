#include "core/pack/packing.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/pack/coarse_packing.h"
#include "core/pack/exact_packing.h"

namespace loadline {
namespace {

// The number of items that are packed exactly after all others. Chosen: only the last nodes are not full.
constexpr int64_t kLastItems = 100;

size_t KindsOf(const PackingProblem& problem) {
  return static_cast<size_t>(std::count_if(problem.items.begin(), problem.items.end(),
                                           [](const PackingItem& item) { return item.count > 0; }));
}

Packing Better(Packing a, Packing b) {
  const int64_t left_of_a = std::accumulate(a.left.begin(), a.left.end(), int64_t{0});
  const int64_t left_of_b = std::accumulate(b.left.begin(), b.left.end(), int64_t{0});
  const bool second = left_of_a != left_of_b ? left_of_b < left_of_a : b.cost < a.cost;
  Packing& better = second ? b : a;
  if (a.left == b.left) {
    // Both bound the cost of the same items.
    better.proven = a.proven || b.proven;
    better.lower_bound = std::min(better.cost, std::max(a.lower_bound, b.lower_bound));
  }
  return std::move(better);
}

}  // namespace

Packing Pack(const PackingProblem& problem, WorkBudget* budget) {
  const size_t kinds = KindsOf(problem);
  if (kinds <= kKindsForOneWay) return PackExactly(problem, budget);
  if (kinds > kMostExactKinds) return PackCoarsely(problem, kLastItems, budget);
  Packing coarse = PackCoarsely(problem, 0, budget);
  if (budget->ended()) return coarse;
  return Better(PackExactly(problem, budget), std::move(coarse));
}

PackingBound LowerBound(const PackingProblem& problem, WorkBudget* budget) {
  const size_t kinds = KindsOf(problem);
  if (kinds <= kKindsForOneWay) return BoundExactly(problem, budget);
  const PackingBound coarse = BoundCoarsely(problem, budget);
  if (kinds > kMostExactKinds || budget->ended()) return coarse;
  const PackingBound exact = BoundExactly(problem, budget);
  return {std::max(coarse.cost, exact.cost), coarse.proven || exact.proven};
}

}  // namespace loadline
