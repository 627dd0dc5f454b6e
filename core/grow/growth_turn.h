// Namespaces take turns where not all pods that wait can be looked at.
#ifndef LOADLINE_CORE_GROW_GROWTH_TURN_H_
#define LOADLINE_CORE_GROW_GROWTH_TURN_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/work_budget.h"
#include "core/expand/estimate.h"
#include "core/expand/plan.h"

namespace loadline {

// Says whose turn it is. The question of a loop has it, and its plan returns it.
struct GrowthTurn {
  // About one namespace in so many takes part in the plan of growth; 1: all do. A power of two.
  int32_t parts = 1;
  // Another one takes other namespaces.
  int64_t round = 0;
  // The limit that cut short the plan for which namespaces take turns.
  BudgetEnd cut_short_by = BudgetEnd::kNotEnded;
  friend bool operator==(const GrowthTurn&, const GrowthTurn&) = default;
};

// Pods that are left out, by their position.
using DeferredPods = std::vector<std::pair<size_t, PendingPods>>;

// Takes pods out of `waiting` that do not have their turn: the removed entries cost nothing and wait for
// nothing. Which namespaces have it is drawn by a hash of the round and the namespace, so that nobody is
// beside the same others each time, and each has its turn about once in `parts` rounds. One has it at least,
// and so have those with the fewest kinds, rules and pods with rules, up to half of the share of a turn: who
// has little does not wait for those for whom the plan was cut short. Cost: O(waiting.size() *
// log(namespaces)).
DeferredPods TakeOutOfTurn(const GrowthTurn& turn, std::vector<PendingPods>* waiting);

// Half as many namespaces take part next time if the plan was cut short before all pods of several had a
// place, and not for the sake of one alone that took more than its portion; else twice as many. `waiting`:
// those that took part.
GrowthTurn NextTurn(const GrowthTurn& turn, const std::vector<PendingPods>& waiting, const ScaleUpPlan& plan);

// Puts back what TakeOutOfTurn() took: pods without a place, in a plan that is cut short for them.
void PutBack(const GrowthTurn& turn, DeferredPods&& held, std::vector<PendingPods>* waiting,
             ScaleUpPlan* plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_GROWTH_TURN_H_
