// Price lists: what instance types, families and single resources cost.
#ifndef LOADLINE_CORE_PRICE_PRICE_CATALOGUE_H_
#define LOADLINE_CORE_PRICE_PRICE_CATALOGUE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline {

// All prices are US dollars per hour, finite, in [0, kMaxPrice]. So no sum of them overflows.
inline constexpr double kMaxPrice = 1e9;
bool IsPrice(double value);

// The prices of a machine in US dollars per hour; nullopt: the list has none.
struct MachinePrice {
  std::optional<double> on_demand;
  std::optional<double> spot;
};

// The prices of an instance type in a list.
struct InstancePrice : MachinePrice {
  // The prices in the other regions of the list, in the order of PriceCatalogue::regions. Empty: it has none.
  std::vector<MachinePrice> elsewhere;
};

// A member of a family in a table.
struct FamilyMember {
  double cpus;  // > 0
  MachinePrice price;
  std::string type;
};

// The rates that a GCE list states for a family, or for its custom machines.
struct FamilyRates {
  std::optional<double> cpu;
  std::optional<double> memory_gib;
  std::optional<double> spot_factor;
};

// Prices of single resources, as far as a list has them.
struct BaseRates {
  std::optional<double> cpu;
  std::optional<double> memory_gib;
  std::optional<double> gpu;
  std::optional<double> ephemeral_gib;
  std::optional<double> spot_factor;
};

// The parts that only GCE lists have.
struct GcePrices {
  absl::flat_hash_map<std::string, FamilyRates> families;
  absl::flat_hash_map<std::string, FamilyRates> custom_families;
  absl::flat_hash_map<std::string, double> gpus;
  absl::flat_hash_map<std::string, double> spot_gpus;
  absl::flat_hash_map<std::string, double> boot_disk_gib;
  double local_ssd_gib = 0;
  double spot_local_ssd_gib = 0;
};

// A price list.
struct PriceCatalogue {
  std::string name;
  // Comments of the list about itself. Empty: it has none.
  std::string region;  // of all prices that name none
  std::string date;    // "2026-07"
  std::string os;      // "linux": licences of other systems are added
  // The cloud whose prices it has: "aws", "azure" or "gce". Empty: nobody said, or another one.
  std::string provider;
  // The other regions that it has prices of, in the order of its columns, and the position of each.
  std::vector<std::string> regions;
  absl::flat_hash_map<std::string, size_t> region_positions;
  absl::flat_hash_map<std::string, InstancePrice> types;  // by name in lower case: Azure ignores case
  // Tables that state capacity: by FamilyKeyOf(), members by CPUs and name.
  absl::flat_hash_map<std::string, std::vector<FamilyMember>> families;
  BaseRates base;
  std::optional<GcePrices> gce;
};

// Reads a catalogue in one of the two forms of message PriceCatalogue. Lines `# key: value` before the
// header, with the keys provider, region, date and os, say what the list is of.
//
// Errors: kInvalidArgument  the fault, with the number of the line, from 1: `line 17: "abc" is not a
//                           price: ...`. Also a key that occurs twice, and a header without what it takes.
// Cost:   O(bytes).
absl::StatusOr<PriceCatalogue> ParsePriceCatalogue(absl::string_view name, absl::string_view csv);

// The family of an instance type: what is before the first '.', else before the first '-'; else all of it.
absl::string_view FamilyOf(absl::string_view instance_type);

// The same with its separator: c4.large of AWS and c4-standard-8 of GCE are not of one family.
absl::string_view FamilyKeyOf(absl::string_view instance_type);

// GCE's name of a family: types without one are of the first generation.
absl::string_view GceFamily(absl::string_view instance_type);
// Returns the rates of the type's family, of custom types their own; nullptr: the list has none.
const FamilyRates* FindGceFamily(const GcePrices& gce, absl::string_view instance_type);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_PRICE_CATALOGUE_H_
