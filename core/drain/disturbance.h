// The cost of disturbing pods.
#ifndef LOADLINE_CORE_DRAIN_DISTURBANCE_H_
#define LOADLINE_CORE_DRAIN_DISTURBANCE_H_

#include <cstdint>
#include <vector>

#include "core/cluster/pod_traits.h"

namespace loadline {

// The one-time cost of disturbing a pod, US dollars, of pods with a priority from here on: finite, >= 0.
struct DisturbancePrice {
  int32_t from_priority = 0;
  double usd = 0;
};

// The price of disturbing a pod, in US dollars, by its priority.
struct DisturbancePrices {
  double usd_per_pod = 0.1;
  // By priority, ascending: the last one that holds takes the place of `usd_per_pod`.
  std::vector<DisturbancePrice> by_priority;
};

// Returns the cost of one pod, US dollars; a placeholder costs nothing.
double PriceOf(const DisturbancePrices& prices, const PodTraits& traits);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DISTURBANCE_H_
