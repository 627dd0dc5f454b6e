#include "core/observe/see_fleet.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "core/cluster/gpu_resources.h"
#include "core/drain/eligibility.h"
#include "core/observe/count_machines.h"
#include "core/observe/devices.h"
#include "core/observe/fleet_state.h"

namespace loadline {
namespace {

bool AllowStarted(const std::vector<Taint>& taints, const StartupTaints& names) {
  return absl::c_none_of(taints, [&](const Taint& taint) {
    return SaysNotReady(taint) || KindOfTaint(taint, names) == TaintKind::kStartup;
  });
}

// Nodes as a fleet has them. What their shapes say is worked out once: many nodes share a shape.
class SeenNodes {
 public:
  SeenNodes(const ClusterState& cluster, const StartupTaints& names) : cluster_(cluster), names_(names) {}

  FleetNode Of(Slot slot, bool leaving) {
    const NodeTraits& traits = cluster_.traits(slot);
    const OfShape& of = ByShapeOf(slot);
    FleetNode node;
    node.created_ms = MillisecondsOf(traits.created_s.value_or(0));
    node.ready = traits.ready && of.started;
    node.leaving = leaving;
    node.devices = of.devices;
    return node;
  }

 private:
  struct OfShape {
    bool started = false;
    std::vector<uint64_t> devices;
  };
  const OfShape& ByShapeOf(Slot slot) {
    const auto [found, is_new] = by_shape_.try_emplace(cluster_.shape_number(slot));
    if (is_new) {
      const NodeShape& shape = cluster_.node_shape(slot);
      found->second = {AllowStarted(shape.taints, names_),
                       DevicesOf(shape.allocatable, cluster_.resource_names())};
    }
    return found->second;
  }

  const ClusterState& cluster_;
  const StartupTaints& names_;
  absl::flat_hash_map<int32_t, OfShape> by_shape_;
};

FleetGroup SeenGroup(const CloudGroup& group, bool shrinks) {
  FleetGroup seen;
  seen.name = group.name;
  seen.min_nodes = group.min_nodes;
  seen.target = group.target;
  seen.readable = group.problem.empty();
  seen.shrinks = shrinks;
  seen.provision_ms = group.provision_ms;
  seen.startup_ms = group.startup_ms;
  seen.template_devices = group.template_devices;
  return seen;
}

// The machines that count: those whose id and whose node no machine had that was listed before.
class ListedOnce {
 public:
  ListedOnce(const ClusterState& cluster, const LoopObservation& seen)
      : cluster_(cluster), seen_(seen), owners_(static_cast<size_t>(cluster.slot_end())) {
    ids_.reserve(
        std::accumulate(seen.groups.begin(), seen.groups.end(), size_t{0},
                        [](size_t sum, const CloudGroup& group) { return sum + group.machines.size(); }));
  }

  // Returns whether the machine counts. If not because of its node, it is added to `shared`.
  bool Add(const MachinePlace& place, std::vector<SharedNode>* shared) {
    const CloudMachine& machine = seen_.groups[place.group].machines[place.machine];
    if (!ids_.insert(machine.id).second) return false;
    if (!machine.node.has_value() || !cluster_.Occupied(*machine.node)) return true;
    std::optional<MachinePlace>& owner = owners_[IndexOf(*machine.node)];
    if (owner.has_value()) {
      shared->push_back({place, *owner});
      return false;
    }
    owner = place;
    return true;
  }
  bool HasMachine(Slot slot) const { return owners_[IndexOf(slot)].has_value(); }

 private:
  const ClusterState& cluster_;
  const LoopObservation& seen_;
  absl::flat_hash_set<absl::string_view> ids_;
  std::vector<std::optional<MachinePlace>> owners_;  // by slot
};

// Notes which nodes of a group await GPUs: young ones of which a label says that they have some, where no
// node that has had its time to start is without devices in spite of such a label.
template <typename SlotOf>
void NoteAwaitedGpus(const ClusterState& cluster, SlotOf slot_of, int64_t startup_ms, int64_t now_ms,
                     FleetGroup* group) {
  std::vector<FleetNode*> awaiting;
  bool in_vain = false;
  for (const bool young : {true, false}) {
    for (size_t i = 0; i < group->machines.size(); ++i) {
      std::optional<FleetNode>& node = group->machines[i].node;
      if (!node.has_value() || !node->devices.empty()) continue;
      if (IsYoung(node->created_ms, startup_ms, now_ms) != young) continue;
      if (!HasGpuLabel(cluster.node_shape(slot_of(i)).labels)) continue;
      if (young) awaiting.push_back(&*node);
      in_vain = in_vain || !young;
    }
    if (awaiting.empty()) return;
  }
  for (FleetNode* const node : awaiting) node->awaits_gpus = !in_vain;
}

// Returns those nodes of a group for which `is_found(node, devices, now_ms)` is true, in their order.
// `devices`: what its nodes come to offer, as far as `model` (nullptr: there is none) and the nodes
// themselves show it.
template <typename IsFound>
std::vector<Slot> FindNodes(const ClusterState& cluster, std::span<const Slot> slots, const NodeShape* model,
                            const ResourceNames& resources, const StartupTaints& names, int64_t now_s,
                            IsFound is_found) {
  FleetGroup group;
  if (model != nullptr) group.template_devices = DevicesOf(model->allocatable, resources);
  SeenNodes seen_nodes(cluster, names);
  for (const Slot slot : slots) group.machines.emplace_back().node = seen_nodes.Of(slot, /*leaving=*/false);
  FleetOptions options;
  options.startup_ms = names.max_startup_ms;
  const int64_t now_ms = MillisecondsOf(now_s);
  NoteAwaitedGpus(
      cluster, [&](size_t i) { return slots[i]; }, options.startup_ms, now_ms, &group);
  const std::vector<uint64_t> devices = DevicesOfGroup(/*known=*/{}, group, options, now_ms);
  std::vector<Slot> found;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (is_found(*group.machines[i].node, devices, now_ms)) found.push_back(slots[i]);
  }
  return found;
}

}  // namespace

bool HasStarted(const ClusterState& cluster, Slot slot, const StartupTaints& names) {
  return cluster.traits(slot).ready && AllowStarted(cluster.node_shape(slot).taints, names);
}

void FindNodesThatStart(const StartupTaints& names, NodeGroupSpan groups, const ResourceNames& resources,
                        DrainProblem* problem) {
  std::map<GroupIndex, std::vector<Slot>> nodes;
  for (const auto [slot, group] : problem->group_of) nodes[group].push_back(slot);
  problem->not_started.clear();
  for (const auto& [group, slots] : nodes) {
    const bool has_model = IndexOf(group) < groups.size() && groups[group].model.has_value();
    const std::vector<Slot> starting =
        FindNodes(*problem->cluster, slots, has_model ? &groups[group].model->shape : nullptr, resources,
                  names, problem->now_s, [&](const FleetNode& node, const auto& devices, int64_t now_ms) {
                    return IsStarting(node, devices, names.max_startup_ms, now_ms);
                  });
    problem->not_started.insert(problem->not_started.end(), starting.begin(), starting.end());
  }
  std::sort(problem->not_started.begin(), problem->not_started.end());
}

std::vector<Slot> NodesLackingDevices(const ClusterState& cluster, std::span<const Slot> nodes,
                                      const NodeShape* model, const ResourceNames& resources,
                                      const StartupTaints& names, int64_t now_s) {
  std::vector<Slot> lacking = FindNodes(
      cluster, nodes, model, resources, names, now_s,
      [](const FleetNode& node, const auto& devices, int64_t) { return LacksDevices(node, devices); });
  std::sort(lacking.begin(), lacking.end());
  return lacking;
}

void TakeOutNodesThatStart(const StartupTaints& names, DrainProblem* problem) {
  FindNodesThatStart(names, problem->groups, problem->cluster->resource_names(), problem);
  GroupsOfNodes started;
  for (const auto [slot, group] : problem->group_of) {
    if (!std::binary_search(problem->not_started.begin(), problem->not_started.end(), slot))
      started.Set(slot, group);
  }
  problem->group_of = std::move(started);
}

std::vector<uint64_t> DevicesOf(const ResourceAmounts& amounts, const ResourceNames& names) {
  std::vector<uint64_t> devices;
  for (const auto& [resource, amount] : amounts) {
    if (amount <= 0 || resource <= kEphemeralStorage) continue;
    const absl::string_view name = names.name(resource);
    const bool native = !absl::StrContains(name, "/") || absl::StrContains(name, "kubernetes.io/");
    if (!native) devices.push_back(FleetKey(name));
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

absl::flat_hash_map<Slot, MachineState> MachinesOfMarks(const LoopObservation& seen) {
  absl::flat_hash_map<Slot, MachineState> listed;
  absl::flat_hash_set<Slot> marked;
  for (const NodeMark& mark : seen.marks) marked.insert(mark.slot);
  if (marked.empty()) return listed;
  for (const CloudGroup& group : seen.groups) {
    for (const CloudMachine& machine : group.machines) {
      // In a group that cannot be read nobody knows whether the others are being deleted by now.
      if (!group.problem.empty() && machine.state != MachineState::kDeleting) continue;
      if (machine.node.has_value() && marked.contains(*machine.node)) {
        listed.emplace(*machine.node, machine.state);
      }
    }
  }
  return listed;
}

SeenFleet SeeFleet(const ClusterState& cluster, const LoopObservation& seen, const ObserveOptions& options,
                   std::span<const Slot> going, int64_t now_ms) {
  SeenNodes seen_nodes(cluster, options.startup_taints);
  SeenFleet fleet;
  fleet.reported.first = seen.first;
  absl::flat_hash_set<absl::string_view> shrinking;
  for (const RemovalUnderWay& removal : seen.under_way) shrinking.insert(removal.group);
  ListedOnce listed(cluster, seen);
  for (const GroupIndex index : seen.groups.indices()) {
    const CloudGroup& group = seen.groups[index];
    FleetGroup reported = SeenGroup(group, shrinking.contains(group.name));
    std::vector<int32_t> machines;
    std::vector<Slot> nodes;
    reported.machines.reserve(group.machines.size());
    machines.reserve(group.machines.size());
    nodes.reserve(group.machines.size());
    for (size_t i = 0; i < group.machines.size(); ++i) {
      const CloudMachine& machine = group.machines[i];
      if (machine.id.empty()) continue;
      if (!listed.Add({index, i}, &fleet.shared)) {
        if (machine.state != MachineState::kDeleting && reported.target > 0) --reported.target;
        continue;
      }
      FleetMachine& as =
          reported.machines.emplace_back(FleetMachine{machine.id, machine.state, machine.fault, {}});
      const bool has_node = machine.node.has_value() && cluster.Occupied(*machine.node);
      if (has_node) {
        const Slot slot = *machine.node;
        as.node = seen_nodes.Of(slot, std::binary_search(going.begin(), going.end(), slot));
      }
      machines.push_back(static_cast<int32_t>(i));
      nodes.push_back(has_node ? *machine.node : Slot{-1});
    }
    NoteAwaitedGpus(
        cluster, [&](size_t i) { return nodes[i]; }, reported.startup_ms.value_or(options.fleet.startup_ms),
        now_ms, &reported);
    fleet.reported.groups.push_back(std::move(reported));
    fleet.machines.push_back(std::move(machines));
    fleet.nodes.push_back(std::move(nodes));
  }
  for (int32_t i = 0; i < cluster.slot_end(); ++i) {
    const Slot slot{i};
    if (!cluster.Occupied(slot) || listed.HasMachine(slot)) continue;
    fleet.reported.other_nodes.push_back(seen_nodes.Of(slot, /*leaving=*/false));
    fleet.others.push_back(slot);
  }
  return fleet;
}

}  // namespace loadline
