// The estimate for pods that need nothing but room: nodes are counted, not simulated.
#ifndef LOADLINE_CORE_EXPAND_ESTIMATE_BY_COUNT_H_
#define LOADLINE_CORE_EXPAND_ESTIMATE_BY_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/expand/estimate.h"
#include "core/expand/room.h"

namespace loadline {

// The question of an estimate for pods that need nothing but room.
struct CountedEstimateInput {
  const RoomColumns* columns;
  std::vector<int64_t> free;    // of an empty copy
  std::vector<bool> admitted;   // by position: an empty copy takes one
  std::vector<int64_t> counts;  // by position
  std::vector<size_t> order;    // of positions
  EstimateMode mode;
};

// Returns the answer of Estimator::Estimate().
//
// Nodes with the same pods are kept together as a run. A pod that fits none of the nodes of a run fits none
// of them later, so first fit fills runs in their order: the nodes of a run that take k pods each split off
// at most one that takes fewer, and the rest that takes none. Cost: O(kinds of pods * runs).
NodeEstimate EstimateByCount(const CountedEstimateInput& input, NodeLimiter limiter, WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_ESTIMATE_BY_COUNT_H_
