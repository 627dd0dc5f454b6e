// What nodes and pods cost. All prices are US dollars per hour.
#ifndef LOADLINE_CORE_PRICE_PRICE_MODEL_H_
#define LOADLINE_CORE_PRICE_PRICE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/price/price_catalogue.h"

namespace loadline {

// Prices of single resources. Defaults: GCE, us-central1, as Cluster Autoscaler 1.35 has them compiled in.
struct ResourceRates {
  double cpu = 0.033174;
  double memory_gib = 0.004446;
  double gpu = 0.70;
  double ephemeral_gib = 0.10 / 720;  // pd-balanced; a month has 720 hours
  double ephemeral_flat = 0;          // for a pod that requests any
  friend bool operator==(const ResourceRates&, const ResourceRates&) = default;
};

// What a pod requests. [0, 2^62] each.
struct PodRequests {
  int64_t milli_cpu = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_bytes = 0;
  int64_t gpus = 0;  // of every maker
};

// What the pod would cost on a machine that suits it perfectly.
// Source: GcePriceModel.PodPrice of Cluster Autoscaler, in its order of additions, which prices GPUs of
// NVIDIA alone; the flat price: the proposal.
double PodPrice(const ResourceRates& rates, const PodRequests& pod);

// Where the price of a machine comes from, in the order of asking.
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

// What was passed over, assumed or left out on the way to a price: see message NodePrice.
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

// What a price has parts for.
enum class PricePartKind { kMachine = 1, kLocalSsd, kBootDisk, kGpu, kInterruptions, kSurcharge, kLicence };
struct PricePart {
  PricePartKind kind;
  double price;
  friend bool operator==(const PricePart&, const PricePart&) = default;
};

// CPUs that are paid for already, and not in use.
struct Commitment {
  std::string instance;  // an instance type or a family; empty: any
  int64_t unused_milli_cpu = 0;
};

// How often spot nodes of an instance type or a family are taken away.
struct InterruptionRisk {
  std::string instance;
  double risk = 0;  // [0, 1)
};

// How nodes are priced; see message PriceModel. What is set is a valid price or share.
struct PriceModel {
  std::vector<std::shared_ptr<const PriceCatalogue>> catalogues;
  BaseRates base;  // over those of the catalogues
  PriceSource last_source = PriceSource::kBaseRates;
  std::optional<double> spot_factor;  // (0, 1]; in place of every factor, where no list has the spot price
  double interruption_risk = 0;       // [0, 1); of spot nodes that `interruption_risks` has no entry for
  std::vector<InterruptionRisk> interruption_risks;
  double surcharge = 0;
  std::vector<Commitment> commitments;
};

// What of a node its price depends on.
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

// The share of the on-demand price that a spot node costs on average. Source: the Spot Instance Advisor of
// AWS shows savings of 50 % to 70 % in the median of a region; Azure publishes "up to 90 %", and GCE has
// factors of its own in its list. See docs/ranking.md.
inline constexpr double kAverageSpotRatio = 0.4;

// The price of Windows Server per CPU and hour on top of Linux: the list price of AWS, Azure and GCE for all
// but their smallest machines.
inline constexpr double kWindowsCpu = 0.046;

// Prices one node. Sources are asked in the order of PriceSource up to `last_source`, catalogues in theirs:
//
//   kProvider      what the cloud says. Where that is below a third of what base rates make of the hardware,
//   a
//                  list that knows the type or family comes first; on GCE, whose model prices types that it
//                  does not know at their disks, base rates do as well.
//   kInstanceType  the type's price in the node's region where the list has it, else in the list's own, else
//                  in the first one that it has. A table without spot price: on-demand * spot factor.
//                  GPUs that are attached to a machine of GCE's first generation come on top.
//   kFamily        GCE: CPU * rate + GiB * rate, times the family's spot factor. Table: the member of the
//                  family that is nearest in CPU (by ratio; ties: the smaller, then by name), times the ratio
//                  of CPUs.
//   kBaseRates     CPU, memory and ephemeral storage, and GPUs beside; times the spot factor.
//
// The spot factor is the model's own; else that of the list's family, or for base rates of a list of GCE
// beside a node that may be GCE's; else kAverageSpotRatio.
//
// Where a GCE list gives the price, or base rates hold beside one, local SSDs, boot disk and attached GPUs
// are added as GCE bills them. Windows adds its licence to a price of Linux, kWindowsCpu per CPU. A price
// that is given, annotated or said by the provider includes all that. Cost: O(catalogues), plus the members
// of a family. Pure: any thread. Source: GcePriceModel.NodePrice of Cluster Autoscaler, in its order of
// operations.
NodePrice PriceNode(const PriceModel& model, const PricedNode& node);

inline double CpusOf(int64_t milli_cpu) { return static_cast<double>(milli_cpu) / 1000.0; }

// Returns what commitments pay of `nodes` nodes: machine price * the share of their CPUs that is committed. A
// spot node is not covered. Each commitment covers CPUs that those before it left over.
double CommittedPrice(const PriceModel& model, const PricedNode& node, const NodePrice& price, int64_t nodes);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_PRICE_MODEL_H_
