#include "core/observe/derived_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/bounded_name.h"
#include "core/cluster/gpu_resources.h"
#include "core/cluster/node_kind.h"
#include "core/cluster/node_model.h"
#include "core/cluster/platform_labels.h"
#include "core/cluster/shared_marks.h"
#include "core/observe/devices.h"
#include "core/price/capacity_type.h"
#include "core/price/price_model.h"

namespace loadline {
namespace {

// The facts that tell groups apart whatever pods there are.
struct BaseKey {
  std::vector<std::string> parts;  // the stated ones, of which the name is made, in its order
  // The same with those that are not stated, so that nodes of other pools are never of one group.
  std::vector<std::string> all;
  friend auto operator<=>(const BaseKey&, const BaseKey&) = default;
};

// Returns the size of a node in place of its type, such as "8-cpu-32Gi". Memory is rounded, since that of
// machines of one type differs by some pages.
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
  KeyMaker(const ClusterState& cluster, const StartupTaints& startup_taints, int64_t now_s)
      : cluster_(cluster), startup_taints_(startup_taints), now_ms_(MillisecondsOf(now_s)) {}

  // Returns whether devices of a node may have yet to come though no label names their type.
  bool IsYoung(Slot slot) const {
    const int64_t created_ms = MillisecondsOf(cluster_.traits(slot).created_s.value_or(0));
    return now_ms_ > 0 && loadline::IsYoung(created_ms, startup_taints_.max_startup_ms, now_ms_);
  }

  // Returns whether the cloud has yet to label a node of a pool: it is young, has not started and states no
  // type.
  bool AwaitsItsLabels(Slot slot) const {
    const NodeShape& shape = cluster_.node_shape(slot);
    return IsYoung(slot) && InstanceTypeOf(shape.labels).empty() && !PoolOf(slot).empty() &&
           HasTaintOf(TaintKind::kStartup, shape, startup_taints_);
  }

  absl::string_view PoolOf(Slot slot) const {
    const absl::string_view pool = loadline::PoolOf(cluster_.node_shape(slot).labels);
    return pool.empty() ? absl::string_view(cluster_.traits(slot).machine_set) : pool;
  }

  // Returns the GPUs of a node whose type does not state them; empty: a type does, or it has none.
  std::string GpusOf(Slot slot) const {
    const Labels& labels = cluster_.node_shape(slot).labels;
    if (StatesGpus(MachineTypeOf(labels))) return "";
    return GpuKindOf(labels, CapacityOf(cluster_, slot), cluster_.resource_names());
  }

  // Returns whether devices are there, and not only a label that names their type. `own`: of GpusOf().
  bool HasDevices(Slot slot, absl::string_view own) const { return own != GpuTypeOf(slot); }

  // The GPUs of a node as long as no device is there: the type that a label names.
  std::string GpuTypeOf(Slot slot) const {
    return GpuKindOf(cluster_.node_shape(slot).labels, ResourceAmounts(), cluster_.resource_names());
  }

  BaseKey KeyOf(Slot slot, absl::string_view gpus) const {
    const NodeShape& shape = cluster_.node_shape(slot);
    BaseKey key;
    const auto add = [&](absl::string_view part, bool named = true) {
      key.all.emplace_back(part.data(), part.size());
      if (named && !part.empty()) key.parts.push_back(key.all.back());
    };
    add(PoolOf(slot));
    const absl::string_view type = MachineTypeOf(shape.labels);
    add(type.empty() ? SizeOf(CapacityOf(cluster_, slot)) : std::string(type));
    if (!StatesGpus(type)) add(gpus);
    add(ZoneOf(shape.labels));
    const CapacityType capacity = CapacityTypeOf(shape.labels);
    add(Name(capacity), capacity == CapacityType::kSpot || capacity == CapacityType::kReserved);
    const absl::string_view os = OperatingSystemOf(shape.labels);
    add(os, os != "linux");
    const absl::string_view arch = ArchitectureOf(shape.labels);
    add(arch, arch != "amd64");
    add(absl::StrJoin(RolesOf(shape.labels), "+"));
    std::vector<std::string> taints;
    for (const Taint& taint : LastingTaints(shape.taints, startup_taints_)) {
      taints.push_back(absl::StrCat(taint.key, "=", taint.value, ":", taint.effect));
    }
    std::sort(taints.begin(), taints.end());
    for (const std::string& taint : taints) add(taint);
    return key;
  }

 private:
  static bool StatesGpus(absl::string_view type) { return !type.empty() && !TakesGpus(type); }

  const ClusterState& cluster_;
  const StartupTaints& startup_taints_;
  const int64_t now_ms_;
};

// Divides nodes by what tells groups apart whatever pods there are.
std::map<BaseKey, std::vector<Slot>> DivideByBase(const KeyMaker& keys, const std::vector<Slot>& machines) {
  std::vector<std::string> gpus_of;  // by position in `machines`
  for (const Slot slot : machines) gpus_of.push_back(keys.GpusOf(slot));
  const bool any_gpus = absl::c_any_of(gpus_of, [](const std::string& own) { return !own.empty(); });
  const bool any_young = any_gpus && absl::c_any_of(machines, [&](Slot slot) { return keys.IsYoung(slot); });
  std::map<BaseKey, std::set<std::string>> gpus;  // by the key without their number; "": there are none
  for (size_t i = 0; i < machines.size(); ++i) {
    const Slot slot = machines[i];
    const bool says_all =
        gpus_of[i].empty() ? any_young && !keys.IsYoung(slot) : keys.HasDevices(slot, gpus_of[i]);
    if (says_all) gpus[keys.KeyOf(slot, keys.GpuTypeOf(slot))].insert(gpus_of[i]);
  }
  const auto key_of = [&](size_t i) {
    const Slot slot = machines[i];
    std::string own = gpus_of[i];
    if (any_gpus && (!own.empty() || keys.IsYoung(slot)) && !keys.HasDevices(slot, own)) {
      const auto alike = gpus.find(keys.KeyOf(slot, own));
      if (alike != gpus.end() && alike->second.size() == 1) own = *alike->second.begin();
    }
    return keys.KeyOf(slot, own);
  };
  std::map<absl::string_view, std::optional<BaseKey>> key_of_pool;  // nullopt: its nodes have several
  if (absl::c_any_of(machines, [&](Slot slot) { return keys.AwaitsItsLabels(slot); })) {
    for (size_t i = 0; i < machines.size(); ++i) {
      if (keys.AwaitsItsLabels(machines[i])) continue;
      const BaseKey key = key_of(i);
      const auto [pool, is_first] = key_of_pool.try_emplace(keys.PoolOf(machines[i]), key);
      if (!is_first && pool->second != key) pool->second.reset();
    }
  }
  std::map<BaseKey, std::vector<Slot>> bases;
  for (size_t i = 0; i < machines.size(); ++i) {
    const auto pool = key_of_pool.find(keys.PoolOf(machines[i]));
    const bool joins =
        pool != key_of_pool.end() && pool->second.has_value() && keys.AwaitsItsLabels(machines[i]);
    bases[joins ? *pool->second : key_of(i)].push_back(machines[i]);
  }
  return bases;
}

// Returns the labels that pods of the cluster select nodes by.
absl::flat_hash_set<std::string> SelectedLabels(const ClusterState& cluster) {
  absl::flat_hash_set<std::string> keys;
  const std::span<const int64_t> pods = cluster.pods_of_shape();
  for (size_t shape = 0; shape < pods.size(); ++shape) {
    if (pods[shape] == 0) continue;
    const PodShape& of = cluster.pod_shapes()[static_cast<int32_t>(shape)];
    if (of.rules == nullptr) continue;
    for (std::string& key : of.rules->NodeLabelKeys()) keys.insert(std::move(key));
  }
  return keys;
}

// Returns the selected labels that may divide nodes, in the order of bytes.
LabelKeys DividingLabels(const ClusterState& cluster, const std::vector<Slot>& machines) {
  // Chosen: small clusters have no more racks, teams and tiers. Above that, a label with more values than
  // half of its nodes tells machines apart and not kinds of them.
  constexpr size_t kFewValues = 16;
  struct Found {
    size_t nodes = 0;
    absl::flat_hash_set<absl::string_view> values;
  };
  const absl::flat_hash_set<std::string> selected = SelectedLabels(cluster);
  std::map<absl::string_view, Found> found;
  for (const Slot slot : machines) {
    for (const Label& label : cluster.node_shape(slot).labels) {
      if (!selected.contains(label.key)) continue;
      Found& of = found[label.key];
      ++of.nodes;
      of.values.insert(label.value);
    }
  }
  LabelKeys keys;
  for (const auto& [key, of] : found) {
    if (of.values.size() <= kFewValues || 2 * of.values.size() <= of.nodes) keys.emplace_back(key);
  }
  return keys;
}

struct Part {
  std::string suffix;  // of the name of the group
  std::vector<Slot> nodes;
};

// Divides nodes by one label after the other. The nodes of a part that have the first value of a label, or do
// not have the label, keep the name of the part, so that another label behind these changes no name.
std::vector<Part> Divide(const ClusterState& cluster, const LabelKeys& keys, std::vector<Slot> nodes) {
  std::vector<Part> parts;
  parts.push_back({"", std::move(nodes)});
  for (const std::string& key : keys) {
    std::vector<Part> divided;
    for (const Part& part : parts) {
      std::map<std::pair<bool, absl::string_view>, std::vector<Slot>> by_value;  // no label is first
      for (const Slot slot : part.nodes) {
        const std::string* const value = cluster.node_shape(slot).labels.Find(key);
        by_value[{value != nullptr, value == nullptr ? "" : absl::string_view(*value)}].push_back(slot);
      }
      bool first = true;
      for (auto& [value, slots] : by_value) {
        std::string suffix = part.suffix;
        if (!std::exchange(first, false)) absl::StrAppend(&suffix, "/", key, "=", value.second);
        divided.push_back({std::move(suffix), std::move(slots)});
      }
    }
    parts = std::move(divided);
  }
  return parts;
}

ResourceAmounts CapacityOfMost(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  std::vector<NodeAmounts> capacities;
  for (const Slot slot : nodes) capacities.push_back({&CapacityOf(cluster, slot), 1});
  return SharedAmounts(capacities, cluster.resource_names());
}

// Returns the text that more than half of the nodes state; empty: they do not state the same.
template <typename TextOf>
std::string TextOfMost(const std::vector<Slot>& nodes, const TextOf& text_of) {
  std::map<std::string, size_t> counts;
  for (const Slot slot : nodes) {
    std::string text = text_of(slot);
    if (2 * ++counts[text] > nodes.size()) return text;
  }
  return "";
}

std::vector<Slot> MachinesOf(const ClusterState& cluster) {
  std::vector<Slot> machines;
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (cluster.Occupied(slot) && cluster.traits(slot).kind == NodeKind::kMachine) machines.push_back(slot);
  }
  return machines;
}

std::string CloudOfMost(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  return TextOfMost(
      nodes, [&](Slot slot) { return std::string(CloudOfProviderId(cluster.traits(slot).provider_id)); });
}

// Returns the capacity type of more than half of the nodes. Labels of several conventions may say it, none of
// them on most nodes.
CapacityType CapacityTypeOfMost(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  std::map<CapacityType, int64_t> counts;
  for (const Alike& of : ByShape(cluster, nodes)) counts[CapacityTypeOf(of.shape->labels)] += of.nodes;
  for (const auto& [type, count] : counts) {
    if (2 * count > static_cast<int64_t>(nodes.size())) return type;
  }
  return CapacityType::kUnknown;
}

}  // namespace

DerivedGroups DeriveGroups(const ClusterState& cluster, const StartupTaints& startup_taints, int64_t now_s) {
  std::vector<Slot> machines = MachinesOf(cluster);
  std::sort(machines.begin(), machines.end(),
            [&](Slot a, Slot b) { return cluster.name(a) < cluster.name(b); });
  DerivedGroups derived;
  const LabelKeys dividing = DividingLabels(cluster, machines);
  std::set<std::string> names;
  for (auto& [key, nodes] : DivideByBase(KeyMaker(cluster, startup_taints, now_s), machines)) {
    const std::string base = absl::StrJoin(key.parts, "/");
    for (auto& [suffix, part] : Divide(cluster, dividing, std::move(nodes))) {
      const std::string full = BoundedName(absl::StrCat(base, suffix));
      std::string name = full;
      // A pool may be called as a type, and keys that differ in what is not named are seldom.
      for (int number = 2; !names.insert(name).second; ++number) name = absl::StrCat(full, "/", number);
      derived.groups.push_back({std::move(name), std::move(part)});
    }
  }
  std::sort(derived.groups.begin(), derived.groups.end(),
            [](const DerivedGroup& a, const DerivedGroup& b) { return a.name < b.name; });
  for (const GroupIndex group : derived.groups.indices()) {
    for (const Slot slot : derived.groups[group].nodes) derived.group_of.Set(slot, group);
  }
  return derived;
}

PriceFacts PriceFactsOf(const ClusterState& cluster, const GroupNodes& group,
                        const StartupTaints& startup_taints) {
  const std::vector<Slot> examples = ExamplesOf(cluster, group, startup_taints);
  const auto labels = [&](Slot slot) -> const Labels& { return cluster.node_shape(slot).labels; };
  PriceFacts facts;
  facts.stated_price = TextOfMost(examples, [&](Slot slot) { return cluster.traits(slot).stated_price; });
  facts.capacity_type = CapacityTypeOfMost(cluster, examples);
  facts.cloud = CloudOfMost(cluster, examples);
  facts.region = TextOfMost(examples, [&](Slot slot) { return std::string(RegionOf(labels(slot))); });
  facts.operating_system =
      TextOfMost(examples, [&](Slot slot) { return std::string(OperatingSystemOf(labels(slot))); });
  return facts;
}

std::string CloudOfCluster(const ClusterState& cluster) { return CloudOfMost(cluster, MachinesOf(cluster)); }

NodeToCome NewNodeOf(const ClusterState& cluster, const GroupNodes& group,
                     const StartupTaints& startup_taints) {
  NodeToCome made{PriceFactsOf(cluster, group, startup_taints), {}, {}};
  made.model = ModelOfNewNode(cluster, group, startup_taints, cluster.resource_names()).value();
  made.capacity = CapacityOfMost(cluster, ExamplesOf(cluster, group, startup_taints));
  return made;
}

}  // namespace loadline
