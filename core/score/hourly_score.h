// The raw scores of nodes whose pods count by what they are expected to use in each hour of the day.
#ifndef LOADLINE_CORE_SCORE_HOURLY_SCORE_H_
#define LOADLINE_CORE_SCORE_HOURLY_SCORE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/score/limit_columns.h"
#include "core/score/score_terms.h"

namespace loadline {

// Returns for each candidate the lowest of its raw scores of the 24 hours; see RawScores. `columns` has
// profiles. Cost: O(candidates * resources * hours), four hours in one step for means and sums in fixed
// point.
template <Arithmetic kArithmetic>
std::vector<int64_t> HourlyRawValues(const LimitColumns& columns, std::span<const PodTerm> pod,
                                     int64_t all_weights, std::span<const Slot> candidates);

// Returns the hour in which the raw score of a node is lowest: the first of several.
size_t WorstHour(const LimitColumns& columns, std::span<const PodTerm> pod, Slot slot);

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_HOURLY_SCORE_H_
