#include "core/price/price_tally.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/base/amount.h"

namespace loadline {
namespace {

// A bound whose prices are estimates to a larger share than this is worthless. Chosen: large enough for
// rounding and for a few nodes of a kind that no list has.
constexpr double kMostEstimated = 0.1;

void AddTo(PricedNodes* sum, int64_t nodes, double usd) {
  sum->nodes = SaturatingAdd(sum->nodes, nodes);
  sum->usd += usd;
}

}  // namespace

void PriceTally::AddUnreadable(absl::string_view node, absl::string_view stated) {
  unreadable_.emplace(node, stated);
}

void PriceTally::Add(const std::string& group, const PricedNode& node, const NodePrice& price,
                     int64_t nodes) {
  if (price.source == PriceSource::kNone || nodes <= 0) return;
  const double count = static_cast<double>(nodes);
  const auto has = [&](PriceRemark remark) { return absl::c_linear_search(price.remarks, remark); };
  sums_[static_cast<size_t>(price.basis)] += (price.price - price.estimated) * count;
  sums_[static_cast<size_t>(PriceBasis::kEstimate)] += price.estimated * count;
  if (const double listed = price.price - price.estimated; !price.catalogue.empty() && listed > 0) {
    AddTo(&lists_[{price.catalogue, price.region, price.date}], nodes, listed * count);
  }
  if (price.spot_ratio > 0) AddTo(&spot_ratios_[price.spot_ratio], nodes, price.price * count);
  if (price.source == PriceSource::kBaseRates ||
      (price.source == PriceSource::kFamily && price.basis == PriceBasis::kEstimate && !node.reserved)) {
    AddTo(&estimated_[node.instance_type], nodes, price.price * count);
  }
  if (has(PriceRemark::kRegionNotListed)) other_regions_.emplace(node.region, price.region);
  if (has(PriceRemark::kReserved)) AddTo(&reserved_, nodes, price.price * count);
  double licences = 0;
  for (const PricePart& part : price.parts) {
    if (part.kind != PricePartKind::kLicence) continue;
    licences += part.price;
    AddTo(&windows_, nodes, part.price * count);
  }
  const bool by_list = has(PriceRemark::kReserved) && price.source != PriceSource::kBaseRates;
  (by_list ? reserved_by_list_ : by_capacity_) += std::max(0.0, price.estimated - licences) * count;
  if (has(PriceRemark::kProviderPriceTooLow)) too_low_[group] = node.provider.value_or(0);
}

double PriceTally::Total() const {
  double total = 0;
  for (const double sum : sums_) total += sum;
  return total;
}

bool PriceTally::MostlyKnown() const { return Of(PriceBasis::kEstimate) <= kMostEstimated * Total(); }

}  // namespace loadline
