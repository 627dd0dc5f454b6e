// A small linear program: cover demands by columns at least cost, under upper limits.
#ifndef LOADLINE_CORE_PACK_COVERING_LP_H_
#define LOADLINE_CORE_PACK_COVERING_LP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/work_budget.h"

namespace loadline {

// minimize    sum_p cost_p x_p + penalty * sum_j missing_j
// subject to  sum_p a_jp x_p + missing_j >= demand_j   for each demand
//             sum_p u_lp x_p             <= limit_l    for each limit
//             x, missing >= 0
//
// Columns may be added between calls of Solve(), which then continues from its last solution: made for column
// generation. Primal simplex in doubles with a dense inverse of the basis: O(rows^2) per step. Equal input
// gives equal output. Not thread-safe.
class CoveringLp {
 public:
  struct Entry {
    int32_t row;  // demands first, then limits
    double value;
  };

  // Returns the bytes that so many rows take, without columns.
  static int64_t Bytes(size_t rows) { return static_cast<int64_t>((rows + 8) * rows * sizeof(double)); }

  // All values finite, demands and limits >= 0, penalty > 0.
  CoveringLp(std::vector<double> demands, std::vector<double> limits, double penalty);

  // `entries` > 0, each row at most once; `cost` >= 0. Returns the number of the column, from 0.
  size_t AddColumn(double cost, std::vector<Entry> entries);

  // Continues until it is optimal over the columns that it has. False: the budget ended before.
  bool Solve(WorkBudget* budget);

  // After Solve(). By column, by demand (>= 0), by limit (<= 0); what the solution costs, with penalties.
  std::vector<double> Values() const;
  std::vector<double> DemandPrices() const;
  std::vector<double> LimitPrices() const;
  double Objective() const;

 private:
  // Variables: one per row (what is missing, or left of a limit), one per demand for what is too much, and
  // the columns.
  size_t rows() const { return right_.size(); }
  size_t first_column() const { return rows() + demands_; }
  double Cost(size_t variable) const;
  double ReducedCost(size_t variable) const;
  // The variable to enter; nullopt-like: variables() when there is none.
  size_t Entering() const;
  std::vector<double> Direction(size_t variable) const;
  // The row whose variable leaves; rows() when nothing bounds the step.
  size_t Leaving(const std::vector<double>& direction) const;
  void Pivot(size_t row, size_t entering, const std::vector<double>& direction);
  size_t variables() const { return first_column() + columns_.size(); }

  struct Column {
    double cost;
    std::vector<Entry> entries;
  };

  size_t demands_;
  double penalty_;
  std::vector<double> right_;    // by row: demands and limits, moved a little so that steps do not stall
  std::vector<Column> columns_;  // by number
  std::vector<double> inverse_;  // of the basis: row * rows() + column
  std::vector<size_t> basis_;    // by row: its variable
  std::vector<bool> is_basic_;   // by variable
  std::vector<double> level_;    // by row: the value of its variable
  std::vector<double> prices_;   // by row
};

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_COVERING_LP_H_
