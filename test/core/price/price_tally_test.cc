#include "core/price/price_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace loadline {
namespace {

NodePrice PriceOf(PriceBasis basis, double usd, PriceSource source = PriceSource::kInstanceType) {
  NodePrice price;
  price.source = source;
  price.basis = basis;
  price.price = usd;
  price.estimated = basis == PriceBasis::kEstimate ? usd : 0;
  return price;
}

TEST(PriceTally, AddsUpByBasis) {
  PriceTally tally;
  tally.Add("a", {}, PriceOf(PriceBasis::kList, 0.5), 4);
  tally.Add("b", {}, PriceOf(PriceBasis::kGiven, 0.25), 2);
  tally.Add("c", {}, PriceOf(PriceBasis::kProvider, 0.125), 8);
  tally.Add("d", {}, PriceOf(PriceBasis::kSpotRatio, 0.0625), 16);
  tally.Add("e", {.instance_type = "x9"}, PriceOf(PriceBasis::kEstimate, 0.25, PriceSource::kBaseRates), 2);
  tally.Add("f", {}, NodePrice(), 100);  // no price
  EXPECT_EQ(tally.Of(PriceBasis::kList), 2);
  EXPECT_EQ(tally.Of(PriceBasis::kGiven), 0.5);
  EXPECT_EQ(tally.Of(PriceBasis::kProvider), 1);
  EXPECT_EQ(tally.Of(PriceBasis::kSpotRatio), 1);
  EXPECT_EQ(tally.Of(PriceBasis::kEstimate), 0.5);
  EXPECT_EQ(tally.Total(), 5);
  ASSERT_EQ(tally.estimated().size(), 1);
  EXPECT_EQ(tally.estimated().begin()->first, "x9");
  EXPECT_EQ(tally.estimated().begin()->second.nodes, 2);
}

TEST(PriceTally, IsMostlyKnownUpToATenthOfEstimates) {
  PriceTally tally;
  EXPECT_TRUE(tally.MostlyKnown()) << "nothing costs anything";
  tally.Add("a", {}, PriceOf(PriceBasis::kList, 9), 1);
  tally.Add("b", {}, PriceOf(PriceBasis::kEstimate, 1), 1);
  EXPECT_TRUE(tally.MostlyKnown()) << "just a tenth";
  tally.Add("b", {}, PriceOf(PriceBasis::kEstimate, 0.001), 1);
  EXPECT_FALSE(tally.MostlyKnown());
}

// The amount of a list is what the list says itself: the parts of the sum that are named add up to it.
TEST(PriceTally, ListsAreWithoutEstimates) {
  NodePrice windows = PriceOf(PriceBasis::kList, 0.75);
  windows.catalogue = "aws.csv";
  windows.estimated = 0.25;
  NodePrice family = PriceOf(PriceBasis::kEstimate, 3, PriceSource::kFamily);
  family.catalogue = "azure.csv";
  PriceTally tally;
  tally.Add("w", {}, windows, 4);
  tally.Add("f", {.instance_type = "x"}, family, 1);
  ASSERT_EQ(tally.lists().size(), 1);
  EXPECT_EQ(tally.lists().begin()->first.name, "aws.csv");
  EXPECT_EQ(tally.lists().begin()->second.usd, 2);
}

TEST(PriceTally, WhatIsAddedByEstimateCountsAsSuch) {
  NodePrice price = PriceOf(PriceBasis::kList, 0.376);
  price.parts = {{PricePartKind::kMachine, 0.192}, {PricePartKind::kLicence, 0.184}};
  price.estimated = 0.184;
  PriceTally tally;
  tally.Add("w", {}, price, 2);
  EXPECT_DOUBLE_EQ(tally.Of(PriceBasis::kList), 0.384);
  EXPECT_DOUBLE_EQ(tally.Of(PriceBasis::kEstimate), 0.368);
  EXPECT_EQ(tally.windows().nodes, 2);
  EXPECT_DOUBLE_EQ(tally.windows().usd, 0.368);
  EXPECT_EQ(tally.ByCapacity(), 0) << "a licence has a list price";
  EXPECT_DOUBLE_EQ(tally.Licences(), 0.368);
}

TEST(PriceTally, ReservedNodesRestOnCapacityOnlyWhereNoListHasThem) {
  NodePrice listed = PriceOf(PriceBasis::kEstimate, 0.192);
  listed.remarks = {PriceRemark::kReserved};
  PriceTally tally;
  tally.Add("r", {.reserved = true}, listed, 2);
  EXPECT_DOUBLE_EQ(tally.Of(PriceBasis::kEstimate), 0.384);
  EXPECT_EQ(tally.ByCapacity(), 0);
  EXPECT_DOUBLE_EQ(tally.ReservedByList(), 0.384);
  NodePrice unlisted = PriceOf(PriceBasis::kEstimate, 0.25, PriceSource::kBaseRates);
  unlisted.remarks = {PriceRemark::kReserved};
  tally.Add("u", {.reserved = true}, unlisted, 2);
  EXPECT_EQ(tally.ByCapacity(), 0.5);
  EXPECT_DOUBLE_EQ(tally.ReservedByList(), 0.384);
}

}  // namespace
}  // namespace loadline
