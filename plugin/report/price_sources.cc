#include "plugin/report/price_sources.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/amount.h"
#include "plugin/convert/prices.h"
#include "plugin/convert/text.h"
#include "plugin/report/words.h"

namespace loadline {
namespace {

// The number of lists, instance types, groups, regions and shares that a sentence names.
constexpr size_t kMostNamed = 5;

constexpr absl::string_view kGivePrices =
    " Give prices with --prices, with `price` in a file of groups, or with the annotation "
    "loadline.dev/node-usd-per-hour of nodes.";

std::string Usd(double amount) { return absl::StrFormat("%.3f", amount); }

// "1 node is", "2 nodes are".
std::string CountedNodes(int64_t nodes, absl::string_view one, absl::string_view more) {
  return absl::StrCat(Counted(nodes, "node"), " ", nodes == 1 ? one : more);
}

// A part of a sentence, and what the nodes that it is about cost.
struct Part {
  std::string text;
  double usd;
};

std::string Named(std::vector<std::string> names) {
  if (names.size() <= kMostNamed) return absl::StrJoin(names, ", ");
  const size_t more = names.size() - kMostNamed;
  names.resize(kMostNamed);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", more, " more");
}

// Returns all parts in their order, or of many the first ones by cost.
std::string Costliest(std::vector<Part> parts) {
  if (parts.size() > kMostNamed) {
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.usd > b.usd; });
  }
  std::vector<std::string> texts;
  for (Part& part : parts) texts.push_back(std::move(part.text));
  return Named(std::move(texts));
}

// Tells the stated parts of a sum that has other parts, too.
void TellStated(const PriceTally& tally, v1::PriceSources* sources) {
  const std::string of_all = absl::StrCat(" of ", Usd(tally.Total()), " USD/h is ");
  if (const double given = tally.Of(PriceBasis::kGiven); given > 0 && given < tally.Total()) {
    sources->add_notes(absl::StrCat(Usd(given), of_all, "stated in a file or by annotations of nodes."));
  }
  if (const double provider = tally.Of(PriceBasis::kProvider); provider > 0 && provider < tally.Total()) {
    sources->add_notes(absl::StrCat(Usd(provider), of_all, "stated by the cloud provider."));
  }
}

void TellEstimates(const PriceTally& tally, const PriceModel& prices, v1::PriceSources* sources) {
  const double estimate = tally.ByCapacity();
  if (estimate <= 0) return;
  std::vector<Part> types;
  PricedNodes nameless;
  for (const auto& [type, nodes] : tally.estimated()) {
    if (type.empty()) {
      nameless = nodes;
    } else {
      types.push_back({Printable(type), nodes.usd});
    }
  }
  std::vector<std::string> why;
  if (prices.catalogues.empty()) {
    why.push_back("no price list is asked");
  } else if (!types.empty()) {
    why.push_back(absl::StrCat("no list has ", Costliest(std::move(types))));
  }
  if (nameless.nodes > 0 && !prices.catalogues.empty())
    why.push_back(CountedNodes(nameless.nodes, "names", "name") + " no instance type");
  std::string text = absl::StrCat(Usd(estimate), " of ", Usd(tally.Total()),
                                  " USD/h is estimated from CPU, memory and GPUs");
  if (!why.empty()) absl::StrAppend(&text, ": ", absl::StrJoin(why, ", and "));
  sources->add_notes(absl::StrCat(text, ".", kGivePrices));
}

void TellLists(const PriceTally& tally, v1::PriceSources* sources) {
  std::vector<Part> lists;
  for (const auto& [list, nodes] : tally.lists()) {
    std::string text = list.name;
    std::vector<std::string> about;
    for (const std::string& part : {list.region, list.date}) {
      if (!part.empty()) about.push_back(part);
    }
    if (!about.empty()) absl::StrAppend(&text, " (", absl::StrJoin(about, ", "), ")");
    lists.push_back({absl::StrCat(text, " for ", Usd(nodes.usd), " USD/h"), nodes.usd});
  }
  if (!lists.empty()) {
    sources->add_notes(absl::StrCat("Price lists, without discounts: ", Costliest(std::move(lists)), "."));
  }
}

void TellRatios(const PriceTally& tally, v1::PriceSources* sources) {
  const bool several = tally.spot_ratios().size() > 1;
  PricedNodes all;
  std::vector<Part> shares;
  for (const auto& [ratio, nodes] : tally.spot_ratios()) {
    all.nodes = SaturatingAdd(all.nodes, nodes.nodes);
    all.usd += nodes.usd;
    const std::string amount = several ? absl::StrCat(" (", Usd(nodes.usd), " USD/h)") : "";
    shares.push_back({absl::StrFormat("%g%s", ratio, amount), nodes.usd});
  }
  if (shares.empty()) return;
  sources->add_notes(absl::StrFormat(
      "%s USD/h for %s is %s of the on-demand price, as no list has the spot price: it may be "
      "far from that of today, and --spot-factor sets another share.",
      Usd(all.usd), Counted(all.nodes, "spot node"), Costliest(std::move(shares))));
}

void TellRegions(const PriceTally& tally, v1::PriceSources* sources) {
  std::vector<std::string> texts;
  for (const auto& [wanted, taken] : tally.other_regions())
    texts.push_back(absl::StrCat(taken, " for ", Printable(wanted)));
  if (texts.empty()) return;
  sources->add_notes(
      absl::StrCat("No price list has all regions of the nodes; prices of another region are taken: ",
                   Named(std::move(texts)), "."));
}

void TellUnknown(const PriceTally& tally, v1::PriceSources* sources) {
  if (const PricedNodes& nodes = tally.reserved(); nodes.nodes > 0) {
    sources->add_notes(absl::StrCat(CountedNodes(nodes.nodes, "is", "are"),
                                    " reserved: what the reservation costs is not known, and ",
                                    Usd(nodes.usd), " USD/h is what such nodes cost on demand.",
                                    tally.ByCapacity() > 0 ? "" : kGivePrices));
  }
  if (const PricedNodes& nodes = tally.windows(); nodes.nodes > 0) {
    sources->add_notes(
        absl::StrFormat("%s Windows: %s USD/h is its licence at the list price of %g USD per CPU.",
                        CountedNodes(nodes.nodes, "runs", "run"), Usd(nodes.usd), kWindowsCpu));
  }
  std::vector<std::string> nodes;
  for (const auto& [node, stated] : tally.unreadable())
    nodes.push_back(absl::StrCat(Printable(node), " (", Quoted(stated), ")"));
  if (!nodes.empty()) {
    sources->add_warnings(absl::StrCat(
        kNodePriceKey, " is not a number of US dollars per hour, and is ignored: ", Named(std::move(nodes)),
        "."));
  }
  std::vector<std::string> groups;
  for (const auto& [group, usd] : tally.too_low())
    groups.push_back(absl::StrFormat("%s (%g USD/h)", Printable(group), usd));
  if (!groups.empty()) {
    sources->add_warnings(
        absl::StrCat("The cloud provider states less than a third of what the hardware costs, and is "
                     "ignored where a price list has the node: ",
                     Named(std::move(groups)), "."));
  }
}

}  // namespace

void TellEstimatedPurchases(const NodeGroups& groups, const BoughtNodes& bought, v1::PriceSources* sources) {
  std::vector<Part> parts;
  for (const auto& [group, nodes] : bought) {
    const NodePrice& price = groups[group].price;
    if (price.basis != PriceBasis::kEstimate || nodes <= 0) continue;
    const double usd = price.price * static_cast<double>(nodes);
    parts.push_back(
        {absl::StrCat(Counted(nodes, "node"), " of ", Printable(groups[group].name), " (", Usd(usd), ")"),
         usd});
  }
  if (parts.empty()) return;
  sources->add_notes(absl::StrCat(
      "The price of new nodes is an estimate, in USD/h: ", Costliest(std::move(parts)), ".", kGivePrices));
}

v1::PriceSources PriceSourcesOf(const PriceTally& tally, const PriceModel& prices) {
  v1::PriceSources sources;
  sources.set_given_usd_per_hour(tally.Of(PriceBasis::kGiven));
  sources.set_provider_usd_per_hour(tally.Of(PriceBasis::kProvider));
  sources.set_list_usd_per_hour(tally.Of(PriceBasis::kList));
  sources.set_spot_ratio_usd_per_hour(tally.Of(PriceBasis::kSpotRatio));
  sources.set_estimate_usd_per_hour(tally.ByCapacity());
  sources.set_reserved_usd_per_hour(tally.ReservedByList());
  sources.set_licence_usd_per_hour(tally.Licences());
  sources.set_mostly_known(tally.MostlyKnown());
  TellStated(tally, &sources);
  TellEstimates(tally, prices, &sources);
  TellLists(tally, &sources);
  TellRatios(tally, &sources);
  TellRegions(tally, &sources);
  TellUnknown(tally, &sources);
  return sources;
}

}  // namespace loadline
