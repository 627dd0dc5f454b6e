// Items of similar requests as one.
#ifndef LOADLINE_CORE_PACK_ITEM_CLASSES_H_
#define LOADLINE_CORE_PACK_ITEM_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/work_budget.h"
#include "core/pack/packing.h"

namespace loadline {

// Items that the same types take.
struct ItemClass {
  std::vector<int64_t> request;  // of each resource the most that a member requests
  std::vector<int64_t> least;    // and the least
  std::vector<int32_t> members;  // items, the largest first
};

// How large a request is: of the most that any type offers of each resource the share, summed up.
class RequestSize {
 public:
  explicit RequestSize(const PackingProblem& problem);
  double Of(const std::vector<int64_t>& request) const;
  double scale(size_t resource) const { return scale_[resource]; }

 private:
  std::vector<double> scale_;  // by resource: 1 / the most that a type offers; 0: none does
};

// Puts the items of which any are left into at most `most` classes, but at least one for each set of types
// that take items, and at most kMostItemClasses: items beyond are in none. A class is split where members
// would have to be rounded up most. `left`: by item. Stops splitting when the budget ends. Deterministic.
// Cost: O(items log items * log most).
inline constexpr size_t kMostItemClasses = 1'024;
std::vector<ItemClass> ClassesOf(const PackingProblem& problem, const std::vector<int64_t>& left, size_t most,
                                 WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_ITEM_CLASSES_H_
