#include "core/pack/knapsack.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace loadline {
namespace {

// The number of weighings that bound a search. Chosen: further ones seldom give a tighter bound.
constexpr size_t kWeighings = 5;
// The number that is looked at for the cost of a knapsack anyway: those of up to eight resources.
constexpr size_t kWeighingsLookedAt = 40;
// Branches of a knapsack that is asked for after the budget has ended.
constexpr int64_t kBranchesAtTheEnd = 200;

// Resources weighed into one, so that `free` weighs 1 and a bound is a single division.
struct Weighing {
  std::vector<double> weights;  // by item
  std::vector<size_t> order;    // items by value per weight, best first
  double bound = 0;             // of the whole knapsack
};

Weighing Weigh(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
               const std::vector<double>& shares) {
  Weighing weighing;
  for (const KnapsackItem& item : items) {
    double weight = 0;
    for (size_t r = 0; r < free.size(); ++r) {
      if (free[r] > 0) {
        weight += shares[r] * static_cast<double>(item.request[r]) / static_cast<double>(free[r]);
      }
    }
    weighing.weights.push_back(weight);
  }
  weighing.order.resize(items.size());
  std::iota(weighing.order.begin(), weighing.order.end(), size_t{0});
  std::sort(weighing.order.begin(), weighing.order.end(), [&](size_t a, size_t b) {
    const double left = items[a].value * weighing.weights[b];
    const double right = items[b].value * weighing.weights[a];
    return left != right ? left > right : a < b;
  });
  double room = 1;
  for (const size_t i : weighing.order) {
    const double all = weighing.weights[i] * static_cast<double>(items[i].most);
    if (all <= room) {
      weighing.bound += items[i].value * static_cast<double>(items[i].most);
      room -= all;
      continue;
    }
    weighing.bound += items[i].value * room / weighing.weights[i];
    break;
  }
  return weighing;
}

// Each resource alone, all together, and pairs at several ratios.
std::vector<std::vector<double>> Candidates(size_t resources) {
  std::vector<std::vector<double>> candidates;
  for (size_t r = 0; r < resources; ++r) {
    std::vector<double>& alone = candidates.emplace_back(resources, 0.0);
    alone[r] = 1;
  }
  candidates.emplace_back(resources, 1.0 / static_cast<double>(resources));
  for (size_t a = 0; a < std::min<size_t>(resources, 4); ++a) {
    for (size_t b = a + 1; b < std::min<size_t>(resources, 4); ++b) {
      for (const double share : {0.2, 0.4, 0.6, 0.8}) {
        std::vector<double>& pair = candidates.emplace_back(resources, 0.0);
        pair[a] = share;
        pair[b] = 1 - share;
      }
    }
  }
  return candidates;
}

// Each item is weighed by each resource, and put in order.
int64_t UnitsToWeigh(size_t resources, size_t items) {
  return static_cast<int64_t>(1 + items * (resources + 8) / 64);
}

class Search {
 public:
  // `weighings`: the first one says in which order items are tried; all of them bound what is left.
  Search(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
         const std::vector<Weighing>& weighings, double at_least, int64_t most_nodes)
      : items_(items),
        order_(weighings.front().order),
        whole_bound_(weighings.front().bound),
        nodes_left_(most_nodes),
        free_(free.begin(), free.end()),
        counts_(items.size(), 0),
        rooms_(weighings.size(), 1.0) {
    best_.value = at_least;
    best_.counts.assign(items.size(), 0);
    for (const size_t i : order_) {
      for (const Weighing& weighing : weighings) weights_.push_back(weighing.weights[i]);
      for (size_t r = 0; r < free.size(); ++r) requests_.push_back(items[i].request[r]);
    }
    // From the last item on: the most that one of those behind is worth per weight.
    const size_t width = rooms_.size();
    densest_.assign(weights_.size() + width, 0);
    for (size_t depth = order_.size(); depth-- > 0;) {
      for (size_t w = 0; w < width; ++w) {
        const double weight = weights_[depth * width + w];
        const double density =
            weight > 0 ? items_[order_[depth]].value / weight : std::numeric_limits<double>::infinity();
        densest_[depth * width + w] = std::max(density, densest_[(depth + 1) * width + w]);
      }
    }
  }

  KnapsackResult Run() {
    Branch(0, 0);
    const double proven = best_.value * (1 + kKnapsackTolerance);
    best_.bound = std::min(std::max(proven, unexplored_), whole_bound_);
    if (!found_) best_.value = 0;
    return std::move(best_);
  }

  int64_t nodes_left() const { return nodes_left_; }

 private:
  void Branch(size_t depth, double value) {
    if (value > best_.value) {
      best_.value = value;
      best_.counts = counts_;
      found_ = true;
    }
    if (depth == order_.size()) return;
    const double most_here = value + MostOfTheRest(depth);
    if (most_here <= best_.value * (1 + kKnapsackTolerance)) return;
    if (--nodes_left_ <= 0) {
      unexplored_ = std::max(unexplored_, most_here);
      return;
    }
    const size_t i = order_[depth];
    const KnapsackItem& item = items_[i];
    int64_t count = std::min(item.most, Fitting(depth));
    Take(depth, count);
    for (;; --count) {
      const double with = value + item.value * static_cast<double>(count);
      counts_[i] = count;
      if (nodes_left_ <= 0) {
        // By the first weighing the item is the densest one that is left: with fewer of it, less is possible.
        const double density = densest_[(depth + 1) * rooms_.size()];
        const bool bounded = density < std::numeric_limits<double>::infinity();
        unexplored_ =
            std::max(unexplored_, bounded ? with + std::max(0.0, rooms_.front()) * density : whole_bound_);
        break;
      }
      Branch(depth + 1, with);
      if (count == 0) break;
      Take(depth, -1);
    }
    Take(depth, -count);
    counts_[i] = 0;
  }

  double MostOfTheRest(size_t depth) const {
    const double* const densities = densest_.data() + depth * rooms_.size();
    double most = std::numeric_limits<double>::infinity();
    for (size_t w = 0; w < rooms_.size(); ++w) {
      // A weighing that says nothing of some item bounds nothing.
      if (densities[w] < std::numeric_limits<double>::infinity()) {
        most = std::min(most, std::max(0.0, rooms_[w]) * densities[w]);
      }
    }
    return most;
  }

  int64_t Fitting(size_t depth) const {
    const int64_t* const requests = requests_.data() + depth * free_.size();
    int64_t most = std::numeric_limits<int64_t>::max();
    for (size_t r = 0; r < free_.size(); ++r) {
      if (requests[r] > 0) most = std::min(most, std::max<int64_t>(0, free_[r]) / requests[r]);
    }
    return most;
  }

  // Called for every count of every item that is tried: what it reads lies side by side.
  void Take(size_t depth, int64_t count) {
    const int64_t* const requests = requests_.data() + depth * free_.size();
    for (size_t r = 0; r < free_.size(); ++r) free_[r] -= requests[r] * count;
    const double* const weights = weights_.data() + depth * rooms_.size();
    for (size_t w = 0; w < rooms_.size(); ++w) rooms_[w] -= weights[w] * static_cast<double>(count);
  }

  const std::vector<KnapsackItem>& items_;
  const std::vector<size_t>& order_;
  double whole_bound_;
  int64_t nodes_left_;
  std::vector<int64_t> free_;
  std::vector<int64_t> counts_;
  std::vector<double> rooms_;      // by weighing: what is left of 1
  std::vector<double> weights_;    // by depth, then by weighing
  std::vector<int64_t> requests_;  // by depth, then by resource
  std::vector<double> densest_;    // as weights_
  KnapsackResult best_;
  bool found_ = false;
  double unexplored_ = 0;  // no choice that was not looked at for want of nodes is worth more
};

}  // namespace

std::vector<double> BestShares(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                               WorkBudget* budget) {
  const int64_t units = UnitsToWeigh(free.size(), items.size());
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  const auto offer = [&](const std::vector<double>& shares) {
    const double bound = Weigh(free, items, shares).bound;
    if (!best.empty() && bound >= least) return false;
    least = bound;
    best = shares;
    return true;
  };
  for (const std::vector<double>& shares : Candidates(free.size())) {
    offer(shares);
    if (!budget->Spend(units)) return best;
  }
  // From there a part of the weight moves from one resource to another as long as that helps.
  for (const double part : {0.1, 0.03, 0.01}) {
    for (size_t from = 0; from < free.size(); ++from) {
      for (size_t to = 0; to < free.size(); ++to) {
        while (from != to && best[from] >= part && budget->Spend(units)) {
          std::vector<double> shares = best;
          shares[from] -= part;
          shares[to] += part;
          if (!offer(shares)) break;
        }
      }
    }
  }
  return best;
}

double WeighedBound(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                    const std::vector<double>& shares) {
  return Weigh(free, items, shares).bound;
}

KnapsackResult SolveKnapsack(std::span<const int64_t> free, const std::vector<KnapsackItem>& items,
                             double at_least, int64_t most_nodes, WorkBudget* budget) {
  KnapsackResult none;
  none.counts.assign(items.size(), 0);
  if (items.empty()) return none;
  std::vector<Weighing> weighings;
  for (const std::vector<double>& shares : Candidates(free.size())) {
    // Any one bounds the knapsack: further ones are looked at while there is work.
    if (weighings.size() >= kWeighingsLookedAt && !budget->Spend(UnitsToWeigh(free.size(), items.size()))) {
      break;
    }
    weighings.push_back(Weigh(free, items, shares));
    if (weighings.back().bound < weighings.front().bound) std::swap(weighings.front(), weighings.back());
    if (weighings.front().bound <= at_least) break;
  }
  // The tightest ones: each costs something at every branch.
  std::stable_sort(weighings.begin(), weighings.end(),
                   [](const Weighing& a, const Weighing& b) { return a.bound < b.bound; });
  if (weighings.size() > kWeighings) weighings.resize(kWeighings);
  budget->Spend(static_cast<int64_t>(1 + items.size() * weighings.size() / 32));
  none.bound = weighings.front().bound;
  if (none.bound <= at_least) return none;
  if (budget->ended()) most_nodes = std::min(most_nodes, kBranchesAtTheEnd);
  Search search(free, items, weighings, at_least, most_nodes);
  KnapsackResult result = search.Run();
  budget->Spend((most_nodes - std::max<int64_t>(0, search.nodes_left())) * 2);
  return result;
}

}  // namespace loadline
