#include "core/price/own_price.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/platform_labels.h"
#include "core/price/capacity_type.h"
#include "core/price/price_catalogue.h"

namespace loadline {
namespace {

// Two amounts of which one is larger than this times the other are those of different machines. Chosen:
// templates miss the memory of their machines by less, and sizes of a family differ by more.
constexpr double kOtherSize = 1.25;

bool HoldsForAll(const NodePrice& price) {
  return price.source == PriceSource::kGiven || price.source == PriceSource::kNone;
}

bool IsEstimate(PriceSource source) { return source > PriceSource::kInstanceType; }

bool Differs(absl::string_view a, absl::string_view b) { return !a.empty() && !b.empty() && a != b; }

// Prices the nodes of one group and shape.
class KindPricer {
 public:
  KindPricer(const PriceModel& model, const NodeGroup& group, const ClusterState& cluster, Slot slot)
      : model_(model),
        group_(group),
        shape_(cluster.node_shape(slot)),
        names_(cluster.resource_names()),
        capacity_(cluster.traits(slot).capacity),
        node_(group.priced) {}

  // Returns the node with its price; nullopt: it costs as much as a new one. `stated`: by the node itself.
  std::optional<PricedKind> Price(absl::string_view stated) {
    PricedKind kind{group_.priced, group_.price};
    const bool other_price = PriceAlone(&kind);
    const bool states = ReadStatedPrice(stated).has_value();
    if (states) kind.price = PriceOfNode(kind.price, stated);
    return other_price || states ? std::optional(std::move(kind)) : std::nullopt;
  }

 private:
  // Prices the node without what it states itself; false: as a new one.
  bool PriceAlone(PricedKind* kind) {
    const bool other_size = IsEstimate(group_.price.source)
                                ? IsOfOtherSize()
                                : TakesGpus(InstanceTypeOf(shape_.labels)) && HasOtherGpus();
    if (!TakeLabels() && !other_size) return false;
    if (other_size) TakeSize();
    node_.provider.reset();
    node_.annotated.reset();
    node_.annotation_invalid = false;
    NodePrice price = PriceNode(model_, node_);
    if (price.source == PriceSource::kNone) return false;
    if (IsEstimate(price.source) && !IsEstimate(group_.price.source)) return false;
    *kind = {std::move(node_), std::move(price)};
    return true;
  }

  // Takes over what labels say; false: nothing that differs.
  bool TakeLabels() {
    const bool type = Take(InstanceTypeOf(shape_.labels), &node_.instance_type);
    const bool region = Take(RegionOf(shape_.labels), &node_.region);
    const absl::string_view system = OperatingSystemOf(shape_.labels);
    const bool other_system = Differs(OperatingSystemOf(group_.model->shape.labels), system);
    if (other_system) node_.windows = system == "windows";
    if (type) TakeSize();
    return TakeCapacityType() || type || region || other_system;
  }

  static bool Take(absl::string_view value, std::string* known) {
    if (!Differs(*known, value)) return false;
    *known = std::string(value);
    return true;
  }

  bool TakeCapacityType() {
    const CapacityType type = CapacityTypeOf(shape_.labels);
    const bool comparable = node_.spot || node_.reserved || !IsEstimate(group_.price.source) ||
                            CapacityTypeOf(group_.model->shape.labels) != CapacityType::kUnknown;
    if (type == CapacityType::kUnknown || !comparable) return false;
    const bool spot = type == CapacityType::kSpot, reserved = type == CapacityType::kReserved;
    if (spot == node_.spot && reserved == node_.reserved) return false;
    node_.spot = spot;
    node_.reserved = reserved;
    return true;
  }

  // Returns whether the node offers much more or less than a new one. What both offer is compared: a template
  // may not say how large its machine is.
  bool IsOfOtherSize() const {
    const NodeShape& of_new = group_.model->shape;
    const auto differs = [](int64_t a, int64_t b) {
      const auto [least, most] = std::minmax(a, b);
      return least > 0 && static_cast<double>(most) > kOtherSize * static_cast<double>(least);
    };
    return differs(of_new.allocatable.Get(kCpu), shape_.allocatable.Get(kCpu)) ||
           differs(of_new.allocatable.Get(kMemory), shape_.allocatable.Get(kMemory)) || HasOtherGpus();
  }

  // A node without GPUs may have yet to register them.
  bool HasOtherGpus() const {
    const int64_t own = GpusIn(shape_, shape_.allocatable);
    return own > 0 && own != GpusIn(group_.model->shape, group_.model->shape.allocatable);
  }

  int64_t GpusIn(const NodeShape& shape, const ResourceAmounts& amounts) const {
    return GpusBehind(GpusOf(amounts, names_), shape.labels);
  }

  // Takes over the size of the machine. Disks stay those of new nodes: a node seldom tells them.
  void TakeSize() {
    const ResourceAmounts& amounts = capacity_.empty() ? shape_.allocatable : capacity_;
    node_.milli_cpu = amounts.Get(kCpu);
    node_.memory_bytes = amounts.Get(kMemory);
    node_.gpus = GpusIn(shape_, amounts);
    if (const std::string* const type = shape_.labels.Find(kGceGpuLabel)) node_.gpu_type = *type;
  }

  const PriceModel& model_;
  const NodeGroup& group_;
  const NodeShape& shape_;
  const ResourceNames& names_;
  const ResourceAmounts& capacity_;
  PricedNode node_;
};

}  // namespace

std::optional<double> ReadStatedPrice(absl::string_view stated) {
  double value = 0;
  if (!absl::SimpleAtod(stated, &value) || !IsPrice(value)) return std::nullopt;
  return value;
}

NodePrice PriceOfNode(const NodePrice& of_group, absl::string_view stated) {
  if (stated.empty() || of_group.source == PriceSource::kGiven || of_group.source == PriceSource::kNone) {
    return of_group;
  }
  const std::optional<double> own = ReadStatedPrice(stated);
  if (!own.has_value()) return of_group;
  double interruptions = 0, surcharge = 0;
  for (const PricePart& part : of_group.parts) {
    if (part.kind == PricePartKind::kInterruptions) interruptions = part.price;
    if (part.kind == PricePartKind::kSurcharge) surcharge = part.price;
  }
  NodePrice price;
  price.source = PriceSource::kNodeAnnotation;
  price.basis = PriceBasis::kGiven;
  price.spot = of_group.spot;
  const auto add = [&](PricePartKind kind, double usd) {
    if (usd != 0) price.parts.push_back({kind, usd});
    price.price += usd;
  };
  add(PricePartKind::kMachine, *own);
  const double uninterrupted = of_group.price - interruptions - surcharge;
  if (uninterrupted > 0) add(PricePartKind::kInterruptions, *own * interruptions / uninterrupted);
  add(PricePartKind::kSurcharge, surcharge);
  return price;
}

void PriceOtherKinds(const PriceModel& model, const GroupsOfNodes& group_of, const ClusterState& cluster,
                     NodeGroups* groups) {
  // Nodes of a group with the same shape, and the same stated price, are of one kind.
  using Key = std::tuple<GroupIndex, int32_t, absl::string_view>;
  absl::flat_hash_map<Key, std::optional<size_t>> kinds;
  StrongVector<GroupIndex, std::shared_ptr<NodesOfOtherPrices>> others(groups->size());
  for (const auto [slot, index] : group_of) {
    const NodeGroup& group = (*groups)[index];
    if (!cluster.Occupied(slot) || !group.model.has_value() || HoldsForAll(group.price)) continue;
    const absl::string_view stated = cluster.traits(slot).stated_price;
    const auto [known, is_new] = kinds.try_emplace(Key{index, cluster.shape_number(slot), stated});
    if (is_new) {
      std::optional<PricedKind> kind = KindPricer(model, group, cluster, slot).Price(stated);
      if (!kind.has_value()) continue;
      if (others[index] == nullptr) others[index] = std::make_shared<NodesOfOtherPrices>();
      known->second = others[index]->kinds.size();
      others[index]->kinds.push_back(*std::move(kind));
    }
    if (known->second.has_value()) others[index]->kind_of[slot] = *known->second;
  }
  for (const GroupIndex index : groups->indices()) (*groups)[index].other_prices = std::move(others[index]);
}

}  // namespace loadline
