// Shares new pods over the domains of a hard spread constraint so that they need few new nodes.
#ifndef LOADLINE_CORE_EXPAND_SPREAD_GROWTH_H_
#define LOADLINE_CORE_EXPAND_SPREAD_GROWTH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/expand/balance.h"

namespace loadline {

// A domain in which new nodes may come, such as a zone.
struct GrowingDomain {
  int64_t pods = 0;      // that count there already: [0, 2^31)
  int64_t per_node = 1;  // pods on one new node: >= 1
  double usd = 0;        // of one new node, per hour: >= 0
  // The pods that new nodes take as long as groups may grow there: >= 0.
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Returns what the new nodes cost that domains need for `add[i]` more pods each, in US dollars per hour.
double CostOfNodes(const std::vector<GrowingDomain>& domains, const std::vector<int64_t>& add);

// Returns the number of pods to add to each domain, `count` in all: `balanced`, or what costs less and keeps
// the difference between any two of the domains within `skew` >= 1. Between equals the most even one is
// chosen. `balanced`: such numbers, as even as possible, >= 0; where that is more than a domain may take, all
// that keeps to the limits is better. Errors: none. Cost: O(16 * domains^2). Not optimal where the nodes of
// domains differ in size and price.
std::vector<int64_t> ShareOverDomains(const std::vector<GrowingDomain>& domains, int64_t skew,
                                      std::vector<int64_t> balanced);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_SPREAD_GROWTH_H_
