// The relaxation of a packing: how much of which pattern, in fractions of nodes.
#ifndef LOADLINE_CORE_PACK_PATTERN_LP_H_
#define LOADLINE_CORE_PACK_PATTERN_LP_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/work_budget.h"
#include "core/pack/covering_lp.h"
#include "core/pack/packing.h"
#include "core/pack/packing_rest.h"

namespace loadline {

// The contents of one node of a type.
struct Pattern {
  int32_t type = 0;
  std::vector<std::pair<int32_t, int64_t>> items;  // item and count > 0, in the order of the items
  friend auto operator<=>(const Pattern&, const Pattern&) = default;
};

// A solution of the relaxation: patterns with fractional numbers of nodes.
struct PatternSolution {
  std::vector<Pattern> patterns;
  std::vector<double> nodes;  // by pattern
  double objective = 0;       // with penalties
  double lower_bound = 0;     // of the cost of all that `rest` holds
  bool complete = false;      // no further pattern makes it cheaper
};

// Solves the relaxation of a packing over patterns, and generates the patterns that it needs.
class PatternLp {
 public:
  // `problem` outlives the object.
  PatternLp(const PackingProblem& problem, WorkBudget* budget);

  // Solves the relaxation of what is left, starting from `known` patterns.
  PatternSolution Solve(const PackingRest& rest, const std::vector<Pattern>& known);

  // The cost of leaving one item out: more than any node.
  double penalty() const { return penalty_; }
  double Cost(const Pattern& pattern) const { return problem_.types[static_cast<size_t>(pattern.type)].cost; }
  // Returns patterns with one kind of item each: for each item and each type that takes it, the cheapest one
  // per item.
  std::vector<Pattern> SingleKinds(const PackingRest& rest) const;

 private:
  struct Round;

  size_t AddPattern(Pattern pattern, Round* round) const;
  // Adds patterns that make the solution cheaper, and notes what the prices prove. Returns how many.
  size_t Price(const PackingRest& rest, int64_t most_branches, Round* round) const;

  const PackingProblem& problem_;
  WorkBudget* budget_;
  double penalty_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_PACK_PATTERN_LP_H_
