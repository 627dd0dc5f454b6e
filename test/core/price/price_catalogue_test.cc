#include "core/price/price_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace loadline {
namespace {

constexpr char kTable[] = "instance_type,capacity_vcpu,on_demand_usd_per_hour,spot_usd_per_hour\n";
constexpr char kGce[] = "kind,key,usd_per_hour_or_factor\n";

TEST(ParsePriceCatalogue, Table) {
  const auto catalogue = ParsePriceCatalogue(
      "t.csv", absl::StrCat("\xEF\xBB\xBF# prices of July 2026\r\n\r\n", kTable,
                            "m5.xlarge,4,0.192,0.07\r\nm5.large,2,0.096,\n\"odd,\"\"x\"\"\",,0,\n"));
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_EQ(catalogue->name, "t.csv");
  EXPECT_FALSE(catalogue->gce.has_value());
  ASSERT_EQ(catalogue->types.size(), 3u);
  EXPECT_EQ(catalogue->types.at("m5.xlarge").on_demand, 0.192);
  EXPECT_EQ(catalogue->types.at("m5.xlarge").spot, 0.07);
  EXPECT_EQ(catalogue->types.at("m5.large").spot, std::nullopt);
  EXPECT_EQ(catalogue->types.at("odd,\"x\"").on_demand, 0);
  ASSERT_EQ(catalogue->families.at("m5.").size(), 2u);
  EXPECT_EQ(catalogue->families.at("m5.")[0].type, "m5.large");
  EXPECT_EQ(catalogue->families.count("odd,\"x\""), 0u);
}

TEST(ParsePriceCatalogue, SaysWhatItIsOf) {
  const auto catalogue = ParsePriceCatalogue("x",
                                             "# Prices of all: regions.\n# provider: azure\n#region:eastus\n"
                                             "# date: 2026-06\n# os: linux\n"
                                             "instance_type,on_demand_usd_per_hour\n# region: later\na,1\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_EQ(catalogue->region, "eastus");
  EXPECT_EQ(catalogue->date, "2026-06");
  EXPECT_EQ(catalogue->os, "linux");
}

TEST(ParsePriceCatalogue, HasColumnsForOtherRegions) {
  const auto catalogue = ParsePriceCatalogue("x",
                                             "instance_type,on_demand_usd_per_hour@b,on_demand_usd_per_hour,"
                                             "spot_usd_per_hour@c,on_demand_usd_per_hour@c\n"
                                             "both,2,1,0.5,3\nhere,,1,,\nelsewhere,2,,,\n");
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  EXPECT_THAT(catalogue->regions, testing::ElementsAre("b", "c"));
  const InstancePrice& both = catalogue->types.at("both");
  EXPECT_EQ(both.on_demand, 1);
  ASSERT_EQ(both.elsewhere.size(), 2);
  EXPECT_EQ(both.elsewhere[0].on_demand, 2);
  EXPECT_EQ(both.elsewhere[0].spot, std::nullopt);
  EXPECT_EQ(both.elsewhere[1].on_demand, 3);
  EXPECT_EQ(both.elsewhere[1].spot, 0.5);
  EXPECT_TRUE(catalogue->types.at("here").elsewhere.empty());
  EXPECT_EQ(catalogue->types.at("elsewhere").on_demand, std::nullopt);
}

TEST(ParsePriceCatalogue, Gce) {
  const auto catalogue = ParsePriceCatalogue(
      "g.csv", absl::StrCat(kGce,
                            "constant,base_cpu_per_vcpu_hour,0.03\nconstant,local_ssd_per_gib_hour,0.0001\n"
                            "predefined_cpu_per_vcpu_hour,n1,0.031\ncustom_preemptible_factor,n1,0.21\n"
                            "machine_hour,n1-standard-8,0.38\npreemptible_machine_hour,n1-standard-8,0.08\n"
                            "gpu_hour,t4,0.35\npreemptible_gpu_hour,t4,0.11\n"
                            "boot_disk_per_gib_hour,pd-balanced,0.00014\n"));
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  ASSERT_TRUE(catalogue->gce.has_value());
  EXPECT_EQ(catalogue->base.cpu, 0.03);
  EXPECT_EQ(catalogue->base.memory_gib, std::nullopt);
  EXPECT_EQ(catalogue->base.ephemeral_gib, 0.00014);
  EXPECT_EQ(catalogue->types.at("n1-standard-8").spot, 0.08);
  EXPECT_EQ(catalogue->gce->families.at("n1").cpu, 0.031);
  EXPECT_EQ(catalogue->gce->custom_families.at("n1").spot_factor, 0.21);
  EXPECT_EQ(catalogue->gce->gpus.at("t4"), 0.35);
  EXPECT_EQ(catalogue->gce->spot_gpus.at("t4"), 0.11);
  EXPECT_EQ(catalogue->gce->local_ssd_gib, 0.0001);
}

struct BrokenCase {
  std::string name;
  std::string csv;
  std::string error;
};
class ParsePriceCatalogueError : public ::testing::TestWithParam<BrokenCase> {};

TEST_P(ParsePriceCatalogueError, NamesTheLine) {
  const auto catalogue = ParsePriceCatalogue("x", GetParam().csv);
  ASSERT_FALSE(catalogue.ok());
  EXPECT_EQ(catalogue.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(catalogue.status().message()), ::testing::HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ParsePriceCatalogueError,
    ::testing::Values(
        BrokenCase{"Empty", "", "has no header"}, BrokenCase{"OnlyComments", "# a\n\n", "has no header"},
        BrokenCase{"UnknownHeader", "# a\na,b\n", "line 2: the header has neither"},
        BrokenCase{"HeaderTwice", "instance_type,instance_type,on_demand_usd_per_hour\n",
                   "\"instance_type\" twice"},
        BrokenCase{"NotANumber", absl::StrCat(kTable, "a,1,0.1,\n\n# c\nb,1,abc,\n"),
                   "line 5: \"abc\" is not a price"},
        BrokenCase{"Negative", absl::StrCat(kTable, "a,1,-0.1,\n"), "line 2: \"-0.1\" is not a price"},
        BrokenCase{"Nan", absl::StrCat(kTable, "a,1,nan,\n"), "line 2: \"nan\" is not a price"},
        BrokenCase{"Infinite", absl::StrCat(kTable, "a,1,inf,\n"), "line 2: \"inf\" is not a price"},
        BrokenCase{"TooLarge", absl::StrCat(kTable, "a,1,1e10,\n"), "line 2: \"1e10\" is not a price"},
        BrokenCase{"NoPrice", absl::StrCat(kTable, "a,1,,\n"), "line 2: \"a\" has no price"},
        BrokenCase{"NoType", absl::StrCat(kTable, ",1,1,\n"), "line 2: instance_type is empty"},
        BrokenCase{"Twice", absl::StrCat(kTable, "a,1,1,\na,1,1,\n"), "line 3: \"a\" is listed before"},
        BrokenCase{"Fields", absl::StrCat(kTable, "a,1,1\n"), "line 2: has 3 fields, the header has 4"},
        BrokenCase{"Quote", absl::StrCat(kTable, "\"a,1,1,\n"), "line 2: a quote is not closed"},
        BrokenCase{"GceKind", absl::StrCat(kGce, "machine,a,1\n"), "line 2: there is no kind \"machine\""},
        BrokenCase{"GceConstant", absl::StrCat(kGce, "constant,a,1\n"), "line 2: there is no constant \"a\""},
        BrokenCase{"GceFactor", absl::StrCat(kGce, "predefined_preemptible_factor,n1,1.5\n"),
                   "line 2: \"1.5\" is not a factor"},
        BrokenCase{"GceTwice", absl::StrCat(kGce, "machine_hour,a,1\ngpu_hour,a,1\nmachine_hour,a,1\n"),
                   "line 4: \"a\" is listed before"},
        BrokenCase{"NotText", absl::StrCat(kTable, "a\x99,1,1,\n"),
                   "line 2: \"a\\x99\" is not a name: must be printable ASCII"},
        BrokenCase{"GceNotText", absl::StrCat(kGce, "machine_hour,a\x99,1\n"),
                   "line 2: \"a\\x99\" is not a name: must be printable ASCII"},
        BrokenCase{"LongType", absl::StrCat(kTable, std::string(254, 'a'), ",1,1,\n"),
                   "aaaa\"... is not a name: has 254 characters, at most 253 are allowed"},
        BrokenCase{"LongDate", absl::StrCat("# date: ", std::string(254, '1'), "\n", kTable),
                   "line 1: \"1111"},
        BrokenCase{"Control", absl::StrCat(kTable, "a,1,\x1b[31m,\n"), "\\x1b[31m"}),
    [](const auto& info) { return info.param.name; });

TEST(FamilyOf, IsWhatStandsBeforeTheSeparator) {
  EXPECT_EQ(FamilyOf("m5.large"), "m5");
  EXPECT_EQ(FamilyOf("u-6tb1.56xlarge"), "u-6tb1");
  EXPECT_EQ(FamilyOf("n2d-standard-4"), "n2d");
  EXPECT_EQ(FamilyOf("plain"), "plain");
  EXPECT_EQ(FamilyOf(""), "");
  EXPECT_EQ(FamilyKeyOf("m5.large"), "m5.");
  EXPECT_EQ(FamilyKeyOf("c4-standard-8"), "c4-");
  EXPECT_EQ(FamilyKeyOf("plain"), "plain");
}

}  // namespace
}  // namespace loadline
