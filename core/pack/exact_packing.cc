#include "core/pack/exact_packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/pack/fill.h"
#include "core/pack/pattern_lp.h"

namespace loadline {
namespace {

// A number of nodes this close to a whole number counts as whole. Chosen: above the error of the linear
// program.
constexpr double kWhole = 1e-4;
// The most relaxations that are solved to round up one rest. Chosen: it bounds the tree that kWidths spans.
constexpr int64_t kMostTries = 250;
// A packing is not improved further if its cost is above the lower bound by this part at most. Chosen.
constexpr double kGoodEnough = 1e-3;
// The numbers of ways to round up, from the root of the search on; below it is one. Chosen: early choices
// matter most.
constexpr size_t kWidths[] = {4, 3, 2, 2};

struct Node {
  Pattern pattern;
  int64_t nodes;
};

// A choice of nodes for some items.
struct Choice {
  std::vector<Node> nodes;
  double cost = std::numeric_limits<double>::infinity();  // with penalties
};

// Returns whether `a` can replace `b` everywhere.
bool Dominates(const PackingType& a, const PackingType& b) {
  if (a.limit.has_value() || a.cost > b.cost) return false;
  for (size_t r = 0; r < a.free.size(); ++r) {
    if (a.free[r] < b.free[r]) return false;
  }
  for (size_t i = 0; i < a.most.size(); ++i) {
    if (a.most[i] < b.most[i]) return false;
  }
  return true;
}

// Rounds the relaxation up to whole nodes.
class Rounding {
 public:
  Rounding(PatternLp* lp, WorkBudget* budget) : lp_(*lp), budget_(budget) {}

  // The best choice for `rest`, if it costs less than `below`; else one without nodes that costs infinity.
  Choice Best(const PackingRest& rest, const PatternSolution& relaxed, double below) {
    best_ = Choice();
    best_.cost = below;
    enough_ = relaxed.lower_bound * (1 + kGoodEnough);
    tries_ = 0;
    found_ = false;
    Choice chosen;
    chosen.cost = 0;
    Descend(rest, relaxed, chosen, 0);
    if (!found_) return Choice();
    return std::move(best_);
  }

 private:
  void Descend(const PackingRest& rest, const PatternSolution& relaxed, const Choice& chosen, size_t depth) {
    if (rest.Empty()) return Offer(rest, chosen);
    if (relaxed.complete && chosen.cost + relaxed.objective >= best_.cost * (1 - 1e-9)) return;
    if (budget_->ended()) return Finish(rest, relaxed, chosen);
    const std::vector<size_t> order = ByNodes(relaxed);
    if (order.empty()) return Offer(rest, chosen);
    PackingRest left = rest;
    Choice more = chosen;
    bool whole = false;
    for (const size_t p : order) {
      const int64_t nodes = static_cast<int64_t>(std::floor(relaxed.nodes[p] + kWhole));
      if (nodes > 0) whole = TakeNodes(relaxed.patterns[p], nodes, &left, &more) || whole;
    }
    if (whole) return Descend(left, SolveRest(left, relaxed), more, depth);
    const size_t width = depth < std::size(kWidths) ? kWidths[depth] : 1;
    for (size_t i = 0; i < std::min(width, order.size()); ++i) {
      if (i > 0 && (++tries_ > kMostTries || budget_->ended() || best_.cost <= enough_)) return;
      left = rest;
      more = chosen;
      if (!TakeNodes(relaxed.patterns[order[i]], 1, &left, &more)) continue;
      Descend(left, SolveRest(left, relaxed), more, depth + 1);
    }
  }

  PatternSolution SolveRest(const PackingRest& rest, const PatternSolution& relaxed) {
    if (rest.Empty()) return {};
    return lp_.Solve(rest, relaxed.patterns);
  }

  // Patterns in use, those of the most nodes first; of fractions the largest.
  static std::vector<size_t> ByNodes(const PatternSolution& relaxed) {
    std::vector<size_t> order;
    for (size_t p = 0; p < relaxed.patterns.size(); ++p) {
      if (relaxed.nodes[p] > kWhole) order.push_back(p);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (relaxed.nodes[a] != relaxed.nodes[b]) return relaxed.nodes[a] > relaxed.nodes[b];
      return relaxed.patterns[a] < relaxed.patterns[b];
    });
    return order;
  }

  // Takes nodes of a pattern as long as each takes something and limits permit; the last ones may hold less.
  bool TakeNodes(const Pattern& pattern, int64_t nodes, PackingRest* rest, Choice* chosen) const {
    bool any = false;
    while (nodes > 0) {
      int64_t most = rest->NodesWithinLimits(pattern.type, nodes);
      Node node{{pattern.type, {}}, 0};
      for (const auto& [item, count] : pattern.items) {
        const int64_t left = rest->items[static_cast<size_t>(item)];
        if (left == 0) continue;
        node.pattern.items.emplace_back(item, std::min(left, count));
        most = std::min(most, std::max<int64_t>(1, left / count));
      }
      if (most <= 0 || node.pattern.items.empty()) break;
      node.nodes = most;
      for (const auto& [item, count] : node.pattern.items)
        rest->items[static_cast<size_t>(item)] -= count * most;
      rest->TakeFromLimits(pattern.type, most);
      chosen->cost += lp_.Cost(pattern) * static_cast<double>(most);
      chosen->nodes.push_back(std::move(node));
      nodes -= most;
      any = true;
    }
    return any;
  }

  // The time has ended: rounds up in the order of the list.
  void Finish(PackingRest rest, const PatternSolution& relaxed, Choice chosen) const {
    if (found_) return;
    for (const size_t p : ByNodes(relaxed)) {
      const int64_t nodes = static_cast<int64_t>(std::ceil(relaxed.nodes[p] - kWhole));
      TakeNodes(relaxed.patterns[p], nodes, &rest, &chosen);
    }
    std::vector<Pattern> patterns = lp_.SingleKinds(rest);
    const auto each = [&](const Pattern& pattern) {
      return lp_.Cost(pattern) / static_cast<double>(pattern.items.front().second);
    };
    std::stable_sort(patterns.begin(), patterns.end(),
                     [&](const Pattern& a, const Pattern& b) { return each(a) < each(b); });
    for (const Pattern& pattern : patterns) {
      TakeNodes(pattern, std::numeric_limits<int64_t>::max(), &rest, &chosen);
    }
    Offer(rest, chosen);
  }

  void Offer(const PackingRest& rest, const Choice& chosen) const {
    double cost = chosen.cost;
    for (const int64_t left : rest.items) cost += lp_.penalty() * static_cast<double>(left);
    if (cost >= best_.cost) return;
    best_ = chosen;
    best_.cost = cost;
    found_ = true;
  }

  PatternLp& lp_;
  WorkBudget* budget_;
  mutable Choice best_;
  mutable bool found_ = false;
  int64_t tries_ = 0;
  double enough_ = 0;  // a cost that ends the search
};

class Packer {
 public:
  Packer(const PackingProblem& problem, WorkBudget* budget)
      : problem_(problem), budget_(budget), lp_(problem, budget), rounding_(&lp_, budget) {}

  Packing Run() {
    const PackingRest rest = AllOf(problem_, budget_);
    const PatternSolution relaxed = lp_.Solve(rest, {});
    Choice best = rounding_.Best(rest, relaxed, std::numeric_limits<double>::infinity());
    Repack(rest, &best, relaxed.lower_bound);
    Shrink(&best);
    return Result(rest, relaxed, best);
  }

  PackingBound Bound() {
    const PatternSolution relaxed = lp_.Solve(AllOf(problem_, budget_), {});
    return {std::max(0.0, relaxed.lower_bound), relaxed.complete};
  }

 private:
  // Takes the nodes that are the worst bargain by the prices of the items out, and packs their items anew.
  void Repack(const PackingRest& all, Choice* best, double lower_bound) {
    for (const size_t share : {size_t{6}, size_t{10}, size_t{16}}) {
      if (budget_->ended() || best->cost <= lower_bound * (1 + kGoodEnough)) return;
      Split(best);
      std::vector<size_t> order(best->nodes.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return Fill(best->nodes[a]) < Fill(best->nodes[b]); });
      Choice kept;
      kept.cost = 0;
      PackingRest rest = all;
      std::fill(rest.items.begin(), rest.items.end(), 0);
      double cost = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        const Node& node = best->nodes[order[i]];
        if (i >= share) {
          kept.nodes.push_back(node);
          rest.TakeFromLimits(node.pattern.type, node.nodes);
          continue;
        }
        for (const auto& [item, count] : node.pattern.items) rest.items[static_cast<size_t>(item)] += count;
        cost += lp_.Cost(node.pattern);
      }
      const PatternSolution relaxed = lp_.Solve(rest, {});
      const Choice better = rounding_.Best(rest, relaxed, cost * (1 - 1e-9));
      if (!better.nodes.empty()) {
        kept.cost = best->cost - cost + better.cost;
        kept.nodes.insert(kept.nodes.end(), better.nodes.begin(), better.nodes.end());
        *best = std::move(kept);
      }
      if (order.size() <= share) return;
    }
  }

  // One entry per node for the last ones, so that they can be taken apart.
  static void Split(Choice* choice) {
    constexpr int64_t kSingles = 4;
    std::vector<Node> nodes;
    for (const Node& node : choice->nodes) {
      const int64_t singles = std::min(kSingles, node.nodes);
      if (node.nodes > singles) nodes.push_back({node.pattern, node.nodes - singles});
      for (int64_t i = 0; i < singles; ++i) nodes.push_back({node.pattern, 1});
    }
    choice->nodes = std::move(nodes);
  }

  // How well a node is used: of its resources the mean share.
  double Fill(const Node& node) const {
    if (node.nodes > 1) return 2;  // stays
    const PackingType& type = problem_.types[static_cast<size_t>(node.pattern.type)];
    double used = 0;
    int64_t resources = 0;
    for (size_t r = 0; r < type.free.size(); ++r) {
      if (type.free[r] <= 0) continue;
      int64_t sum = 0;
      for (const auto& [item, count] : node.pattern.items) {
        sum += problem_.items[static_cast<size_t>(item)].request[r] * count;
      }
      used += static_cast<double>(sum) / static_cast<double>(type.free[r]);
      ++resources;
    }
    return used / static_cast<double>(std::max<int64_t>(1, resources));
  }

  // Gives each node the cheapest type that holds what it holds.
  void Shrink(Choice* choice) const {
    for (Node& node : choice->nodes) {
      for (size_t t = 0; t < problem_.types.size(); ++t) {
        const PackingType& type = problem_.types[t];
        if (type.limit.has_value() || type.cost >= lp_.Cost(node.pattern) || !Holds(type, node)) continue;
        choice->cost -= (lp_.Cost(node.pattern) - type.cost) * static_cast<double>(node.nodes);
        node.pattern.type = static_cast<int32_t>(t);
      }
    }
  }

  bool Holds(const PackingType& type, const Node& node) const {
    std::vector<int64_t> free = type.free;
    for (const auto& [item, count] : node.pattern.items) {
      if (type.most[static_cast<size_t>(item)] < count) return false;
      TakeCopies(problem_.items[static_cast<size_t>(item)].request, count, &free);
    }
    return std::all_of(free.begin(), free.end(), [](int64_t amount) { return amount >= 0; });
  }

  Packing Result(const PackingRest& wanted, const PatternSolution& relaxed, const Choice& best) {
    Packing packing;
    std::map<Pattern, int64_t> merged;
    PackingRest placed = wanted;
    std::fill(placed.items.begin(), placed.items.end(), 0);
    for (const Node& node : best.nodes) {
      merged[node.pattern] += node.nodes;
      packing.cost += lp_.Cost(node.pattern) * static_cast<double>(node.nodes);
      for (const auto& [item, count] : node.pattern.items) {
        placed.items[static_cast<size_t>(item)] += count * node.nodes;
      }
    }
    for (const auto& [pattern, nodes] : merged) {
      packing.nodes.push_back({pattern.type, nodes, pattern.items});
    }
    for (size_t item = 0; item < wanted.items.size(); ++item) {
      packing.left.push_back(problem_.items[item].count - placed.items[item]);
    }
    // The items that limits leave out must not count in the bound, with their penalty.
    const bool all = placed.items == wanted.items;
    const PatternSolution bound = all ? PatternSolution() : lp_.Solve(placed, relaxed.patterns);
    packing.lower_bound = std::min(packing.cost, all ? relaxed.lower_bound : bound.lower_bound);
    packing.lower_bound = std::max(0.0, packing.lower_bound);
    packing.proven = all ? relaxed.complete : bound.complete;
    return packing;
  }

  const PackingProblem& problem_;
  WorkBudget* budget_;
  PatternLp lp_;
  Rounding rounding_;
};

}  // namespace

PackingRest AllOf(const PackingProblem& problem, WorkBudget* budget) {
  PackingRest rest;
  rest.limit = problem.limit;
  for (const PackingType& type : problem.types) rest.limits.push_back(type.limit);
  for (size_t b = 0; b < problem.types.size(); ++b) {
    for (size_t a = 0; a < problem.types.size() && rest.limits[b] != 0; ++a) {
      if (a == b || rest.limits[a] == 0) continue;
      // Without work all types take part: that only costs more of it.
      if (!budget->Spend(static_cast<int64_t>(problem.items.size() / 64))) break;
      if (!Dominates(problem.types[a], problem.types[b])) continue;
      // If two are equal, the first one stays.
      if (a < b || !Dominates(problem.types[b], problem.types[a])) rest.limits[b] = 0;
    }
  }
  for (size_t item = 0; item < problem.items.size(); ++item) {
    const bool placeable = [&] {
      for (size_t type = 0; type < problem.types.size(); ++type) {
        const PackingType& node = problem.types[type];
        if (rest.limits[type] != 0 && node.most[item] > 0 &&
            CopiesThatFit(node.free, problem.items[item].request) > 0) {
          return true;
        }
      }
      return false;
    }();
    rest.items.push_back(placeable ? problem.items[item].count : 0);
  }
  return rest;
}

Packing PackExactly(const PackingProblem& problem, WorkBudget* budget) {
  return Packer(problem, budget).Run();
}

PackingBound BoundExactly(const PackingProblem& problem, WorkBudget* budget) {
  return Packer(problem, budget).Bound();
}

}  // namespace loadline
