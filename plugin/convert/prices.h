// Price models and what of a node its price depends on: messages to core types, and prices back.
#ifndef LOADLINE_PLUGIN_CONVERT_PRICES_H_
#define LOADLINE_PLUGIN_CONVERT_PRICES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/shapes.h"
#include "core/observe/derived_groups.h"
#include "core/price/price_model.h"
#include "loadline/k8s/v1/core.pb.h"
#include "loadline/v1/prices.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Catalogues of one model.
inline constexpr int kMaxCatalogues = 16;
// On a template node: the annotation, else the label, that states its price.
inline constexpr absl::string_view kNodePriceKey = "loadline.dev/node-usd-per-hour";

// Errors: kInvalidArgument  names the field: `base_rates.cpu_usd_per_hour: -1 is not a price: ...`; of a
//                           catalogue its name and the line: `catalogues[0] "x.csv": line 17: ...`
absl::StatusOr<PriceModel> DecodePriceModel(const v1::PriceModel& message);

// Puts the rates that are set in place of those in `rates`.
absl::Status DecodeRates(const v1::ResourceRates& message, ResourceRates* rates);
v1::ResourceRates EncodeRates(const ResourceRates& rates);

// The label that is read before all others that state a capacity type.
inline constexpr absl::string_view kCapacityTypeLabel = "karpenter.sh/capacity-type";

// A template node.
struct DecodedTemplate {
  PricedNode node;
  bool has_gpu = false;  // by label, or by allocatable
  NodeShape offer;  // what it offers to pods: allocatable, or where it lacks that capacity; and its labels
};

// Reads a serialized k8s.io.api.core.v1.Node: capacity, where it lacks one allocatable; instance type, spot,
// GPUs and disks by the labels and annotations that cloud providers and Cluster Autoscaler use. Errors:
// kInvalidArgument  the text continues what the node is about
absl::StatusOr<DecodedTemplate> DecodeTemplate(absl::string_view bytes, ResourceReader* resources);
// The same but for `offer`, of a node whose shape is known: labels and allocatable amounts are read from it.
absl::StatusOr<DecodedTemplate> PricedTemplate(const k8s::v1::Node& message, const NodeShape& shape,
                                               ResourceReader* resources);

// Sets what an option or a group states over its template. A spot node is not a reserved one, whatever labels
// say.
template <typename Message>
void ReadStated(const Message& message, PricedNode* node) {
  if (message.has_node_usd_per_hour()) node->given = message.node_usd_per_hour();
  if constexpr (requires { message.has_provider_usd_per_hour(); }) {
    if (message.has_provider_usd_per_hour()) node->provider = message.provider_usd_per_hour();
  }
  if (!message.instance_type().empty()) node->instance_type = message.instance_type();
  if (!message.has_spot()) return;
  node->spot = message.spot();
  if (node->spot) node->reserved = false;
}

// Reads what kNodePriceKey states. nullptr: nothing.
void ReadNodePrice(const std::string* text, PricedNode* node);

// Adds what the template of a group does not say about its price, as most of its nodes have it, so that nodes
// and new ones have one price. `stated`: the labels of the template; `states_spot`: the group says whether it
// is spot.
void CompletePriced(const PriceFacts& nodes, const Labels& stated, bool states_spot, PricedNode* node);

// Returns what a new node of a derived group is for prices: labels and stated price are read as above.
DecodedTemplate TemplateOf(const NodeToCome& made, const ResourceNames& names);
// Returns the same as a serialized k8s.io.api.core.v1.Node that DecodeTemplate() reads.
std::string EncodeNodeToCome(const NodeToCome& made, const std::string& name, const ResourceNames& names);

// Returns the part of a pod's effective requests that has a price.
PodRequests PricedRequests(const PodShape& shape, const ResourceNames& names);

v1::NodePrice EncodeNodePrice(const NodePrice& price);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_PRICES_H_
