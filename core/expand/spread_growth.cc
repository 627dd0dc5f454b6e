#include "core/expand/spread_growth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

namespace loadline {
namespace {

// The most levels of the emptiest domain that are tried. Chosen: skews are small.
constexpr int64_t kMostLevels = 16;

int64_t NodesFor(int64_t pods, int64_t per_node) { return (pods + per_node - 1) / per_node; }

bool WithinLimits(const std::vector<GrowingDomain>& domains, const std::vector<int64_t>& add) {
  for (size_t i = 0; i < domains.size(); ++i) {
    if (add[i] > domains[i].most) return false;
  }
  return true;
}

// Fills every domain to `level`, and the rest of `count` into as few nodes as possible.
class Filling {
 public:
  Filling(const std::vector<GrowingDomain>& domains, int64_t level, int64_t skew, int64_t count)
      : domains_(domains), left_(count), add_(domains.size(), 0) {
    for (size_t i = 0; i < domains.size(); ++i) {
      most_.push_back(std::clamp<int64_t>(level + skew - domains[i].pods, 0, domains[i].most));
      Add(i, std::max<int64_t>(0, level - domains[i].pods));
    }
  }

  // nullopt: not all pods have a place.
  std::optional<std::vector<int64_t>> Run() && {
    for (size_t i = 0; i < domains_.size(); ++i) Add(i, std::min(RestOfLastNode(i), MayAdd(i)));
    while (left_ > 0) {
      const std::optional<size_t> best = BestForANode();
      if (!best.has_value()) return std::nullopt;
      // Full nodes for all pods, or one that is not filled.
      const int64_t per_node = domains_[*best].per_node;
      const int64_t may_add = MayAdd(*best);
      Add(*best, may_add >= per_node ? may_add / per_node * per_node : may_add);
    }
    if (left_ < 0 || !WithinLimits(domains_, add_)) return std::nullopt;
    return std::move(add_);
  }

 private:
  void Add(size_t domain, int64_t pods) {
    add_[domain] += pods;
    left_ -= pods;
  }
  int64_t MayAdd(size_t domain) const {
    return std::max<int64_t>(0, std::min(left_, most_[domain] - add_[domain]));
  }
  int64_t RestOfLastNode(size_t domain) const {
    const int64_t per_node = domains_[domain].per_node;
    return NodesFor(add_[domain], per_node) * per_node - add_[domain];
  }

  // Returns the domain whose next node costs least by pod; of equal ones, the one with the fewest pods.
  std::optional<size_t> BestForANode() const {
    std::optional<size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < domains_.size(); ++i) {
      const int64_t pods = std::min(MayAdd(i), domains_[i].per_node);
      if (pods == 0) continue;
      const double usd_per_pod = domains_[i].usd / static_cast<double>(pods);
      const bool is_emptier =
          best.has_value() && domains_[i].pods + add_[i] < domains_[*best].pods + add_[*best];
      if (usd_per_pod > least || (usd_per_pod == least && !is_emptier)) continue;
      least = usd_per_pod;
      best = i;
    }
    return best;
  }

  const std::vector<GrowingDomain>& domains_;
  int64_t left_;
  std::vector<int64_t> add_;
  std::vector<int64_t> most_;
};

}  // namespace

double CostOfNodes(const std::vector<GrowingDomain>& domains, const std::vector<int64_t>& add) {
  double usd = 0;
  for (size_t i = 0; i < domains.size(); ++i) {
    usd += domains[i].usd * static_cast<double>(NodesFor(add[i], domains[i].per_node));
  }
  return usd;
}

std::vector<int64_t> ShareOverDomains(const std::vector<GrowingDomain>& domains, int64_t skew,
                                      std::vector<int64_t> balanced) {
  if (domains.empty()) return balanced;
  const int64_t count = std::accumulate(balanced.begin(), balanced.end(), int64_t{0});
  int64_t lowest = std::numeric_limits<int64_t>::max();
  int64_t highest_level = lowest;
  for (size_t i = 0; i < domains.size(); ++i) {
    lowest = std::min(lowest, domains[i].pods);
    highest_level = std::min(highest_level, domains[i].pods + balanced[i]);
  }
  const int64_t last = std::max(lowest, highest_level - std::min(skew, kMostLevels));
  double least = WithinLimits(domains, balanced) ? CostOfNodes(domains, balanced)
                                                 : std::numeric_limits<double>::infinity();
  for (int64_t level = highest_level; level >= last; --level) {
    const std::optional<std::vector<int64_t>> add = Filling(domains, level, skew, count).Run();
    if (!add.has_value()) continue;
    const double usd = CostOfNodes(domains, *add);
    if (std::isfinite(least) && usd >= least * (1 - 1e-9)) continue;
    least = usd;
    balanced = *add;
  }
  return balanced;
}

}  // namespace loadline
