#include "core/pack/covering_lp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace loadline {
namespace {

// Chosen: far above the rounding of doubles near 1, far below any useful step.
constexpr double kSmall = 1e-9;
// The amount by which right sides are moved apart: with equal ones, the simplex method can step without
// progress. Chosen: above kSmall, and too little to change a rounded answer.
constexpr double kShift = 1e-7;

}  // namespace

CoveringLp::CoveringLp(std::vector<double> demands, std::vector<double> limits, double penalty)
    : demands_(demands.size()), penalty_(penalty), right_(std::move(demands)) {
  right_.insert(right_.end(), limits.begin(), limits.end());
  for (size_t i = 0; i < rows(); ++i) {
    right_[i] += kShift * (1.0 + static_cast<double>(i % 97) / 97.0);
  }
  inverse_.assign(rows() * rows(), 0);
  is_basic_.assign(first_column(), false);
  for (size_t i = 0; i < rows(); ++i) {
    inverse_[i * rows() + i] = 1;
    basis_.push_back(i);
    is_basic_[i] = true;
    prices_.push_back(Cost(i));
  }
  level_ = right_;
}

size_t CoveringLp::AddColumn(double cost, std::vector<Entry> entries) {
  columns_.push_back({cost, std::move(entries)});
  is_basic_.push_back(false);
  return columns_.size() - 1;
}

double CoveringLp::Cost(size_t variable) const {
  if (variable < demands_) return penalty_;
  return variable < first_column() ? 0 : columns_[variable - first_column()].cost;
}

double CoveringLp::ReducedCost(size_t variable) const {
  if (variable < rows()) return Cost(variable) - prices_[variable];
  if (variable < first_column()) return prices_[variable - rows()];
  const Column& column = columns_[variable - first_column()];
  double reduced = column.cost;
  for (const Entry& entry : column.entries) reduced -= prices_[static_cast<size_t>(entry.row)] * entry.value;
  return reduced;
}

size_t CoveringLp::Entering() const {
  size_t best = variables();
  double lowest = -kSmall * (1 + penalty_);
  for (size_t variable = 0; variable < variables(); ++variable) {
    if (is_basic_[variable]) continue;
    const double reduced = ReducedCost(variable);
    if (reduced < lowest) {
      lowest = reduced;
      best = variable;
    }
  }
  return best;
}

std::vector<double> CoveringLp::Direction(size_t variable) const {
  std::vector<double> direction(rows(), 0);
  const auto add = [&](size_t column, double value) {
    for (size_t i = 0; i < rows(); ++i) direction[i] += inverse_[i * rows() + column] * value;
  };
  if (variable < rows()) {
    add(variable, 1);
  } else if (variable < first_column()) {
    add(variable - rows(), -1);
  } else {
    for (const Entry& entry : columns_[variable - first_column()].entries) {
      add(static_cast<size_t>(entry.row), entry.value);
    }
  }
  return direction;
}

size_t CoveringLp::Leaving(const std::vector<double>& direction) const {
  size_t best = rows();
  double shortest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < rows(); ++i) {
    if (direction[i] <= kSmall) continue;
    const double step = std::max(0.0, level_[i]) / direction[i];
    // Among equal steps we take the one with the largest pivot, which is the most exact.
    if (step < shortest - kSmall || (step <= shortest + kSmall && direction[i] > direction[best])) {
      shortest = std::min(step, shortest);
      best = i;
    }
  }
  return best;
}

void CoveringLp::Pivot(size_t row, size_t entering, const std::vector<double>& direction) {
  const size_t width = rows();
  const double reduced = ReducedCost(entering);
  const double step = std::max(0.0, level_[row]) / direction[row];
  double* const pivot = inverse_.data() + row * width;
  for (size_t k = 0; k < width; ++k) pivot[k] /= direction[row];
  for (size_t k = 0; k < width; ++k) prices_[k] += reduced * pivot[k];
  for (size_t i = 0; i < width; ++i) {
    if (i == row || direction[i] == 0) continue;
    double* const line = inverse_.data() + i * width;
    for (size_t k = 0; k < width; ++k) line[k] -= direction[i] * pivot[k];
    level_[i] -= direction[i] * step;
  }
  level_[row] = step;
  is_basic_[basis_[row]] = false;
  is_basic_[entering] = true;
  basis_[row] = entering;
}

bool CoveringLp::Solve(WorkBudget* budget) {
  const int64_t units = static_cast<int64_t>(1 + (rows() * rows() + 4 * variables()) / 100);
  // Far more steps than ever needed: rounding errors must not keep it going for ever.
  for (size_t steps = 0; steps < 200 + 50 * (rows() + columns_.size()); ++steps) {
    const size_t entering = Entering();
    if (entering == variables()) return true;
    if (!budget->Spend(units)) return false;
    const std::vector<double> direction = Direction(entering);
    const size_t row = Leaving(direction);
    if (row == rows()) return true;  // costs are not negative: only a rounding error gets here
    Pivot(row, entering, direction);
  }
  return true;
}

std::vector<double> CoveringLp::Values() const {
  std::vector<double> values(columns_.size(), 0);
  for (size_t i = 0; i < rows(); ++i) {
    if (basis_[i] >= first_column()) values[basis_[i] - first_column()] = std::max(0.0, level_[i]);
  }
  return values;
}

std::vector<double> CoveringLp::DemandPrices() const {
  std::vector<double> prices(prices_.begin(), prices_.begin() + static_cast<std::ptrdiff_t>(demands_));
  for (double& price : prices) price = std::max(0.0, price);
  return prices;
}

std::vector<double> CoveringLp::LimitPrices() const {
  std::vector<double> prices(prices_.begin() + static_cast<std::ptrdiff_t>(demands_), prices_.end());
  for (double& price : prices) price = std::min(0.0, price);
  return prices;
}

double CoveringLp::Objective() const {
  double sum = 0;
  for (size_t i = 0; i < rows(); ++i) sum += Cost(basis_[i]) * std::max(0.0, level_[i]);
  return sum;
}

}  // namespace loadline
