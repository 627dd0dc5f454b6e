// The prices of nodes and pods. All prices are US dollars per hour.
#ifndef LOADLINE_CORE_PRICE_PRICE_MODEL_H_
#define LOADLINE_CORE_PRICE_PRICE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/cluster/node_price.h"
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

// The requests of one pod. [0, 2^62] each.
struct PodRequests {
  int64_t milli_cpu = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_bytes = 0;
  int64_t gpus = 0;  // of every maker
};

// Returns the price of the pod on a machine that suits it perfectly.
// Source: GcePriceModel.PodPrice of Cluster Autoscaler, in its order of additions, which prices GPUs of
// NVIDIA alone; the flat price: the proposal.
double PodPrice(const ResourceRates& rates, const PodRequests& pod);

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

// The share of the on-demand price that a spot node costs on average. Source: the Spot Instance Advisor of
// AWS shows savings of 50 % to 70 % in the median of a region; Azure publishes "up to 90 %", and GCE has
// factors of its own in its list. See docs/ranking.md.
inline constexpr double kAverageSpotRatio = 0.4;

// The price of Windows Server per CPU and hour on top of Linux: the list price of AWS, Azure and GCE for all
// but their smallest machines.
inline constexpr double kWindowsCpu = 0.046;

// Prices one node. Sources are asked in the order of PriceSource up to `last_source`, catalogues in theirs:
//
//   kProvider      what the cloud says. If that is below a third of the hardware at base rates, a
//                  list that knows the type or family is asked before it; on GCE, whose model prices types
//                  that it does not know at their disks, so are base rates.
//   kInstanceType  the type's price in the node's region where the list has it, else in the list's own, else
//                  in the first one that it has. A table without spot price: on-demand * spot factor. Of
//                  several lists with the type, one of the node's region or of none is first, then one
//                  that needs no spot factor, then the one that is named first.
//                  GPUs that are attached to a machine of GCE's first generation come on top.
//   kFamily        GCE: CPU * rate + GiB * rate, times the family's spot factor. Table: the member of the
//                  family that is nearest in CPU (by ratio; ties: the smaller, then by name), times the ratio
//                  of CPUs.
//   kBaseRates     CPU, memory, ephemeral storage and GPUs, times the spot factor.
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

// Returns whether GPUs can be attached to machines of this type, so that it does not state them: types of
// GCE's first generation.
bool TakesGpus(absl::string_view instance_type);

inline double CpusOf(int64_t milli_cpu) { return static_cast<double>(milli_cpu) / 1000.0; }

// Returns what commitments pay of `nodes` nodes: machine price * the share of their CPUs that is committed. A
// spot node is not covered. Each commitment covers CPUs that those before it left over.
double CommittedPrice(const PriceModel& model, const PricedNode& node, const NodePrice& price, int64_t nodes);

}  // namespace loadline

#endif  // LOADLINE_CORE_PRICE_PRICE_MODEL_H_
