// The parts of a sum of prices, by their sources.
#ifndef LOADLINE_CORE_PRICE_PRICE_TALLY_H_
#define LOADLINE_CORE_PRICE_PRICE_TALLY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/price/price_model.h"

namespace loadline {

// Nodes, and what they cost in US dollars per hour.
struct PricedNodes {
  int64_t nodes = 0;
  double usd = 0;
};

// Sums the prices of nodes by the basis of each price.
class PriceTally {
 public:
  // Adds `nodes` equal nodes of a group; one without a price adds nothing. Cost: O(log what is known).
  void Add(const std::string& group, const PricedNode& node, const NodePrice& price, int64_t nodes);

  // Notes that a node states a price that is no number, or out of range: its group's price holds.
  void AddUnreadable(absl::string_view node, absl::string_view stated);

  // Returns the part of the sum that has this basis, in US dollars per hour.
  double Of(PriceBasis basis) const { return sums_[static_cast<size_t>(basis)]; }
  // The parts of Of(kEstimate): what rests on CPU, memory and GPUs; reserved nodes at the price of a list;
  // and licences, at their list price.
  double ByCapacity() const { return by_capacity_; }
  double ReservedByList() const { return reserved_by_list_; }
  double Licences() const { return windows_.usd; }
  double Total() const;
  // Returns whether at most a tenth of the sum is estimated. Only then a bound on what a cluster must cost is
  // worth naming.
  bool MostlyKnown() const;

  // A price list. lists() has the nodes that each list prices, in the order of keys.
  struct List {
    std::string name;
    std::string region;
    std::string date;
    friend auto operator<=>(const List&, const List&) = default;
  };
  const absl::btree_map<List, PricedNodes>& lists() const { return lists_; }
  // Spot nodes whose price is a share of the on-demand price, by that share.
  const absl::btree_map<double, PricedNodes>& spot_ratios() const { return spot_ratios_; }
  // Nodes that no list knows, by instance type; empty: they do not name one.
  const absl::btree_map<std::string, PricedNodes>& estimated() const { return estimated_; }
  // Regions of nodes that a list does not have, and the region whose price was taken.
  const absl::btree_set<std::pair<std::string, std::string>>& other_regions() const { return other_regions_; }
  const PricedNodes& reserved() const { return reserved_; }
  // Nodes with an estimated licence of Windows, and what the licences cost.
  const PricedNodes& windows() const { return windows_; }
  // Groups whose provider said too little, with what it said.
  const absl::btree_map<std::string, double>& too_low() const { return too_low_; }

  // Nodes with a price of their own that cannot be read, and what they state.
  const absl::btree_map<std::string, std::string>& unreadable() const { return unreadable_; }

 private:
  std::array<double, static_cast<size_t>(PriceBasis::kEstimate) + 1> sums_ = {};
  double by_capacity_ = 0;
  double reserved_by_list_ = 0;
  absl::btree_map<List, PricedNodes> lists_;
  absl::btree_map<double, PricedNodes> spot_ratios_;
  absl::btree_map<std::string, PricedNodes> estimated_;
  absl::btree_set<std::pair<std::string, std::string>> other_regions_;
  PricedNodes reserved_;
  PricedNodes windows_;
  absl::btree_map<std::string, double> too_low_;
  absl::btree_map<std::string, std::string> unreadable_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_PRICE_TALLY_H_
