// The facts about a node that its price depends on, and the price with its sources. core/price works it out.
#ifndef LOADLINE_CORE_CLUSTER_NODE_PRICE_H_
#define LOADLINE_CORE_CLUSTER_NODE_PRICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"

namespace loadline {

// The part of a node that its price depends on.
struct PricedNode {
  // Given for the node group, stated on the node, and said by the cloud provider. A value that is no price is
  // passed over, with a remark.
  std::optional<double> given;
  std::optional<double> annotated;
  std::optional<double> provider;
  bool annotation_invalid = false;
  // There is a template: without one only a given price holds.
  bool has_template = true;
  std::string instance_type;  // empty: not known
  std::string region;         // empty: not known
  // Whose machine it is, by its provider id: "aws", "azure", "gce" or another word. Empty: not known.
  std::string cloud;
  bool spot = false;
  bool reserved = false;  // paid for in advance
  bool windows = false;
  // Capacity.
  int64_t milli_cpu = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_bytes = 0;
  int64_t gpus = 0;  // of every maker
  // GCE.
  std::optional<std::string> gpu_type;
  double local_ssds = 0;       // of 375 GiB each; 0 also where pods do not use them
  int64_t boot_disk_gib = 0;   // 0: not stated, 100
  std::string boot_disk_type;  // empty: not stated, pd-balanced
};

// The sources of a price, in the order in which they are asked.
enum class PriceSource { kNone, kGiven, kNodeAnnotation, kProvider, kInstanceType, kFamily, kBaseRates };

// The kind of an amount of money. Sums of prices have a part for each.
enum class PriceBasis {
  kNone,
  kGiven,      // somebody stated it: in a file of groups, a question or an annotation
  kProvider,   // the cloud provider said it
  kList,       // a price list has it
  kSpotRatio,  // a price list has the on-demand price, of which a spot node costs a share on average
  kEstimate,   // worked out from CPU, memory and GPUs, from another type of the family, or a price of others
};

// A fact that was passed over, assumed or left out on the way to a price: see message NodePrice.
enum class PriceRemark {
  kGivenPriceInvalid = 1,
  kAnnotationInvalid,
  kNoInstanceType,
  kInstanceTypeNotListed,
  kFamilyNotListed,
  kSpotFactorOfCatalogue,
  kSpotFactorOfModel,
  kGpuTypeNotListed,
  kBootDiskTypeNotListed,
  kNoTemplate,
  kSourcesExhausted,
  kProviderPriceTooLow,
  kRegionNotListed,
  kSpotRatio,
  kReserved,
  kWindowsLicence,
};

// The kind of a part of a price.
enum class PricePartKind { kMachine = 1, kLocalSsd, kBootDisk, kGpu, kInterruptions, kSurcharge, kLicence };
// A part of a price, in US dollars per hour.
struct PricePart {
  PricePartKind kind;
  double price;
  friend bool operator==(const PricePart&, const PricePart&) = default;
};

// The price of a node with its source, in US dollars per hour.
struct NodePrice {
  PriceSource source = PriceSource::kNone;
  double price = 0;                             // the sum of the parts, added in their order
  absl::InlinedVector<PricePart, 4> parts;      // that are not 0
  absl::InlinedVector<PriceRemark, 4> remarks;  // in order of their numbers
  std::string catalogue;
  std::string key;     // the instance type or family in it
  std::string region;  // of the price, where the list names one
  std::string date;    // of the list
  bool spot = false;
  PriceBasis basis = PriceBasis::kNone;
  double spot_ratio = 0;  // what the on-demand price was multiplied by; 0: by nothing
  double estimated = 0;   // what of the price is an estimate, whatever the basis of the rest
};

// Nodes that their group would make otherwise now, with their price.
struct PricedKind {
  PricedNode node;
  NodePrice price;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_NODE_PRICE_H_
