// The cost of disturbing pods, and the time from which on the price of their node pays for it.
#ifndef LOADLINE_CORE_DRAIN_DISTURBANCE_H_
#define LOADLINE_CORE_DRAIN_DISTURBANCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/pod_traits.h"

namespace loadline {

// The one-time cost of disturbing a pod, US dollars, of pods with a priority from here on: finite, >= 0.
struct DisturbancePrice {
  int32_t from_priority = 0;
  double usd = 0;
};

struct DisturbancePrices {
  double usd_per_pod = 0.1;
  // By priority, ascending: the last one that holds takes the place of `usd_per_pod`.
  std::vector<DisturbancePrice> by_priority;
};

// Returns the cost of one pod, US dollars; a placeholder costs nothing.
double PriceOf(const DisturbancePrices& prices, const PodTraits& traits);

// The terms on which a node with pods is removed: its price saves what it costs to disturb them, within so
// many hours, and within this part of the age of the node.
struct DisturbanceTerms {
  DisturbancePrices prices;
  double payback_hours = 0;
  double within_age = 0;
};

// From when on a node that costs so much per hour pays for that disturbance, in seconds since 1970, rounded
// up; nullopt: never. `created_s`: nullopt: nobody knows how old it is, and only the hours count.
std::optional<int64_t> PaysFrom(const DisturbanceTerms& terms, double usd_per_hour, double disturbance,
                                std::optional<int64_t> created_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DISTURBANCE_H_
