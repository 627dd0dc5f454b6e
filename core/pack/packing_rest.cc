#include "core/pack/packing_rest.h"

#include <algorithm>
#include <limits>

#include "core/pack/fill.h"

namespace loadline {

bool PackingRest::Empty() const {
  return std::all_of(items.begin(), items.end(), [](int64_t count) { return count == 0; });
}

int64_t PackingRest::NodesWithinLimits(int32_t type, int64_t nodes) const {
  return std::min({nodes, limits[static_cast<size_t>(type)].value_or(nodes), limit.value_or(nodes)});
}

void PackingRest::TakeFromLimits(int32_t type, int64_t nodes) {
  const auto take = [nodes](std::optional<int64_t>* most) {
    if (most->has_value()) *most = std::max<int64_t>(0, **most - nodes);
  };
  take(&limits[static_cast<size_t>(type)]);
  take(&limit);
}

std::vector<PackingType> TypesLeft(const PackingProblem& problem, const PackingRest& rest) {
  std::vector<PackingType> types;
  for (size_t t = 0; t < problem.types.size(); ++t) {
    types.push_back({problem.types[t].free, problem.types[t].cost, rest.limits[t], {}});
    if (rest.limit == 0) types.back().limit = 0;
  }
  return types;
}

PackingProblem ProblemOfRest(const PackingProblem& problem, const PackingRest& rest,
                             std::vector<int32_t>* items) {
  PackingProblem left;
  left.types = TypesLeft(problem, rest);
  left.limit = rest.limit;
  for (size_t item = 0; item < rest.items.size(); ++item) {
    if (rest.items[item] == 0) continue;
    items->push_back(static_cast<int32_t>(item));
    left.items.push_back({problem.items[item].request, rest.items[item]});
    for (size_t t = 0; t < left.types.size(); ++t) {
      left.types[t].most.push_back(problem.types[t].most[item]);
    }
  }
  return left;
}

std::optional<size_t> CheapestTypeFor(const PackingProblem& problem, const PackingRest& rest, size_t item) {
  std::optional<size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (size_t t = 0; t < problem.types.size(); ++t) {
    const PackingType& type = problem.types[t];
    const int64_t takes = std::min(type.most[item], CopiesThatFit(type.free, problem.items[item].request));
    if (takes <= 0 || rest.NodesWithinLimits(static_cast<int32_t>(t), 1) == 0) continue;
    const double each = type.cost / static_cast<double>(std::min(takes, int64_t{1} << 40));
    if (each >= least) continue;
    least = each;
    best = t;
  }
  return best;
}

}  // namespace loadline
