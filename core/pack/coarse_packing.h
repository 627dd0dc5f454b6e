// Packings of many kinds of items.
#ifndef LOADLINE_CORE_PACK_COARSE_PACKING_H_
#define LOADLINE_CORE_PACK_COARSE_PACKING_H_

#include "core/base/work_budget.h"
#include "core/pack/packing.h"

namespace loadline {

// Packs as Pack() does, for any number of kinds.
//
// A small linear program says how many nodes of each type the resources ask for, as if items could be divided
// between nodes, and what each resource is worth. A part of these nodes is made. Each takes items by what it
// has most left of, or the largest first, whichever fills it better. Then the program is asked again about
// what is left, until at most `last_items` items of few kinds are left, which are packed exactly. Items that
// the fewest types take come first. Items are looked for in classes of similar requests, so that a node costs
// O(classes * items), however many kinds there are. When the budget ends, the rest is put onto nodes one item
// after the other.
Packing PackCoarsely(const PackingProblem& problem, int64_t last_items, WorkBudget* budget);

// Returns a bound as LowerBound() does, for any number of kinds, by PriceBound() and the prices of the same
// linear program. `proven`: the budget sufficed.
PackingBound BoundCoarsely(const PackingProblem& problem, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_COARSE_PACKING_H_
