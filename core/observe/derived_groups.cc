#include "core/observe/derived_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/node_model.h"
#include "core/cluster/platform_labels.h"
#include "core/cluster/startup_taints.h"
#include "core/price/capacity_type.h"

namespace loadline {
namespace {

// What tells groups apart whatever pods there are. The first part is the name.
struct BaseKey {
  std::vector<std::string> parts;  // that are stated, in the order of DerivedGroup::name
  // The same parts with those that are not, so that nodes of other pools are never of one group.
  std::vector<std::string> all;
  friend auto operator<=>(const BaseKey&, const BaseKey&) = default;
};

// "8-cpu-32Gi": a node that does not state its type is told by its size. The memory of machines of one type
// differs by some pages, so that it is rounded.
std::string SizeOf(const ResourceAmounts& capacity) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  constexpr int64_t kGiB = int64_t{1} << 30;
  const int64_t cpu = capacity.Get(kCpu);
  const int64_t memory = capacity.Get(kMemory);
  const int64_t step = memory >= 4 * kGiB ? kGiB : memory >= kGiB / 2 ? 128 * kMiB : kMiB;
  const int64_t rounded = memory / step * step + (memory % step >= step / 2 ? step : 0);
  return absl::StrCat(
      cpu % 1000 == 0 ? absl::StrCat(cpu / 1000) : absl::StrCat(cpu, "m"), "-cpu-",
      rounded % kGiB == 0 ? absl::StrCat(rounded / kGiB, "Gi") : absl::StrCat(rounded / kMiB, "Mi"));
}

const ResourceAmounts& CapacityOf(const ClusterState& cluster, Slot slot) {
  const ResourceAmounts& capacity = cluster.traits(slot).capacity;
  return capacity.empty() ? cluster.node_shape(slot).allocatable : capacity;
}

class KeyMaker {
 public:
  explicit KeyMaker(const ClusterState& cluster) : cluster_(cluster) {}

  BaseKey KeyOf(Slot slot) const {
    const NodeShape& shape = cluster_.node_shape(slot);
    BaseKey key;
    const auto add = [&](absl::string_view part, bool named = true) {
      key.all.emplace_back(part.data(), part.size());
      if (named && !part.empty()) key.parts.push_back(key.all.back());
    };
    const absl::string_view pool = PoolOf(shape.labels);
    add(pool.empty() ? absl::string_view(cluster_.traits(slot).machine_set) : pool);
    const absl::string_view type = InstanceTypeOf(shape.labels);
    add(type.empty() ? SizeOf(CapacityOf(cluster_, slot)) : std::string(type));
    add(ZoneOf(shape.labels));
    const CapacityType capacity = CapacityTypeOf(shape.labels);
    add(Name(capacity), capacity == CapacityType::kSpot || capacity == CapacityType::kReserved);
    const absl::string_view os = OperatingSystemOf(shape.labels);
    add(os, os != "linux");
    const absl::string_view arch = ArchitectureOf(shape.labels);
    add(arch, arch != "amd64");
    add(absl::StrJoin(RolesOf(shape.labels), "+"));
    std::vector<std::string> taints;
    for (const Taint& taint : LastingTaints(shape.taints, StartupTaints())) {
      taints.push_back(absl::StrCat(taint.key, "=", taint.value, ":", taint.effect));
    }
    std::sort(taints.begin(), taints.end());
    for (const std::string& taint : taints) add(taint);
    return key;
  }

 private:
  const ClusterState& cluster_;
};

// Labels that pods of the cluster select nodes by.
LabelKeys SelectedLabels(const ClusterState& cluster) {
  LabelKeys keys;
  const std::span<const int64_t> pods = cluster.pods_of_shape();
  for (size_t shape = 0; shape < pods.size(); ++shape) {
    if (pods[shape] == 0) continue;
    const PodShape& of = cluster.pod_shapes()[static_cast<int32_t>(shape)];
    if (of.rules == nullptr) continue;
    const LabelKeys of_pod = of.rules->NodeLabelKeys();
    keys.insert(keys.end(), of_pod.begin(), of_pod.end());
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// The values of labels of one node, in their order; a label that it does not have comes before all values.
using Values = std::vector<std::pair<bool, std::string>>;

Values ValuesOf(const NodeShape& shape, const LabelKeys& keys) {
  Values values;
  for (const std::string& key : keys) {
    const std::string* const value = shape.labels.Find(key);
    values.emplace_back(value != nullptr, value == nullptr ? std::string() : *value);
  }
  return values;
}

// The parts of nodes that are equal but for labels that pods select by, each with what is added to the name.
std::vector<std::pair<std::string, std::vector<Slot>>> Divide(const ClusterState& cluster,
                                                              const LabelKeys& selected,
                                                              const std::vector<Slot>& nodes) {
  // Labels that divide them, and no more of these than it takes.
  std::map<Values, std::vector<Slot>> parts;
  LabelKeys dividing;
  parts[{}] = nodes;
  for (const std::string& key : selected) {
    LabelKeys more = dividing;
    more.push_back(key);
    std::map<Values, std::vector<Slot>> divided;
    for (const Slot slot : nodes) divided[ValuesOf(cluster.node_shape(slot), more)].push_back(slot);
    if (divided.size() == parts.size()) continue;
    parts = std::move(divided);
    dividing = std::move(more);
  }
  std::vector<std::pair<std::string, std::vector<Slot>>> named;
  const Values first = [&] {
    Values lowest = parts.begin()->first;
    for (const auto& [values, slots] : parts) {
      for (size_t i = 0; i < values.size(); ++i) lowest[i] = std::min(lowest[i], values[i]);
    }
    return lowest;
  }();
  for (auto& [values, slots] : parts) {
    std::string suffix;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != first[i]) absl::StrAppend(&suffix, "/", dividing[i], "=", values[i].second);
    }
    named.emplace_back(std::move(suffix), std::move(slots));
  }
  return named;
}

// Of each resource the least among the nodes that have it, where more than half do.
ResourceAmounts LeastCapacity(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  std::map<ResourceId, std::pair<int64_t, size_t>> resources;
  for (const Slot slot : nodes) {
    for (const auto& [resource, amount] : CapacityOf(cluster, slot)) {
      if (amount == 0) continue;
      auto& [least, count] = resources.try_emplace(resource, amount, size_t{0}).first->second;
      least = std::min(least, amount);
      ++count;
    }
  }
  ResourceAmounts amounts;
  for (const auto& [resource, of] : resources) {
    if (2 * of.second > nodes.size()) amounts[resource] = of.first;
  }
  return amounts;
}

// What more than half of the nodes state; empty: nothing.
template <typename TextOf>
std::string TextOfMost(const std::vector<Slot>& nodes, const TextOf& text_of) {
  std::map<std::string, size_t> counts;
  for (const Slot slot : nodes) {
    std::string text = text_of(slot);
    if (2 * ++counts[text] > nodes.size()) return text;
  }
  return "";
}

// The nodes that show what a new one is like.
std::vector<Slot> Examples(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  std::vector<Slot> examples;
  for (const Slot slot : nodes) {
    if (IsHealthyNode(cluster, slot, StartupTaints())) examples.push_back(slot);
  }
  return examples.empty() ? nodes : examples;
}

}  // namespace

DerivedGroups DeriveGroups(const ClusterState& cluster) {
  std::vector<Slot> machines;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (cluster.Occupied(slot) && cluster.traits(slot).kind == NodeKind::kMachine) machines.push_back(slot);
  }
  std::sort(machines.begin(), machines.end(),
            [&](Slot a, Slot b) { return cluster.name(a) < cluster.name(b); });
  const KeyMaker keys(cluster);
  std::map<BaseKey, std::vector<Slot>> bases;
  DerivedGroups derived;
  for (const Slot slot : machines) bases[keys.KeyOf(slot)].push_back(slot);
  const LabelKeys selected = SelectedLabels(cluster);
  std::set<std::string> names;
  for (const auto& [key, nodes] : bases) {
    const std::string base = absl::StrJoin(key.parts, "/");
    for (auto& [suffix, part] : Divide(cluster, selected, nodes)) {
      std::string name = absl::StrCat(base, suffix);
      // A pool may be called as a type, and keys that differ in what is not named are seldom.
      for (int number = 2; !names.insert(name).second; ++number)
        name = absl::StrCat(base, suffix, "/", number);
      derived.groups.push_back({std::move(name), std::move(part)});
    }
  }
  std::sort(derived.groups.begin(), derived.groups.end(),
            [](const DerivedGroup& a, const DerivedGroup& b) { return a.name < b.name; });
  derived.group_of.assign(static_cast<size_t>(cluster.slot_end()), -1);
  for (size_t group = 0; group < derived.groups.size(); ++group) {
    for (const Slot slot : derived.groups[group].nodes) {
      derived.group_of[IndexOf(slot)] = static_cast<int32_t>(group);
    }
  }
  return derived;
}

NodeToCome NewNodeOf(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  const std::vector<Slot> examples = Examples(cluster, nodes);
  NodeToCome made;
  made.shape =
      ModelOfNewNode(cluster, {.nodes = nodes}, StartupTaints(), cluster.resource_names()).value().shape;
  made.capacity = LeastCapacity(cluster, examples);
  // Labels of several conventions may say it, none of them on most nodes.
  made.capacity_type = CapacityTypeOf(cluster.node_shape(examples.front()).labels);
  made.stated_price = TextOfMost(examples, [&](Slot slot) { return cluster.traits(slot).stated_price; });
  made.cloud = TextOfMost(
      examples, [&](Slot slot) { return std::string(CloudOfProviderId(cluster.traits(slot).provider_id)); });
  return made;
}

}  // namespace loadline
