#include "plugin/report/price_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

NodePrice PriceOf(PriceSource source, PriceBasis basis, double usd) {
  NodePrice price;
  price.source = source;
  price.basis = basis;
  price.price = usd;
  price.estimated = basis == PriceBasis::kEstimate ? usd : 0;
  return price;
}

NodePrice Estimate(double usd) { return PriceOf(PriceSource::kBaseRates, PriceBasis::kEstimate, usd); }

PriceModel OneList() {
  PriceModel prices;
  prices.catalogues.push_back(std::make_shared<const PriceCatalogue>());
  return prices;
}

TEST(PriceSources, OfManyInstanceTypesTheCostliestAreNamed) {
  PriceTally tally;
  for (int i = 0; i < 10'000; ++i) {
    const std::string type = absl::StrCat("type-", i);
    tally.Add(absl::StrCat("group-", i), {.instance_type = type}, Estimate(1), 1);
  }
  tally.Add("z", {.instance_type = "z-dear"}, Estimate(2), 3);
  EXPECT_THAT(PriceSourcesOf(tally, OneList()).notes(),
              ElementsAre(HasSubstr("no list has z-dear, type-0, type-1, type-10, type-100 and 9996 more.")));
}

TEST(PriceSources, FewInstanceTypesKeepTheOrderOfTheirNames) {
  PriceTally tally;
  tally.Add("a", {.instance_type = "a"}, Estimate(1), 1);
  tally.Add("b", {.instance_type = "b"}, Estimate(2), 1);
  EXPECT_THAT(PriceSourcesOf(tally, OneList()).notes(), ElementsAre(HasSubstr("no list has a, b. ")));
}

// Without a list it is no property of the types that none has them.
TEST(PriceSources, NoListIsAsked) {
  PriceTally tally;
  tally.Add("a", {.instance_type = "m5.xlarge"}, Estimate(1), 1);
  tally.Add("b", {}, Estimate(2), 1);
  EXPECT_THAT(PriceSourcesOf(tally, PriceModel()).notes(),
              ElementsAre(StartsWith("3.000 of 3.000 USD/h is estimated from CPU, memory and GPUs: no price "
                                     "list is asked. Give prices")));
}

TEST(PriceSources, StatedPartsAreSentencesToo) {
  PriceTally tally;
  tally.Add("a", {}, PriceOf(PriceSource::kGiven, PriceBasis::kGiven, 1), 2);
  tally.Add("b", {}, PriceOf(PriceSource::kProvider, PriceBasis::kProvider, 0.5), 1);
  EXPECT_THAT(PriceSourcesOf(tally, OneList()).notes(),
              ElementsAre("2.000 of 2.500 USD/h is stated in a file or by annotations of nodes.",
                          "0.500 of 2.500 USD/h is stated by the cloud provider."));
}

TEST(PriceSources, ALongNameIsCutAndPrintable) {
  PriceTally tally;
  tally.Add("a", {.instance_type = std::string(1 << 20, 'a') + "\n"}, Estimate(1), 1);
  tally.Add("b", {.instance_type = "b\x1b[31m"}, Estimate(1), 1);
  const v1::PriceSources sources = PriceSourcesOf(tally, OneList());
  ASSERT_EQ(sources.notes_size(), 1);
  EXPECT_LT(sources.notes(0).size(), 1'000u);
  EXPECT_THAT(sources.notes(0), AllOf(HasSubstr("b?[31m"), Not(HasSubstr("\x1b"))));
}

TEST(PriceSources, ManyListsAndSharesAreOneSentenceEach) {
  PriceTally tally;
  for (int i = 1; i <= 7; ++i) {
    NodePrice price = PriceOf(PriceSource::kInstanceType, PriceBasis::kSpotRatio, i);
    price.catalogue = "list.csv";
    price.region = absl::StrCat("r", i);
    price.spot_ratio = 0.125 * i;
    tally.Add(absl::StrCat("g", i), {.region = price.region}, price, 1);
  }
  EXPECT_THAT(
      PriceSourcesOf(tally, OneList()).notes(),
      ElementsAre(
          "Price lists, without discounts: list.csv (r7) for 7.000 USD/h, list.csv (r6) for 6.000 USD/h, "
          "list.csv (r5) for 5.000 USD/h, list.csv (r4) for 4.000 USD/h, list.csv (r3) for 3.000 USD/h "
          "and 2 more.",
          StartsWith("28.000 USD/h for 7 spot nodes is 0.875 (7.000 USD/h), 0.75 (6.000 USD/h), 0.625 "
                     "(5.000 USD/h), 0.5 (4.000 USD/h), 0.375 (3.000 USD/h) and 2 more of the on-demand "
                     "price, as no list has the spot price")));
}

// Both count as estimates, and neither is made from CPU, memory and GPUs.
TEST(PriceSources, LicencesAndReservedNodesAreToldByThemselves) {
  NodePrice windows = PriceOf(PriceSource::kInstanceType, PriceBasis::kList, 0.376);
  windows.parts = {{PricePartKind::kMachine, 0.192}, {PricePartKind::kLicence, 0.184}};
  windows.estimated = 0.184;
  NodePrice reserved = PriceOf(PriceSource::kInstanceType, PriceBasis::kEstimate, 0.192);
  reserved.remarks = {PriceRemark::kReserved};
  PriceTally tally;
  tally.Add("w", {}, windows, 1);
  tally.Add("r", {.reserved = true}, reserved, 1);
  EXPECT_THAT(
      PriceSourcesOf(tally, OneList()).notes(),
      ElementsAre(AllOf(StartsWith("1 node is reserved: what the reservation costs is not known, and 0.192 "
                                   "USD/h is what such nodes cost on demand. Give prices with --prices"),
                        Not(HasSubstr("estimated"))),
                  "1 node runs Windows: 0.184 USD/h is its licence at the list price of 0.046 USD per CPU."));
}

}  // namespace
}  // namespace loadline
