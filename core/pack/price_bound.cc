#include "core/pack/price_bound.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/pack/covering_lp.h"
#include "core/pack/fill.h"
#include "core/pack/knapsack.h"

namespace loadline {
namespace {

std::vector<KnapsackItem> ItemsOf(const PackingProblem& problem, const PackingType& type,
                                  const std::vector<int64_t>& counts, const PackingPrices& prices,
                                  const std::vector<int32_t>* sample) {
  std::vector<KnapsackItem> items;
  const size_t end = sample != nullptr ? sample->size() : problem.items.size();
  for (size_t i = 0; i < end; ++i) {
    const size_t item = sample != nullptr ? static_cast<size_t>((*sample)[i]) : i;
    if (counts[item] == 0 || prices.items[item] <= 0 || type.most[item] == 0) continue;
    const std::vector<int64_t>& request = problem.items[item].request;
    const int64_t most = std::min({counts[item], type.most[item], CopiesThatFit(type.free, request)});
    if (most > 0) items.push_back({request, prices.items[item], most});
  }
  return items;
}

}  // namespace

double PriceBound(const PackingProblem& problem, const std::vector<int64_t>& counts,
                  const PackingPrices& prices, const std::vector<int32_t>& sample, WorkBudget* budget) {
  double limits = prices.all * static_cast<double>(problem.limit.value_or(0));
  double scale = 1;
  for (size_t t = 0; t < problem.types.size(); ++t) {
    const PackingType& type = problem.types[t];
    if (type.limit == 0) continue;
    if (!budget->Spend(static_cast<int64_t>(1 + problem.items.size() / 2))) return 0;
    const double cost = type.cost + prices.types[t] + prices.all;
    limits += prices.types[t] * static_cast<double>(type.limit.value_or(0));
    const std::vector<double> shares =
        BestShares(type.free, ItemsOf(problem, type, counts, prices, &sample), budget);
    const double worth = WeighedBound(type.free, ItemsOf(problem, type, counts, prices, nullptr), shares);
    if (worth > cost) scale = std::min(scale, cost / worth);
  }
  double value = 0;
  for (size_t item = 0; item < counts.size(); ++item) {
    value += prices.items[item] * static_cast<double>(counts[item]);
  }
  return std::max(0.0, scale * value - limits);
}

namespace {

// The demand for each resource, in units of the most that one node offers: then one of them costs no more
// than the dearest node.
struct Asked {
  std::vector<double> most;  // by resource
  std::vector<size_t> rows;  // resources that are asked for
  std::vector<double> demands;
  double dearest = 0;
};

Asked AskedFor(const std::vector<PackingItem>& items, const std::vector<PackingType>& types,
               const std::vector<int64_t>& counts) {
  Asked asked;
  for (const PackingType& type : types) {
    if (type.limit == 0) continue;
    asked.most.resize(type.free.size(), 0);
    for (size_t r = 0; r < asked.most.size(); ++r) {
      asked.most[r] = std::max(asked.most[r], static_cast<double>(type.free[r]));
    }
    asked.dearest = std::max(asked.dearest, type.cost);
  }
  std::vector<double> sums(asked.most.size(), 0);
  for (size_t item = 0; item < counts.size(); ++item) {
    if (counts[item] == 0) continue;
    const std::vector<int64_t>& request = items[item].request;
    for (size_t r = 0; r < sums.size(); ++r) {
      sums[r] += static_cast<double>(request[r]) * static_cast<double>(counts[item]);
    }
  }
  for (size_t r = 0; r < sums.size(); ++r) {
    if (sums[r] <= 0 || asked.most[r] <= 0) continue;
    asked.rows.push_back(r);
    asked.demands.push_back(sums[r] / asked.most[r]);
  }
  return asked;
}

}  // namespace

ResourceRelaxation RelaxResources(const std::vector<PackingItem>& items,
                                  const std::vector<PackingType>& types, std::optional<int64_t> limit,
                                  const std::vector<int64_t>& counts, WorkBudget* budget) {
  ResourceRelaxation relaxed{{std::vector<double>(counts.size(), 0), std::vector<double>(types.size(), 0), 0},
                             std::vector<double>(types.size(), 0)};
  if (!budget->Spend(static_cast<int64_t>(1 + items.size() / 16))) return relaxed;
  Asked asked = AskedFor(items, types, counts);
  const size_t rows = asked.rows.size();
  std::vector<double> limits;
  std::vector<int32_t> row_of_type(types.size(), -1);
  for (size_t t = 0; t < types.size(); ++t) {
    if (types[t].limit.value_or(0) == 0) continue;
    row_of_type[t] = static_cast<int32_t>(rows + limits.size());
    limits.push_back(static_cast<double>(*types[t].limit));
  }
  const int32_t row_of_all = limit.value_or(0) > 0 ? static_cast<int32_t>(rows + limits.size()) : -1;
  if (row_of_all >= 0) limits.push_back(static_cast<double>(*limit));
  const ReservedMemory memory(budget, CoveringLp::Bytes(rows + limits.size()));
  if (rows == 0 || !memory.ok()) return relaxed;
  const double penalty = 10 * asked.dearest + 1e-3;
  CoveringLp lp(std::move(asked.demands), std::move(limits), penalty);
  std::vector<size_t> type_of_column;
  for (size_t t = 0; t < types.size(); ++t) {
    const PackingType& type = types[t];
    if (type.limit == 0) continue;
    std::vector<CoveringLp::Entry> entries;
    for (size_t row = 0; row < rows; ++row) {
      const double part = static_cast<double>(type.free[asked.rows[row]]) / asked.most[asked.rows[row]];
      if (part > 0) entries.push_back({static_cast<int32_t>(row), part});
    }
    if (entries.empty()) continue;
    if (row_of_type[t] >= 0) entries.push_back({row_of_type[t], 1});
    if (row_of_all >= 0) entries.push_back({row_of_all, 1});
    lp.AddColumn(type.cost, std::move(entries));
    type_of_column.push_back(t);
  }
  if (!lp.Solve(budget)) return relaxed;
  const std::vector<double> nodes = lp.Values(), demands = lp.DemandPrices(), of_limits = lp.LimitPrices();
  double cost = 0;
  for (size_t column = 0; column < nodes.size(); ++column) {
    relaxed.nodes[type_of_column[column]] = nodes[column];
    cost += nodes[column] * types[type_of_column[column]].cost;
  }
  relaxed.covers = lp.Objective() <= cost + penalty * 1e-3;
  for (size_t t = 0; t < row_of_type.size(); ++t) {
    if (row_of_type[t] >= 0) relaxed.prices.types[t] = -of_limits[static_cast<size_t>(row_of_type[t]) - rows];
  }
  if (row_of_all >= 0) relaxed.prices.all = -of_limits.back();
  for (size_t item = 0; item < counts.size(); ++item) {
    for (size_t row = 0; row < rows; ++row) {
      const size_t r = asked.rows[row];
      relaxed.prices.items[item] +=
          demands[row] * static_cast<double>(items[item].request[r]) / asked.most[r];
    }
  }
  return relaxed;
}

}  // namespace loadline
