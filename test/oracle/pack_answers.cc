// Prints the answers of core/pack on random problems, one JSON object per line, which pack_oracle.py compares
// with a solver.
//
//   pack_answers CASES SEED     CASES: of each kind
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/pack/coarse_packing.h"
#include "core/pack/covering_lp.h"
#include "core/pack/exact_packing.h"
#include "core/pack/knapsack.h"
#include "core/pack/packing.h"
#include "core/pack/pattern_lp.h"
#include "core/pack/price_bound.h"

namespace loadline {
namespace {

using Json = nlohmann::json;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  // Returns a number of [from, end).
  int64_t operator()(int64_t from, int64_t end) {
    return from + static_cast<int64_t>(random_() % static_cast<uint64_t>(end - from));
  }
  // Quarters: sums of costs are exact, and ties are frequent.
  double Quarters(int64_t from, int64_t end) { return static_cast<double>((*this)(from, end)) * 0.25; }
  bool OneIn(int64_t n) { return (*this)(0, n) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& list) {
    return list[static_cast<size_t>((*this)(0, static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 random_;
};

void Print(const std::string& kind, Json question, Json answer) {
  const Json line = {{"kind", kind}, {"question", std::move(question)}, {"answer", std::move(answer)}};
  std::printf("%s\n", line.dump().c_str());
}

// --- the linear program
// ------------------------------------------------------------------------------------------

struct LpColumn {
  double cost;
  std::vector<CoveringLp::Entry> entries;
};

LpColumn DrawColumn(int64_t rows, Draw* draw) {
  LpColumn column{draw->Quarters(0, 40), {}};
  for (int64_t row = 0; row < rows; ++row) {
    if (!draw->OneIn(3)) continue;
    const double value = draw->OneIn(2) ? static_cast<double>((*draw)(1, 4)) : draw->Quarters(1, 25);
    column.entries.push_back({static_cast<int32_t>(row), value});
  }
  return column;
}

Json LpAnswer(const CoveringLp& lp) {
  return {{"objective", lp.Objective()},
          {"values", lp.Values()},
          {"demand_prices", lp.DemandPrices()},
          {"limit_prices", lp.LimitPrices()}};
}

// Solved once with half of the columns, and again with all of them.
void AskCoveringLp(Draw* draw) {
  std::vector<double> demands, limits;
  for (int64_t i = (*draw)(1, 12); i > 0; --i) demands.push_back(static_cast<double>((*draw)(0, 30)));
  for (int64_t i = (*draw)(0, 4); i > 0; --i) limits.push_back(static_cast<double>((*draw)(0, 15)));
  const double penalty = draw->OneIn(3) ? draw->Quarters(1, 20) : 100;
  const int64_t rows = static_cast<int64_t>(demands.size() + limits.size());
  CoveringLp lp(demands, limits, penalty);
  WorkBudget budget;
  Json columns = Json::array(), stages = Json::array();
  for (int stage = 0; stage < 2; ++stage) {
    for (int64_t i = (*draw)(0, 16); i > 0; --i) {
      LpColumn column = DrawColumn(rows, draw);
      if (column.entries.empty()) continue;
      Json entries = Json::array();
      for (const CoveringLp::Entry& entry : column.entries) entries.push_back({entry.row, entry.value});
      columns.push_back({{"cost", column.cost}, {"entries", entries}});
      lp.AddColumn(column.cost, std::move(column.entries));
    }
    const bool solved = lp.Solve(&budget);
    Json answer = LpAnswer(lp);
    answer["solved"] = solved;
    stages.push_back(answer);
  }
  Print("covering_lp", {{"demands", demands}, {"limits", limits}, {"penalty", penalty}, {"columns", columns}},
        {{"stages", stages}});
}

// --- knapsacks
// ----------------------------------------------------------------------------------------------------

void AskKnapsack(Draw* draw) {
  const int64_t resources = (*draw)(1, 5), largest = draw->OneIn(2) ? 12 : 4'000;
  std::vector<int64_t> free;
  for (int64_t r = 0; r < resources; ++r) free.push_back((*draw)(largest / 2, 8 * largest));
  std::vector<std::vector<int64_t>> requests(static_cast<size_t>((*draw)(1, 10)));
  std::vector<KnapsackItem> items;
  Json question = {{"free", free}, {"items", Json::array()}};
  for (std::vector<int64_t>& request : requests) {
    for (int64_t r = 0; r < resources; ++r) {
      request.push_back(draw->OneIn(4) ? 0 : (*draw)(1, largest));
    }
    const double value = static_cast<double>((*draw)(1, 10'000)) / 100;
    items.push_back({request, value, (*draw)(1, 9)});
    question["items"].push_back({{"request", request}, {"value", value}, {"most", items.back().most}});
  }
  const double at_least = draw->OneIn(2) ? 0 : static_cast<double>((*draw)(1, 300));
  // Cut short now and then: the bound has to hold then as well.
  const int64_t most_branches = draw->OneIn(3) ? (*draw)(1, 30) : 10'000'000;
  WorkBudget budget;
  const KnapsackResult result = SolveKnapsack(free, items, at_least, most_branches, &budget);
  question["at_least"] = at_least;
  question["cut_short"] = most_branches < 100;
  question["tolerance"] = kKnapsackTolerance;
  Print("knapsack", question,
        {{"value", result.value},
         {"counts", result.counts},
         {"bound", result.bound},
         {"weighed_bound", WeighedBound(free, items, BestShares(free, items, &budget))}});
}

// --- packings
// -----------------------------------------------------------------------------------------------------

struct Sizes {
  int64_t kinds, types, resources;
  int64_t largest_request;  // of one item, of one resource
  int64_t largest_free;
  int64_t most_copies;  // of a kind
  bool limits;
};

Json Limit(const std::optional<int64_t>& limit) { return limit.has_value() ? Json(*limit) : Json(); }

PackingProblem DrawProblem(const Sizes& sizes, Draw* draw) {
  PackingProblem problem;
  for (int64_t i = 0; i < sizes.kinds; ++i) {
    PackingItem item;
    item.count = (*draw)(0, sizes.most_copies + 1);
    for (int64_t r = 0; r < sizes.resources; ++r) {
      item.request.push_back(r > 0 && draw->OneIn(6) ? 0 : (*draw)(1, sizes.largest_request + 1));
    }
    problem.items.push_back(std::move(item));
  }
  for (int64_t t = 0; t < sizes.types; ++t) {
    PackingType type;
    type.cost = draw->Quarters(1, 30);
    for (int64_t r = 0; r < sizes.resources; ++r) {
      type.free.push_back((*draw)(sizes.largest_free / 3, sizes.largest_free + 1));
    }
    for (int64_t i = 0; i < sizes.kinds; ++i) {
      type.most.push_back(draw->OneIn(6) ? (*draw)(0, 3) : 1'000'000);
    }
    if (sizes.limits && draw->OneIn(2)) type.limit = (*draw)(0, 6);
    problem.types.push_back(std::move(type));
  }
  if (sizes.limits && draw->OneIn(2)) problem.limit = (*draw)(0, 9);
  return problem;
}

Json Question(const PackingProblem& problem) {
  Json items = Json::array(), types = Json::array();
  for (const PackingItem& item : problem.items) {
    items.push_back({{"request", item.request}, {"count", item.count}});
  }
  for (const PackingType& type : problem.types) {
    types.push_back(
        {{"free", type.free}, {"cost", type.cost}, {"limit", Limit(type.limit)}, {"most", type.most}});
  }
  return {{"items", items}, {"types", types}, {"limit", Limit(problem.limit)}};
}

Json Answer(const Packing& packing) {
  Json nodes = Json::array();
  for (const PackedNodes& run : packing.nodes) {
    nodes.push_back({{"type", run.type}, {"nodes", run.nodes}, {"items", run.items}});
  }
  return {{"nodes", nodes},
          {"left", packing.left},
          {"cost", packing.cost},
          {"lower_bound", packing.lower_bound},
          {"proven", packing.proven}};
}

std::vector<int64_t> Counts(const PackingProblem& problem) {
  std::vector<int64_t> counts;
  for (const PackingItem& item : problem.items) counts.push_back(item.count);
  return counts;
}

// A bound by the prices of the resource relaxation, and one by prices that mean nothing.
Json PriceBounds(const PackingProblem& problem, const PackingPrices& prices, Draw* draw) {
  WorkBudget budget;
  const std::vector<int64_t> counts = Counts(problem);
  std::vector<int32_t> sample;
  for (size_t item = 0; item < counts.size(); ++item) sample.push_back(static_cast<int32_t>(item));
  PackingPrices random{{}, std::vector<double>(problem.types.size(), 0), 0};
  for (size_t item = 0; item < counts.size(); ++item) random.items.push_back(draw->Quarters(0, 12));
  for (double& price : random.types) price = draw->OneIn(2) ? 0 : draw->Quarters(0, 8);
  random.all = draw->OneIn(2) ? 0 : draw->Quarters(0, 8);
  // A price within a limit that there is none of would be worth nothing.
  for (size_t t = 0; t < random.types.size(); ++t) {
    if (!problem.types[t].limit.has_value()) random.types[t] = 0;
  }
  if (!problem.limit.has_value()) random.all = 0;
  return {PriceBound(problem, counts, prices, sample, &budget),
          PriceBound(problem, counts, random, sample, &budget)};
}

void AskPacking(const Sizes& sizes, const std::string& kind, Draw* draw) {
  const PackingProblem problem = DrawProblem(sizes, draw);
  WorkBudget budget;
  Json answer;
  answer["pack"] = Answer(Pack(problem, &budget));
  answer["exact"] = Answer(PackExactly(problem, &budget));
  answer["coarse"] = Answer(PackCoarsely(problem, /*last_items=*/(*draw)(0, 2) * 20, &budget));
  for (const auto& [name, bound] : {std::pair("bound", LowerBound(problem, &budget)),
                                    std::pair("exact_bound", BoundExactly(problem, &budget)),
                                    std::pair("coarse_bound", BoundCoarsely(problem, &budget))}) {
    answer[name] = {{"cost", bound.cost}, {"proven", bound.proven}};
  }
  PatternLp lp(problem, &budget);
  const PatternSolution relaxed = lp.Solve(AllOf(problem, &budget), {});
  answer["patterns"] = {{"objective", relaxed.objective},
                        {"lower_bound", relaxed.lower_bound},
                        {"complete", relaxed.complete},
                        {"penalty", lp.penalty()}};
  const ResourceRelaxation resources =
      RelaxResources(problem.items, problem.types, problem.limit, Counts(problem), &budget);
  answer["resources"] = {{"nodes", resources.nodes},
                         {"covers", resources.covers},
                         {"item_prices", resources.prices.items},
                         {"type_prices", resources.prices.types},
                         {"price_of_all", resources.prices.all}};
  answer["price_bounds"] = PriceBounds(problem, resources.prices, draw);
  Print(kind, Question(problem), answer);
}

void AskAll(int64_t cases, uint64_t seed) {
  Draw draw(seed);
  for (int64_t i = 0; i < cases; ++i) {
    AskCoveringLp(&draw);
    AskKnapsack(&draw);
    const int64_t resources = draw(1, 4);
    AskPacking({draw(1, 5), draw(1, 5), resources, 7, 20, 5, draw.OneIn(2)}, "packing", &draw);
    // Requests as pods have them, and more of them: only the relaxations can be solved by a solver.
    if (i % 20 != 0) continue;
    AskPacking({draw(5, 10), draw(1, 5), 3, 4'000, 16'000, 40, draw.OneIn(3)}, "large_packing", &draw);
  }
}

}  // namespace
}  // namespace loadline

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: pack_answers CASES SEED\n");
    return 2;
  }
  loadline::AskAll(std::stoll(argv[1]), std::stoull(argv[2]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "pack_answers: %s\n", error.what());
  return 1;
}
