#include "core/drain/disturbance.h"

#include <cmath>

namespace loadline {

double PriceOf(const DisturbancePrices& prices, const PodTraits& traits) {
  if (traits.placeholder) return 0;
  double usd = prices.usd_per_pod;
  for (const DisturbancePrice& price : prices.by_priority) {
    if (traits.priority >= price.from_priority) usd = price.usd;
  }
  return usd;
}

std::optional<int64_t> PaysFrom(const DisturbanceTerms& terms, double usd_per_hour, double disturbance,
                                std::optional<int64_t> created_s) {
  if (disturbance <= 0) return 0;
  if (disturbance > usd_per_hour * terms.payback_hours) return std::nullopt;
  if (!created_s.has_value()) return 0;
  // The quotient is at most payback_hours / within_age.
  const double age_hours = disturbance / (usd_per_hour * terms.within_age);
  return *created_s + static_cast<int64_t>(std::ceil(age_hours * 3'600));
}

}  // namespace loadline
