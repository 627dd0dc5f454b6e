#include "core/price/own_price.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/platform_labels.h"
#include "core/price/capacity_type.h"
#include "core/price/price_catalogue.h"

namespace loadline {
namespace {

bool HoldsForAll(const NodePrice& price) {
  return price.source == PriceSource::kGiven || price.source == PriceSource::kNone;
}

PricedKind KindOf(const PricedNode& node) {
  return {node.instance_type, node.region, node.spot, node.reserved};
}

// Returns the kind of a node by its labels, and where they say nothing that of new nodes.
PricedKind KindOf(const PricedNode& of_new, const Labels& labels) {
  PricedKind kind = KindOf(of_new);
  if (const auto type = InstanceTypeOf(labels); !type.empty()) kind.instance_type = std::string(type);
  if (const auto region = RegionOf(labels); !region.empty()) kind.region = std::string(region);
  const CapacityType bought = CapacityTypeOf(labels);
  if (bought == CapacityType::kUnknown) return kind;
  kind.spot = bought == CapacityType::kSpot;
  kind.reserved = bought == CapacityType::kReserved;
  return kind;
}

// Returns the price of the node without what it states itself.
const NodePrice& PriceOfKind(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  if (group.other_prices.empty()) return group.price;
  const auto found = group.other_prices.find(KindOf(group.priced, cluster.node_shape(slot).labels));
  return found != group.other_prices.end() ? found->second : group.price;
}

// Returns the price with the amount that a node states in place of its machine's.
NodePrice WithStated(const NodePrice& price, double stated) {
  double interruptions = 0, surcharge = 0;
  for (const PricePart& part : price.parts) {
    if (part.kind == PricePartKind::kInterruptions) interruptions = part.price;
    if (part.kind == PricePartKind::kSurcharge) surcharge = part.price;
  }
  NodePrice own;
  own.source = PriceSource::kNodeAnnotation;
  own.basis = PriceBasis::kGiven;
  own.spot = price.spot;
  const auto add = [&](PricePartKind kind, double usd) {
    if (usd != 0) own.parts.push_back({kind, usd});
    own.price += usd;
  };
  add(PricePartKind::kMachine, stated);
  const double uninterrupted = price.price - interruptions - surcharge;
  if (uninterrupted > 0) add(PricePartKind::kInterruptions, stated * interruptions / uninterrupted);
  add(PricePartKind::kSurcharge, surcharge);
  return own;
}

}  // namespace

std::optional<double> ReadStatedPrice(absl::string_view stated) {
  double value = 0;
  if (!absl::SimpleAtod(stated, &value) || !IsPrice(value)) return std::nullopt;
  return value;
}

PricedNode PricedAsItIs(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  PricedNode node = group.priced;
  const NodeShape& shape = cluster.node_shape(slot);
  const ResourceAmounts& stated = cluster.traits(slot).capacity;
  PricedKind kind = KindOf(group.priced, shape.labels);
  if (kind == KindOf(group.priced)) return node;
  const ResourceAmounts& amounts = stated.empty() ? shape.allocatable : stated;
  if (kind.instance_type != node.instance_type) {  // disks stay those of new nodes: labels seldom tell them
    node.milli_cpu = amounts.Get(kCpu);
    node.memory_bytes = amounts.Get(kMemory);
    node.ephemeral_bytes = amounts.Get(kEphemeralStorage);
    node.gpus = GpusBehind(GpusOf(amounts, cluster.resource_names()), shape.labels);
  }
  node.instance_type = std::move(kind.instance_type);
  node.region = std::move(kind.region);
  node.spot = kind.spot;
  node.reserved = kind.reserved;
  node.provider.reset();
  node.annotated.reset();
  node.annotation_invalid = false;
  return node;
}

void PriceOtherKinds(const PriceModel& model, const GroupsOfNodes& group_of, const ClusterState& cluster,
                     NodeGroups* groups) {
  for (const auto [slot, index] : group_of) {
    NodeGroup& group = (*groups)[index];
    if (HoldsForAll(group.price) || !cluster.Occupied(slot)) continue;
    PricedKind kind = KindOf(group.priced, cluster.node_shape(slot).labels);
    if (kind == KindOf(group.priced) || group.other_prices.contains(kind)) continue;
    NodePrice price = PriceNode(model, PricedAsItIs(group, cluster, slot));
    // A label of no machine type, such as k3s sets it, does not take the place of a type that a list has.
    const bool worse = price.source == PriceSource::kNone || (price.source == PriceSource::kBaseRates &&
                                                              group.price.source != PriceSource::kBaseRates);
    group.other_prices.emplace(std::move(kind), worse ? group.price : std::move(price));
  }
}

NodePrice PriceOfNode(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  if (HoldsForAll(group.price)) return group.price;
  const NodePrice& of_kind = PriceOfKind(group, cluster, slot);
  const std::optional<double> stated = ReadStatedPrice(cluster.traits(slot).stated_price);
  return stated.has_value() ? WithStated(of_kind, *stated) : of_kind;
}

std::optional<double> UsdOf(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  if (!group.usd_per_hour.has_value() || CostsAsNew(group, cluster, slot)) return group.usd_per_hour;
  return PriceOfNode(group, cluster, slot).price;
}

std::optional<double> SavedPrice(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  if (!group.usd_per_hour.has_value() || group.node_price != group.usd_per_hour) {
    return group.node_price.has_value() ? group.node_price : group.usd_per_hour;
  }
  return UsdOf(group, cluster, slot);
}

bool CostsAsNew(const NodeGroup& group, const ClusterState& cluster, Slot slot) {
  return HoldsForAll(group.price) || !cluster.Occupied(slot) ||
         (cluster.traits(slot).stated_price.empty() && &PriceOfKind(group, cluster, slot) == &group.price);
}

}  // namespace loadline
