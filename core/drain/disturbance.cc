#include "core/drain/disturbance.h"

namespace loadline {

double PriceOf(const DisturbancePrices& prices, const PodTraits& traits) {
  if (traits.placeholder) return 0;
  double usd = prices.usd_per_pod;
  for (const DisturbancePrice& price : prices.by_priority) {
    if (traits.priority >= price.from_priority) usd = price.usd;
  }
  return usd;
}

}  // namespace loadline
