#include "core/price/own_price.h"

#include "absl/strings/numbers.h"
#include "core/price/price_catalogue.h"

namespace loadline {

std::optional<double> ReadStatedPrice(absl::string_view stated) {
  double value = 0;
  if (!absl::SimpleAtod(stated, &value) || !IsPrice(value)) return std::nullopt;
  return value;
}

NodePrice PriceOfNode(const NodePrice& of_group, absl::string_view stated) {
  if (stated.empty() || of_group.source == PriceSource::kGiven || of_group.source == PriceSource::kNone) {
    return of_group;
  }
  const std::optional<double> own = ReadStatedPrice(stated);
  if (!own.has_value()) return of_group;
  double interruptions = 0, surcharge = 0;
  for (const PricePart& part : of_group.parts) {
    if (part.kind == PricePartKind::kInterruptions) interruptions = part.price;
    if (part.kind == PricePartKind::kSurcharge) surcharge = part.price;
  }
  NodePrice price;
  price.source = PriceSource::kNodeAnnotation;
  price.basis = PriceBasis::kGiven;
  price.spot = of_group.spot;
  const auto add = [&](PricePartKind kind, double usd) {
    if (usd != 0) price.parts.push_back({kind, usd});
    price.price += usd;
  };
  add(PricePartKind::kMachine, *own);
  const double uninterrupted = of_group.price - interruptions - surcharge;
  if (uninterrupted > 0) add(PricePartKind::kInterruptions, *own * interruptions / uninterrupted);
  add(PricePartKind::kSurcharge, surcharge);
  return price;
}

}  // namespace loadline
