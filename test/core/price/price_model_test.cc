#include "core/price/price_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/price/own_price.h"
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
    if (parsed.ok()) model.catalogues.push_back(std::make_shared<const PriceCatalogue>(*std::move(parsed)));
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
  node.gpus = 2;
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
  EXPECT_EQ(price.price, 0.4 * 0.4) << "the average share";
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kSpotRatio));
  EXPECT_EQ(price.basis, PriceBasis::kSpotRatio);
  PriceModel with_factor = ModelOf({kInstanceList});
  with_factor.spot_factor = 0.5;
  EXPECT_EQ(PriceNode(with_factor, node).price, 0.2);
  EXPECT_THAT(PriceNode(with_factor, node).remarks, ElementsAre(PriceRemark::kSpotFactorOfModel));
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

constexpr char kRegionalList[] =
    "# provider: azure\n# region: eastus\n# date: 2026-06\n# os: linux\n"
    "instance_type,on_demand_usd_per_hour,on_demand_usd_per_hour@westeurope\n"
    "Standard_D8s_v5,0.384,0.46\nStandard_E8s_v5,0.504,\nStandard_Far,,0.7\n";

TEST(PriceNode, TheRegionOfTheNodeChooses) {
  const PriceModel model = ModelOf({kRegionalList});
  PricedNode node = InstanceOf("Standard_D8s_v5");
  struct {
    const char* type;
    const char* region;
    double price;
    const char* taken;
    bool other;
  } const cases[] = {
      {"Standard_D8s_v5", "", 0.384, "eastus", false},
      {"Standard_D8s_v5", "eastus", 0.384, "eastus", false},
      {"Standard_D8s_v5", "westeurope", 0.46, "westeurope", false},
      {"Standard_D8s_v5", "moon", 0.384, "eastus", true},
      {"Standard_E8s_v5", "westeurope", 0.504, "eastus", true},
      {"Standard_Far", "eastus", 0.7, "westeurope", true},
  };
  for (const auto& c : cases) {
    node.instance_type = c.type;
    node.region = c.region;
    const NodePrice price = PriceNode(model, node);
    EXPECT_EQ(price.price, c.price) << c.type << " in " << c.region;
    EXPECT_EQ(price.region, c.taken) << c.type << " in " << c.region;
    EXPECT_EQ(price.date, "2026-06");
    EXPECT_EQ(price.basis, PriceBasis::kList);
    if (c.other) {
      EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kRegionNotListed));
    } else {
      EXPECT_THAT(price.remarks, IsEmpty()) << c.type << " in " << c.region;
    }
  }
}

TEST(PriceNode, SpotIsCheaperWithoutAnySetting) {
  for (const PriceModel& model : {PriceModel{}, ModelOf({kRegionalList}), ModelOf({kInstanceList})}) {
    for (const char* type : {"Standard_D8s_v5", "m5.2xlarge", "unheard-of", ""}) {
      PricedNode node = InstanceOf(type);
      const double on_demand = PriceNode(model, node).price;
      node.spot = true;
      const NodePrice spot = PriceNode(model, node);
      EXPECT_DOUBLE_EQ(spot.price, on_demand * 0.4) << type;
      EXPECT_EQ(spot.spot_ratio, 0.4);
      PriceModel other = model;
      other.spot_factor = 0.25;
      EXPECT_DOUBLE_EQ(PriceNode(other, node).price, on_demand * 0.25) << type;
    }
  }
  // Over the factor of a list of GCE, but not over a spot price that is listed.
  PriceModel model = ModelOf({kGceList});
  model.spot_factor = 0.5;
  PricedNode node = InstanceOf("n1-unknown");
  node.spot = true;
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, (8 * 0.03 + 30 * 0.004) * 0.5 + 0.01);
  node.instance_type = "n1-standard-8";
  EXPECT_DOUBLE_EQ(PriceNode(model, node).price, 0.08 + 0.01);
}

TEST(PriceNode, ANodeOfAnotherCloudIsNotPricedAsOneOfGce) {
  PricedNode node = InstanceOf("unheard-of");
  node.spot = true;
  for (const char* cloud : {"", "gce"}) {
    node.cloud = cloud;
    EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price, (8 * 0.033174 + 30 * 0.004446) * 0.2 + 0.01);
  }
  node.cloud = "azure";
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price, (8 * 0.033174 + 30 * 0.004446) * 0.4);
  node.gpus = 2;  // spot as the rest of the machine
  EXPECT_DOUBLE_EQ(PriceNode(ModelOf({kGceList}), node).price,
                   (8 * 0.033174 + 30 * 0.004446) * 0.4 + 2 * 0.7 * 0.4);
}

TEST(PriceNode, GpusOfEveryMakerHaveAPrice) {
  constexpr char kTable[] = "instance_type,on_demand_usd_per_hour\nn1-standard-8,0.4\ng5.xlarge,1\n";
  const auto price = [](const PriceModel& model, const char* type, int64_t gpus) {
    PricedNode node = InstanceOf(type);
    node.gpus = gpus;
    node.gpu_type = "t4";
    return PriceNode(model, node);
  };
  // Attached to a machine of GCE's first generation, at the price of their type where a list has it.
  EXPECT_DOUBLE_EQ(price(ModelOf({kTable}), "n1-standard-8", 2).price, 0.4 + 2 * 0.7);
  EXPECT_DOUBLE_EQ(price(ModelOf({kTable}), "n1-standard-8", 2).estimated, 2 * 0.7);
  EXPECT_DOUBLE_EQ(price(ModelOf({kTable, kGceList}), "n1-standard-8", 2).price, 0.4 + 2 * 0.35);
  // Others include them.
  EXPECT_DOUBLE_EQ(price(ModelOf({kTable}), "g5.xlarge", 1).price, 1);
  EXPECT_DOUBLE_EQ(PodPrice(ResourceRates{}, {.gpus = 2}), 1.4);
}

TEST(PriceNode, ReservedNodesAreEstimates) {
  PricedNode node = InstanceOf("m5.2xlarge");
  node.reserved = true;
  NodePrice price = PriceNode(ModelOf({kInstanceList}), node);
  EXPECT_EQ(price.price, 0.4);
  EXPECT_EQ(price.basis, PriceBasis::kEstimate);
  EXPECT_EQ(price.estimated, 0.4);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kReserved));
  node.given = 0;
  price = PriceNode(ModelOf({kInstanceList}), node);
  EXPECT_EQ(price.basis, PriceBasis::kGiven);
  EXPECT_THAT(price.remarks, IsEmpty());
}

TEST(PriceNode, WindowsAddsItsLicenceToAPriceOfLinux) {
  PricedNode node = InstanceOf("Standard_D8s_v5");
  node.windows = true;
  NodePrice price = PriceNode(ModelOf({kRegionalList}), node);
  EXPECT_DOUBLE_EQ(price.price, 0.384 + 8 * 0.046);
  EXPECT_DOUBLE_EQ(price.estimated, 8 * 0.046);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kWindowsLicence));
  node.instance_type = "m5.2xlarge";
  EXPECT_EQ(PriceNode(ModelOf({kInstanceList}), node).price, 0.4) << "nothing says that the list is of Linux";
  node.given = 1;
  EXPECT_EQ(PriceNode(ModelOf({kRegionalList}), node).price, 1);
}

TEST(PriceNode, AProviderThatSaysTooLittleIsNotBelievedWhereAListKnowsBetter) {
  PricedNode node = InstanceOf("n1-standard-8");  // 0.3988 USD/h at base rates
  node.provider = 0.14;
  NodePrice price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_EQ(price.source, PriceSource::kProvider);
  EXPECT_EQ(price.basis, PriceBasis::kProvider);
  EXPECT_EQ(price.price, 0.14);
  node.provider = 0.13;  // below a third
  price = PriceNode(ModelOf({kGceList}), node);
  EXPECT_EQ(price.source, PriceSource::kInstanceType);
  EXPECT_DOUBLE_EQ(price.price, 0.38 + 0.01);
  EXPECT_THAT(price.remarks, ElementsAre(PriceRemark::kProviderPriceTooLow));
  // Machines of some clouds are as cheap as that: what no list knows costs what the provider says.
  node.instance_type = "cpx41";
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).price, 0.13);
  // GCE's model prices a type that it does not know at its disk.
  node.instance_type = "c4-standard-8";
  node.cloud = "gce";
  node.provider = 0.0137;
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).source, PriceSource::kBaseRates);
  node.given = 0.0137;
  EXPECT_EQ(PriceNode(ModelOf({kGceList}), node).source, PriceSource::kGiven);
}

TEST(PriceNode, CataloguesAreAskedInTheirOrder) {
  EXPECT_EQ(PriceNode(ModelOf({kGceList, kInstanceList}), InstanceOf("m5.large")).catalogue, "aws");
  EXPECT_EQ(PriceNode(ModelOf({kInstanceList, kGceList}), InstanceOf("n1-standard-8")).catalogue, "gce");
}

// A list of the node's region is asked before one of another region, and a spot price before a ratio.
TEST(PriceNode, CataloguesOfTheRegionAreAskedFirst) {
  constexpr char kHeader[] = "instance_type,on_demand_usd_per_hour,spot_usd_per_hour\n";
  const std::string east = absl::StrCat("# region: us-east-1\n", kHeader, "m5.large,0.1,\n");
  const std::string west = absl::StrCat("# region: eu-west-1\n", kHeader, "m5.large,0.15,\n");
  const std::string spot = absl::StrCat("# region: eu-west-1\n", kHeader, "m5.large,0.16,0.07\n");
  const std::string own = absl::StrCat(kHeader, "m5.large,0.08,\n");
  const auto price = [](std::initializer_list<std::string> lists, const char* region, bool spot_node) {
    PricedNode node = InstanceOf("m5.large", 2, 8);
    node.region = region;
    node.spot = spot_node;
    PriceModel model;
    for (const std::string& csv : lists) model.catalogues.push_back(ModelOf({csv.c_str()}).catalogues[0]);
    return PriceNode(model, node).price;
  };
  EXPECT_DOUBLE_EQ(price({east, west}, "eu-west-1", false), 0.15);
  EXPECT_DOUBLE_EQ(price({east, west}, "us-east-1", false), 0.1);
  EXPECT_DOUBLE_EQ(price({west, spot}, "eu-west-1", false), 0.15);
  EXPECT_DOUBLE_EQ(price({west, spot}, "eu-west-1", true), 0.07);
  EXPECT_DOUBLE_EQ(price({east, spot}, "us-east-1", true), 0.1 * kAverageSpotRatio);
  EXPECT_DOUBLE_EQ(price({own, west}, "eu-west-1", false), 0.08) << "a list without a region is of each";
  EXPECT_DOUBLE_EQ(price({west, east}, "", false), 0.15);
  EXPECT_DOUBLE_EQ(price({west, east}, "ap-south-1", false), 0.15);
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

// By hand: a machine of 2 with a risk of a fifth costs 2 / (1 - 0.2) = 2.5, and 0.1 beside it.
TEST(PriceOfNode, IsWhatTheNodeStatesItself) {
  PriceModel model = ModelOf({kGceList});
  model.interruption_risk = 0.2;
  model.surcharge = 0.1;
  PricedNode node = InstanceOf("n1-standard-8");
  node.spot = true;
  const NodePrice of_group = PriceNode(model, node);
  const NodePrice own = PriceOfNode(of_group, "2");
  EXPECT_EQ(own.source, PriceSource::kNodeAnnotation);
  EXPECT_DOUBLE_EQ(own.price, 2.6);
  for (const absl::string_view wrong : {"", "-1", "abc", "0,5", "$0.5", "NaN", "Inf", "1e300"}) {
    EXPECT_EQ(PriceOfNode(of_group, wrong).source, PriceSource::kInstanceType) << wrong;
  }
  node.given = 3;
  EXPECT_DOUBLE_EQ(PriceOfNode(PriceNode(model, node), "2").price, PriceNode(model, node).price);
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
  EXPECT_NEAR(PodPrice(rates, {.milli_cpu = 1000, .memory_bytes = 4 * kGi, .gpus = 1}), 0.750958, 1e-12);
  EXPECT_NEAR(PodPrice(rates, {.milli_cpu = 500, .memory_bytes = 500 << 20}), 0.018757898, 1e-9);
  EXPECT_NEAR(PodPrice(rates, {.ephemeral_bytes = 50 * kGi}), 50 * 0.10 / 720, 1e-12);
  const ResourceRates flat = {.ephemeral_gib = 0, .ephemeral_flat = 0.01};
  EXPECT_NEAR(PodPrice(flat, {.ephemeral_bytes = 1, .gpus = 2}), 1.41, 1e-12);
}

}  // namespace
}  // namespace loadline
