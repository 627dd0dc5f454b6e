#include "core/pack/pattern_lp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/pack/fill.h"
#include "core/pack/knapsack.h"

namespace loadline {
namespace {

constexpr int32_t kNoRow = -1;
// The most branches of one knapsack: to find some pattern, and to prove that there is none. Chosen: some
// milliseconds.
constexpr int64_t kFewBranches = 300;
constexpr int64_t kManyBranches = 10'000;
// A pattern must be worth this much more than it costs to be added.
constexpr double kGain = 1e-7;

}  // namespace

// The linear program of one Solve().
struct PatternLp::Round {
  Round(std::vector<double> demands, std::vector<double> limits, double penalty)
      : lp(std::move(demands), std::move(limits), penalty) {}

  CoveringLp lp;
  std::vector<size_t> items;      // with a demand: by row
  std::vector<int32_t> item_row;  // by item; kNoRow: none is left
  std::vector<int32_t> type_row;  // by type; kNoRow: not limited
  int32_t limit_row = kNoRow;
  std::vector<Pattern> patterns;
  std::set<Pattern> known;
  double best_bound = 0;
  int64_t bytes = 0;  // that columns and patterns hold
};

PatternLp::PatternLp(const PackingProblem& problem, WorkBudget* budget) : problem_(problem), budget_(budget) {
  double dearest = 0;
  for (const PackingType& type : problem.types) dearest = std::max(dearest, type.cost);
  penalty_ = 10 * dearest + 1e-3;
}

size_t PatternLp::AddPattern(Pattern pattern, Round* round) const {
  if (pattern.items.empty() || round->known.contains(pattern)) return 0;
  // Once as a column, and twice as a pattern.
  const int64_t bytes = static_cast<int64_t>(256 + 3 * pattern.items.size() * sizeof(pattern.items.front()));
  if (!budget_->Reserve(bytes)) return 0;
  round->bytes += bytes;
  round->known.insert(pattern);
  std::vector<CoveringLp::Entry> entries;
  for (const auto& [item, count] : pattern.items) {
    entries.push_back({round->item_row[static_cast<size_t>(item)], static_cast<double>(count)});
  }
  const int32_t type_row = round->type_row[static_cast<size_t>(pattern.type)];
  if (type_row != kNoRow) entries.push_back({type_row, 1});
  if (round->limit_row != kNoRow) entries.push_back({round->limit_row, 1});
  round->lp.AddColumn(Cost(pattern), std::move(entries));
  round->patterns.push_back(std::move(pattern));
  return 1;
}

std::vector<Pattern> PatternLp::SingleKinds(const PackingRest& rest) const {
  std::vector<Pattern> patterns;
  for (size_t item = 0; item < rest.items.size(); ++item) {
    if (rest.items[item] == 0) continue;
    for (size_t type = 0; type < problem_.types.size(); ++type) {
      if (rest.limits[type] == 0) continue;
      const PackingType& node = problem_.types[type];
      const int64_t most = std::min(
          {rest.items[item], node.most[item], CopiesThatFit(node.free, problem_.items[item].request)});
      if (most > 0) patterns.push_back({static_cast<int32_t>(type), {{static_cast<int32_t>(item), most}}});
    }
  }
  return patterns;
}

size_t PatternLp::Price(const PackingRest& rest, int64_t most_branches, Round* round) const {
  const std::vector<double> prices = round->lp.DemandPrices();
  const std::vector<double> limit_prices = round->lp.LimitPrices();
  const auto limit_price = [&](int32_t row) {
    return row == kNoRow ? 0.0 : -limit_prices[static_cast<size_t>(row) - round->items.size()];
  };
  double limit_cost = limit_price(round->limit_row) * static_cast<double>(rest.limit.value_or(0));
  // Prices of the items, times this, are below what any node costs with the price of its limits: by how much
  // the items pay for themselves at least.
  double scale = 1;
  size_t added = 0;
  for (size_t t = 0; t < problem_.types.size(); ++t) {
    if (rest.limits[t] == 0) continue;
    const PackingType& type = problem_.types[t];
    const double cost = type.cost + limit_price(round->type_row[t]) + limit_price(round->limit_row);
    limit_cost += limit_price(round->type_row[t]) * static_cast<double>(rest.limits[t].value_or(0));
    std::vector<KnapsackItem> items;
    std::vector<size_t> numbers;
    for (size_t row = 0; row < round->items.size(); ++row) {
      const size_t item = round->items[row];
      const std::vector<int64_t>& request = problem_.items[item].request;
      if (prices[row] <= 0) continue;
      const int64_t most = std::min({rest.items[item], type.most[item], CopiesThatFit(type.free, request)});
      if (most <= 0) continue;
      items.push_back({request, prices[row], most});
      numbers.push_back(item);
    }
    const double at_least = cost * (1 + kGain) + 1e-12;
    const KnapsackResult best = SolveKnapsack(type.free, items, at_least, most_branches, budget_);
    if (best.bound > cost) scale = std::min(scale, cost / best.bound);
    if (best.value <= at_least) continue;
    Pattern pattern{static_cast<int32_t>(t), {}};
    for (size_t i = 0; i < items.size(); ++i) {
      if (best.counts[i] > 0) pattern.items.emplace_back(static_cast<int32_t>(numbers[i]), best.counts[i]);
    }
    added += AddPattern(std::move(pattern), round);
  }
  double value = 0;
  for (size_t row = 0; row < round->items.size(); ++row) {
    value += prices[row] * static_cast<double>(rest.items[round->items[row]]);
  }
  round->best_bound = std::max(round->best_bound, scale * value - limit_cost);
  return added;
}

PatternSolution PatternLp::Solve(const PackingRest& rest, const std::vector<Pattern>& known) {
  std::vector<double> demands, limits;
  std::vector<size_t> items;
  std::vector<int32_t> item_row(rest.items.size(), kNoRow), type_row(rest.limits.size(), kNoRow);
  for (size_t item = 0; item < rest.items.size(); ++item) {
    if (rest.items[item] == 0) continue;
    item_row[item] = static_cast<int32_t>(items.size());
    items.push_back(item);
    demands.push_back(static_cast<double>(rest.items[item]));
  }
  int32_t row = static_cast<int32_t>(items.size());
  for (size_t type = 0; type < rest.limits.size(); ++type) {
    if (rest.limits[type].value_or(0) == 0) continue;
    type_row[type] = row++;
    limits.push_back(static_cast<double>(*rest.limits[type]));
  }
  if (rest.limit.has_value()) limits.push_back(static_cast<double>(*rest.limit));
  PatternSolution solution;
  const ReservedMemory memory(budget_, CoveringLp::Bytes(demands.size() + limits.size()));
  if (!memory.ok()) return solution;
  Round round(std::move(demands), std::move(limits), penalty_);
  round.items = std::move(items);
  round.item_row = std::move(item_row);
  round.type_row = std::move(type_row);
  if (rest.limit.has_value()) round.limit_row = row;

  for (const Pattern& pattern : known) {
    if (rest.limits[static_cast<size_t>(pattern.type)] == 0) continue;
    Pattern cut{pattern.type, {}};
    for (const auto& [item, count] : pattern.items) {
      const int64_t left = std::min(count, rest.items[static_cast<size_t>(item)]);
      if (left > 0) cut.items.emplace_back(item, left);
    }
    AddPattern(std::move(cut), &round);
  }
  for (Pattern& pattern : SingleKinds(rest)) AddPattern(std::move(pattern), &round);

  bool solved = round.lp.Solve(budget_);
  while (solved) {
    if (Price(rest, kFewBranches, &round) == 0 && Price(rest, kManyBranches, &round) == 0) {
      solution.complete = !budget_->ended();
      break;
    }
    solved = round.lp.Solve(budget_);
  }
  solution.nodes = round.lp.Values();
  solution.objective = round.lp.Objective();
  solution.lower_bound = round.best_bound;
  solution.patterns = std::move(round.patterns);
  budget_->Release(round.bytes);
  return solution;
}

}  // namespace loadline
