// Packings of many kinds of items.
#ifndef LOADLINE_CORE_PACK_COARSE_PACKING_H_
#define LOADLINE_CORE_PACK_COARSE_PACKING_H_

#include "core/base/work_budget.h"
#include "core/pack/packing.h"

namespace loadline {

// As Pack(), of any number of kinds.
//
// How: as if pods could be divided between nodes, a small linear program says how many nodes of each type the
// resources ask for, and what each resource is worth. Of these nodes a part is made; each takes pods by what
// it has most left of, or the largest first, whichever fills it better. Then what is left is asked again,
// until at most `last_pods` pods of few kinds are left, which are packed exactly. Pods that the fewest types
// take come first. Pods are looked for in classes of similar requests, so that a node costs O(classes *
// pods), however many kinds there are. When the budget ends, the rest goes onto nodes one pod after the
// other.
Packing PackCoarsely(const PackingProblem& problem, int64_t last_pods, WorkBudget* budget);

// As LowerBound(), of any number of kinds, by PriceBound() and the prices of the same linear program.
// `proven`: the budget sufficed.
PackingBound BoundCoarsely(const PackingProblem& problem, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_COARSE_PACKING_H_
