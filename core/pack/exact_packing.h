// Packings of few kinds of items, each by itself.
#ifndef LOADLINE_CORE_PACK_EXACT_PACKING_H_
#define LOADLINE_CORE_PACK_EXACT_PACKING_H_

#include <cstddef>

#include "core/base/work_budget.h"
#include "core/pack/packing.h"
#include "core/pack/pattern_lp.h"

namespace loadline {

// The largest number of kinds. The memory of the relaxation grows with its square: for this number it is half
// a MiB.
inline constexpr size_t kMostExactKinds = 256;
// With more kinds than these, there is not always time to solve the relaxation.
inline constexpr size_t kKindsForOneWay = 24;

// Same contracts as Pack() and LowerBound().
Packing PackExactly(const PackingProblem& problem, WorkBudget* budget);
PackingBound BoundExactly(const PackingProblem& problem, WorkBudget* budget);

// All items of a problem that some type takes, and its limits; types that another one can stand in for are
// left out. Cost: O(types^2 * items), as long as the budget lasts.
PackingRest AllOf(const PackingProblem& problem, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_EXACT_PACKING_H_
