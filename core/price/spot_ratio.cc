#include "core/price/price_model.h"

namespace loadline {
namespace {

struct SpotRatio {
  absl::string_view provider;
  double ratio;
};
// AWS: its Spot Instance Advisor shows savings of 50 % to 70 % in the median of a region. Azure and GCE
// publish "up to 90 %" and "60 to 91 %": the lower end. See docs/ranking.md.
constexpr SpotRatio kSpotRatios[] = {{"aws", 0.4}, {"azure", 0.4}, {"gce", 0.4}};
constexpr double kOtherSpotRatio = 0.4;

}  // namespace

double SpotRatioOf(absl::string_view provider) {
  for (const SpotRatio& known : kSpotRatios) {
    if (known.provider == provider) return known.ratio;
  }
  return kOtherSpotRatio;
}

}  // namespace loadline
