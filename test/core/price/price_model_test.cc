#include "core/price/price_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test/testing/units.h"

namespace loadline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGceList[] =
    "kind,key,usd_per_hour_or_factor\n"
    "constant,base_cpu_per_vcpu_hour,0.033174\nconstant,base_memory_per_gib_hour,0.004446\n"
    "constant,base_gpu_hour,0.7\nconstant,base_preemptible_factor,0.2\n"
    "constant,local_ssd_per_gib_hour,0.0001\nconstant,spot_local_ssd_per_gib_hour,0.00006\n"
    "predefined_cpu_per_vcpu_hour,n1,0.03\npredefined_memory_per_gib_hour,n1,0.004\n"
    "predefined_preemptible_factor,n1,0.25\ncustom_cpu_per_vcpu_hour,n2,0.05\n"
    "machine_hour,n1-standard-8,0.38\npreemptible_machine_hour,n1-standard-8,0.08\nmachine_hour,n1-odd,0.5\n"
    "gpu_hour,t4,0.35\npreemptible_gpu_hour,t4,0.11\n"
    "boot_disk_per_gib_hour,pd-balanced,0.0001\nboot_disk_per_gib_hour,pd-ssd,0.0002\n";
constexpr char kInstanceList[] =
    "instance_type,capacity_vcpu,on_demand_usd_per_hour,spot_usd_per_hour\n"
    "m5.large,2,0.1,0.04\nm5.2xlarge,8,0.4,\nm5.4xlarge,16,0.9,\n";

PriceModel ModelOf(std::initializer_list<const char*> catalogues) {
  PriceModel model;
  for (const char* csv : catalogues) {
    auto parsed = ParsePriceCatalogue(csv == kGceList ? "gce" : "aws", csv);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (parsed.ok()) model.catalogues.push_back(*std::move(parsed));
  }
  return model;
}

PricedNode InstanceOf(std::string type, int64_t cpus = 8, int64_t gib = 30) {
  return {.instance_type = std::move(type), .milli_cpu = cpus * 1000, .memory_bytes = gib * kGi};
}

TEST(PriceNode, GceByType) {
  const NodePrice price = PriceNode(ModelOf({kGceList}), InstanceOf("n1-standard-8"));
  EXPECT_EQ(price.source, PriceSource::kInstanceType);
  EXPECT_EQ(price.catalogue, "gce");
  EXPECT_EQ(price.key, "n1-standard-8");
  EXPECT_DOUBLE_EQ(price.price, 0.38 + 0.01);
  EXPECT_THAT(price.parts, ElementsAre(PricePart{PricePartKind::kMachine, 0.38},
                                       PricePart{PricePartKind::kBootDisk, 0.0001 * 100}));
  EXPECT_THAT(price.remarks, IsEmpty());
}

TEST(PriceNode, GceAddsDisksAndGpus) {
  PricedNode node = InstanceOf("n1-standard-8");
  node.local_ssds = 2;
  node.boot_disk_gib = 50;
  node.boot_disk_type = "pd-ssd";
  node.nvidia_gpus = 2;
  node.gpu_type = "t4";
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price,
                   0.38 + 2 * 375 * 0.0001 + 50 * 0.0002 + 2 * 0.35);
  node.spot = true;
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price,
                   0.08 + 2 * 375 * 0.00006 + 50 * 0.0002 + 2 * 0.11);
  node.gpu_type = "h100";
  node.boot_disk_type = "hyperdisk";
  const NodePrice price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_DOUBLE_EQ(price.price, 0.08 + 2 * 375 * 0.00006 + 2 * 0.7);
  EXPECT_THAT(price.remarks,
              ElementsAre(PriceRemark::kGpuTypeNotListed, PriceRemark::kBootDiskTypeNotListed));
}

TEST(PriceNode, GceByFamily) {
  PricedNode node = InstanceOf("n1-unknown");
  NodePrice price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_EQ(price.source, PriceSource::kFamily);
  EXPECT_EQ(price.key, "n1");
  EXPECT_DOUBLE_EQ(price.price, 8 * 0.03 + 30 * 0.004 + 0.01);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kInstanceTypeNotListed));
  node.spot = true;
  price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_DOUBLE_EQ(price.price, (8 * 0.03 + 30 * 0.004) * 0.25 + 0.01);
  EXPECT_THAT(price.remarks,
              ElementsAre(PriceRemark::kInstanceTypeNotListed, PriceRemark::kSpotFactorOfCatalogue));
  // Listed, but not as a spot machine.
  node.instance_type = "n1-odd";
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price, (8 * 0.03 + 30 * 0.004) * 0.25 + 0.01);
  // A custom machine has rates of its own; of those that its family lacks base rates hold.
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), InstanceOf("n2-custom-8")).price,
                   8 * 0.05 + 30 * 0.004446 + 0.01);
}

TEST(PriceNode, TableByType) {
  const PriceModel model = ModelOf({kInstanceList});
  PricedNode node = InstanceOf("m5.large", 2, 8);
  node.boot_disk_gib = 500;  // tables do not price disks
  EXPECT_EQ(PriceNode(model, node).price, 0.1);
  node.spot = true;
  EXPECT_EQ(PriceNode(model, node).price, 0.04);
  node.instance_type = "m5.2xlarge";
  NodePrice price = PriceNode(model, node);
  EXPECT_EQ(price.price, 0.4);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kSpotFactorOfModel));
  PriceModel with_factor = ModelOf({kInstanceList});
  with_factor.spot_factor = 0.5;
  EXPECT_EQ(PriceNode(with_factor, node).price, 0.2);
}

TEST(PriceNode, TableByFamily) {
  const PriceModel model = ModelOf({kInstanceList});
  NodePrice price = PriceNode(model, InstanceOf("m5.9xlarge", 36));
  EXPECT_EQ(price.source, PriceSource::kFamily);
  EXPECT_EQ(price.key, "m5.4xlarge");
  EXPECT_DOUBLE_EQ(price.price, 0.9 * 36 / 16);
  EXPECT_EQ(PriceNode(model, InstanceOf("m5.xlarge", 4)).key,
            "m5.large");  // 2 and 8 are as near: the smaller
  // A machine of another cloud, whose family has the same name.
  EXPECT_EQ(PriceNode(model, InstanceOf("m5-standard-8")).source, PriceSource::kBaseRates);
  price = PriceNode(model, InstanceOf("c7.large", 2, 4));
  EXPECT_EQ(price.source, PriceSource::kBaseRates);
  EXPECT_DOUBLE_EQ(price.price, 2 * 0.033174 + 4 * 0.004446);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kInstanceTypeNotListed, PriceRemark::kFamilyNotListed));
}

TEST(PriceNode, CataloguesAreAskedInTheirOrder) {
  EXPECT_EQ(PriceNode(ModelOf({kGceList, kInstanceList}), InstanceOf("m5.large")).catalogue, "aws");
  EXPECT_EQ(PriceNode(ModelOf({kInstanceList, kGceList}), InstanceOf("n1-standard-8")).catalogue, "gce");
}

TEST(PriceNode, BaseRates) {
  PricedNode node = InstanceOf("", 8, 30);
  node.ephemeral_bytes = 72 * kGi;
  node.gpus = 1;
  NodePrice price = PriceNode(PriceModel{}, node);
  EXPECT_EQ(price.source, PriceSource::kBaseRates);
  EXPECT_DOUBLE_EQ(price.price, 8 * 0.033174 + 30 * 0.004446 + 0.01 + 0.7);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kNoInstanceType));
  PriceModel model;
  model.base = {.cpu = 1, .memory_gib = 0, .gpu = 2, .ephemeral_gib = 0};
  EXPECT_EQ(PriceNode(model, node).price, 10);
  // A spot machine without a type, priced by GCE's base factor.
  node = InstanceOf("");
  node.spot = true;
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price, (8 * 0.033174 + 30 * 0.004446) * 0.2 + 0.01);
}

TEST(PriceNode, GivenAndAnnotatedPricesComeFirst) {
  PricedNode node = InstanceOf("n1-standard-8");
  node.annotated = 2;
  NodePrice price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_EQ(price.source, PriceSource::kNodeAnnotation);
  EXPECT_EQ(price.price, 2);
  node.given = 0;
  price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_EQ(price.source, PriceSource::kGiven);
  EXPECT_EQ(price.price, 0);
  EXPECT_THAT(price.parts, IsEmpty());
}

TEST(PriceNode, WhatIsNoPriceIsPassedOverAndTold) {
  PricedNode node = InstanceOf("n1-standard-8");
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    node.given = wrong;
    node.annotation_invalid = true;
    const NodePrice price = PriceNode(ModelOf({kGceList}), node);
    EXPECT_EQ(price.source, PriceSource::kInstanceType);
    EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kGivenPriceInvalid, PriceRemark::kAnnotationInvalid));
  }
}

TEST(PriceNode, SourcesEndWhereTheModelSays) {
  PriceModel model = ModelOf({kGceList});
  model.last_source = PriceSource::kInstanceType;
  const NodePrice price = PriceNode(model, InstanceOf("n1-unknown"));
  EXPECT_EQ(price.source, PriceSource::kNone);
  EXPECT_THAT(price.remarks,
              ElementsAre(PriceRemark::kInstanceTypeNotListed, PriceRemark::kSourcesExhausted));
  EXPECT_EQ(PriceNode(model, InstanceOf("n1-standard-8")).source, PriceSource::kInstanceType);
}

TEST(PriceNode, WithoutTemplateOnlyWhatIsStatedHolds) {
  PricedNode node;
  node.has_template = false;
  EXPECT_THAT(PriceNode(ModelOf({kGceList}), node).remarks, ElementsAre(PriceRemark::kNoTemplate));
  node.instance_type = "n1-standard-8";
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).source, PriceSource::kInstanceType);
  node.instance_type = "n1-unknown";
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).source, PriceSource::kNone);
  node.given = 1;
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).price, 1);
}

TEST(PriceNode, RiskAndSurcharge) {
  PriceModel model = ModelOf({kInstanceList});
  model.interruption_risk = 0.2;
  model.surcharge = 0.01;
  PricedNode node = InstanceOf("m5.large", 2, 8);
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, 0.11);
  node.spot = true;
  const NodePrice price = PriceNode(model, node);
  EXPECT_DOUBLE_EQ(price.price, 0.04 / 0.8 + 0.01);
  double sum = 0;
  for (const PricePart& part : price.parts) sum += part.price;
  EXPECT_EQ(sum, price.price);
  EXPECT_EQ(price.parts.back(), (PricePart{PricePartKind::kSurcharge, 0.01}));
}

TEST(PriceNode, TheRiskOfItsTypeComesBeforeThatOfItsFamily) {
  PriceModel model = ModelOf({kInstanceList});
  model.interruption_risk = 0.2;
  model.interruption_risks = {{"m5", 0.5}};
  PricedNode node = InstanceOf("m5.large", 2, 8);
  node.spot = true;
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, 0.04 / 0.5);
  model.interruption_risks.push_back({"m5.large", 0.75});
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, 0.04 / 0.25);
  model.interruption_risks = {{"c5", 0.5}};
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, 0.04 / 0.8);
}

TEST(CommittedPrice, PaysForCpusThatAreUnused) {
  PriceModel model = ModelOf({kInstanceList});
  model.surcharge = 1;  // not committed
  PricedNode node = InstanceOf("m5.2xlarge");
  const NodePrice price = PriceNode(model, node);
  EXPECT_EQ(CommittedPrice(model, node, price, 2), 0);
  model.commitments = {{"m5", 4000}, {"c5", 100'000}, {"m5.2xlarge", 4000}};
  EXPECT_DOUBLE_EQ(CommittedPrice(model, node, price, 2), 2 * 0.4 * 8 / 16);
  model.commitments.push_back({"", 1'000'000});
  EXPECT_DOUBLE_EQ(CommittedPrice(model, node, price, 2), 2 * 0.4);
  node.spot = true;
  EXPECT_EQ(CommittedPrice(model, node, price, 2), 0);
}

// Worked by hand from GCE's list prices.
TEST(PodPrice, AddsUpResources) {
  const ResourceRates rates;
  EXPECT_NEAR(PodPrice(rates, {.milli_cpu = 1000, .memory_bytes = 4 * kGi}), 0.050958, 1e-12);
  EXPECT_NEAR(PodPrice(rates, {.milli_cpu = 1000, .memory_bytes = 4 * kGi, .nvidia_gpus = 1, .gpus = 1}),
              0.750958, 1e-12);
  EXPECT_NEAR(PodPrice(rates, {.milli_cpu = 500, .memory_bytes = 500 << 20}), 0.018757898, 1e-9);
  EXPECT_NEAR(PodPrice(rates, {.ephemeral_bytes = 50 * kGi}), 50 * 0.10 / 720, 1e-12);
  EXPECT_EQ(PodPrice(rates, {.gpus = 1}), 0);  // another vendor's
  const ResourceRates flat = {.ephemeral_gib = 0, .ephemeral_flat = 0.01, .any_gpu = true};
  EXPECT_NEAR(PodPrice(flat, {.ephemeral_bytes = 1, .gpus = 2}), 1.41, 1e-12);
}

}  // namespace
}  // namespace loadline
