#include "core/cluster/node_model.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "core/base/fingerprint.h"
#include "core/cluster/platform_labels.h"
#include "core/cluster/shared_marks.h"

namespace loadline {
namespace {

// Devices come in whole numbers; of all else machines of one type have a little more or less.
bool IsDevice(absl::string_view resource) {
  return absl::StrContains(resource, "/") && !absl::StrContains(resource, "kubernetes.io/");
}

// `offers`: nodes by amount, the largest first.
int64_t SharedAmount(const std::map<int64_t, int64_t, std::greater<>>& offers, bool device) {
  int64_t all = 0;
  for (const auto& [amount, nodes] : offers) all += nodes;
  int64_t typical = 0, seen = 0;
  for (const auto& [amount, nodes] : offers) {
    typical = amount;
    seen += nodes;
    if (seen > all / 2) break;
  }
  if (device) return typical;
  int64_t least = typical;
  for (const auto& [amount, nodes] : offers) {
    if (amount >= typical - typical / 4) least = std::min(least, amount);
  }
  return least;
}

std::vector<NodeAmounts> AllocatableOf(std::span<const Alike> alike) {
  std::vector<NodeAmounts> allocatable;
  for (const Alike& of : alike) allocatable.push_back({&of.shape->allocatable, of.nodes});
  return allocatable;
}

// Returns the amounts of the template, corrected by what nodes show. `healthy`: some of them are healthy.
ResourceAmounts CorrectedAmounts(const ResourceAmounts& stated, const ResourceAmounts& shown, bool healthy,
                                 const ResourceNames& names) {
  ResourceAmounts amounts;
  for (const auto& [resource, amount] : stated) {
    // The driver of a device that no healthy node has will not come on the next node either.
    const bool missing = healthy && shown.Find(resource) == nullptr && IsDevice(names.name(resource));
    if (!missing) amounts[resource] = amount;
  }
  for (const auto& [resource, amount] : shown) {
    const int64_t* const said = stated.Find(resource);
    if (said == nullptr || (amount < *said && amount > *said / 2)) amounts[resource] = amount;
  }
  return amounts;
}

bool LeavesByTaints(const NodeShape& shape, const StartupTaints& names) {
  return absl::c_any_of(shape.taints, [&](const Taint& taint) {
    return KindOfTaint(taint, names) == TaintKind::kLeaving && taint.Repels();
  });
}

// The nodes of a group by their states. Each list is part of the next one, in the order of the group.
struct NodesByState {
  std::vector<Slot> healthy;  // started, without a cordon
  std::vector<Slot> started;  // ready, with all devices, and it is known what they offer
  std::vector<Slot> staying;  // neither deleted nor about to go
};

// The state of nodes, as far as their shape says it.
struct StateOfShape {
  bool leaving = false;
  bool started = false;
  bool cordoned = false;
};

StateOfShape JudgeShape(const NodeShape& shape, const StartupTaints& names) {
  const bool leaving = LeavesByTaints(shape, names);
  const bool started =
      !leaving && !shape.allocatable.empty() && !HasTaintOf(TaintKind::kStartup, shape, names);
  return {leaving, started, shape.unschedulable};
}

// Each shape is judged once: many nodes share one.
NodesByState SortByState(const ClusterState& cluster, const GroupNodes& group, const StartupTaints& names) {
  NodesByState sorted;
  for (std::vector<Slot>* const list : {&sorted.healthy, &sorted.started, &sorted.staying}) {
    list->reserve(group.nodes.size());
  }
  absl::flat_hash_map<int32_t, StateOfShape> by_shape;
  std::optional<int32_t> last;  // the shape of the node before
  StateOfShape state;
  for (const Slot slot : group.nodes) {
    const NodeTraits& traits = cluster.traits(slot);
    if (traits.deleted_s.has_value()) continue;
    if (const int32_t shape = cluster.shape_number(slot); shape != last) {
      last = shape;
      const auto [found, is_new] = by_shape.try_emplace(shape);
      if (is_new) found->second = JudgeShape(cluster.node_shape(slot), names);
      state = found->second;
    }
    if (state.leaving) continue;
    sorted.staying.push_back(slot);
    if (!traits.ready || !state.started || absl::c_binary_search(group.lacking, slot)) continue;
    sorted.started.push_back(slot);
    if (!state.cordoned) sorted.healthy.push_back(slot);
  }
  return sorted;
}

// Returns whether nodes offer amounts of one machine: kubelets reserve less than a quarter.
bool AreOfOneSize(std::span<const Alike> nodes) {
  for (const ResourceId resource : {kCpu, kMemory}) {
    int64_t least = std::numeric_limits<int64_t>::max();
    int64_t most = 0;
    for (const Alike& of : nodes) {
      const int64_t amount = of.shape->allocatable.Get(resource);
      least = std::min(least, amount);
      most = std::max(most, amount);
    }
    if (least < most - most / 4) return false;
  }
  return true;
}

// Keeps the nodes of one type where more than half state theirs: of `stated` where there is one, else of the
// most frequent type; of equally frequent ones, of the smallest, then of the first by name.
void KeepNodesOfOneType(const ClusterState& cluster, absl::string_view stated, std::vector<Slot>* nodes) {
  struct OfType {
    int64_t nodes = 0;
    std::pair<int64_t, int64_t> least{std::numeric_limits<int64_t>::max(), 0};  // CPU, memory
  };
  absl::btree_map<absl::string_view, OfType> types;
  const auto type_of = [&](Slot slot) { return MachineTypeOf(cluster.node_shape(slot).labels); };
  size_t with_type = 0;
  for (const Slot slot : *nodes) {
    const absl::string_view type = type_of(slot);
    if (type.empty()) continue;
    ++with_type;
    OfType& of = types[type];
    const ResourceAmounts& offer = cluster.node_shape(slot).allocatable;
    ++of.nodes;
    of.least = std::min(of.least, {offer.Get(kCpu), offer.Get(kMemory)});
  }
  if (2 * with_type <= nodes->size()) return;
  auto kept = types.find(stated);
  if (kept == types.end()) {
    kept = absl::c_min_element(types, [](const auto& a, const auto& b) {
      return std::tuple(-a.second.nodes, a.second.least) < std::tuple(-b.second.nodes, b.second.least);
    });
  }
  std::erase_if(*nodes, [&](Slot slot) { return type_of(slot) != kept->first; });
}

// See ExamplesOf().
struct Examples {
  std::vector<Slot> nodes;
  std::vector<Alike> shapes;  // of the nodes
  bool healthy = false;       // each of them is, and there is one
};

Examples ChooseExamples(const ClusterState& cluster, const GroupNodes& group, std::vector<Slot> healthy) {
  Examples examples;
  examples.healthy = !healthy.empty();
  examples.nodes =
      examples.healthy ? std::move(healthy) : std::vector(group.nodes.begin(), group.nodes.end());
  examples.shapes = ByShape(cluster, examples.nodes);
  if (!AreOfOneSize(examples.shapes)) {
    KeepNodesOfOneType(cluster, group.stated == nullptr ? "" : MachineTypeOf(group.stated->labels),
                       &examples.nodes);
    examples.shapes = ByShape(cluster, examples.nodes);
  }
  return examples;
}

// The values that more than half of the nodes have, in order.
template <typename ValuesOf>
std::vector<std::string> SharedBy(std::span<const Alike> alike, ValuesOf values_of) {
  absl::btree_map<std::string, int64_t> counts;
  for (const Alike& of : alike) {
    for (const std::string& value : values_of(*of.shape)) counts[value] += of.nodes;
  }
  const int64_t half = CountNodes(alike) / 2;
  std::vector<std::string> shared;
  for (const auto& [value, nodes] : counts) {
    if (nodes > half) shared.push_back(value);
  }
  return shared;
}

// The content of a CSINode, in an order that does not depend on its own.
using CsiContent = std::vector<std::tuple<std::string, bool, int32_t>>;

CsiContent ContentOf(const CsiNode* csi_node) {
  CsiContent content;
  if (csi_node == nullptr) return content;
  for (const CsiNode::Driver& driver : csi_node->drivers) {
    content.emplace_back(driver.name, driver.count.has_value(), driver.count.value_or(0));
  }
  for (const std::string& plugin : csi_node->migrated_plugins) content.emplace_back(plugin, false, -1);
  absl::c_sort(content);
  return content;
}

// Returns whether both are written alike. One that is missing is like no other.
bool AreAlike(const CsiNode* a, const CsiNode* b) {
  return a != nullptr && b != nullptr && a->migrated_plugins == b->migrated_plugins &&
         absl::c_equal(a->drivers, b->drivers, [](const CsiNode::Driver& c, const CsiNode::Driver& d) {
           return c.name == d.name && c.count == d.count;
         });
}

// The first node by name of those whose CSINode is that of most, among those that have a driver. Among
// equally frequent ones that of the lowest limits is first.
std::string TypicalCsiNode(const ClusterState& cluster, std::span<const Slot> nodes) {
  struct Found {
    int64_t nodes = 0;
    absl::string_view first;
  };
  absl::btree_map<CsiContent, Found> found;
  const bool any = !cluster.objects().of(ObjectKind::kCsiNode).empty();
  const CsiNode* former = nullptr;
  Found* of = nullptr;  // that of `former`
  for (const Slot slot : nodes) {
    const absl::string_view name = cluster.name(slot);
    const CsiNode* const csi_node = any ? cluster.objects().FindCsiNode(name) : nullptr;
    if (of == nullptr || (any && !AreAlike(csi_node, former))) of = &found[ContentOf(csi_node)];
    former = csi_node;
    if (of->nodes++ == 0 || name < of->first) of->first = name;
  }
  // The drivers of a young node have yet to register.
  if (found.size() > 1) found.erase(CsiContent());
  const auto most = absl::c_max_element(
      found, [](const auto& a, const auto& b) { return a.second.nodes < b.second.nodes; });
  return std::string(most->second.first);
}

// Returns false where no node has a static pod. It looks at shapes, if they are fewer than the pods of
// `nodes`.
bool MayHaveStaticPods(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  const std::span<const int64_t> of_shape = cluster.pods_of_shape();
  size_t pods = 0;
  for (const Slot slot : nodes) pods += cluster.pods(slot).pods().size();
  if (pods < of_shape.size()) return pods > 0;
  for (size_t i = 0; i < of_shape.size(); ++i) {
    if (of_shape[i] > 0 && IsKubeletsMirror(cluster.pod_shapes()[static_cast<int32_t>(i)])) return true;
  }
  return false;
}

// Returns the room of the static pods that more than half of the nodes have, each as often as they have it.
// Names do not count: kubelet ends each with the name of its node.
std::vector<PodShape> SharedStaticPods(const ClusterState& cluster, const std::vector<Slot>& nodes) {
  if (!MayHaveStaticPods(cluster, nodes)) return {};
  struct Shared {
    PodShape room;
    std::vector<int64_t> nodes;  // with at least one, two, ... of them
  };
  absl::btree_map<uint64_t, Shared> known;
  absl::flat_hash_map<int32_t, uint64_t> room_of;  // by the shape of a static pod
  for (const Slot slot : nodes) {
    absl::flat_hash_map<uint64_t, size_t> here;
    for (const NodePods::Pod& pod : cluster.pods(slot).pods()) {
      const PodShape& shape = cluster.pod_shapes()[pod.shape];
      if (shape.finished || !IsKubeletsMirror(shape)) continue;
      const auto [room, is_new] = room_of.try_emplace(pod.shape, 0);
      if (is_new) {
        PodShape made = RoomOf(shape, cluster.resource_names());
        room->second = made.fingerprint;
        known.try_emplace(made.fingerprint, Shared{std::move(made), {}});
      }
      std::vector<int64_t>& with = known.at(room->second).nodes;
      const size_t number = here[room->second]++;
      if (with.size() <= number) with.push_back(0);
      ++with[number];
    }
  }
  std::vector<PodShape> shared;
  for (const auto& [fingerprint, of] : known) {
    for (const int64_t with : of.nodes) {
      if (2 * with > static_cast<int64_t>(nodes.size())) shared.push_back(of.room);
    }
  }
  return shared;
}

}  // namespace

uint64_t NodeModel::Fingerprint() const {
  if (static_pods.empty()) return shape.fingerprint;
  FingerprintBuilder builder;
  builder.Add(std::bit_cast<int64_t>(shape.fingerprint));
  for (const PodShape& pod : static_pods) builder.Add(std::bit_cast<int64_t>(pod.fingerprint));
  return builder.Finish();
}

NodeIndex AddNodeOf(const NodeModel& model, const std::string& name, Snapshot* snapshot) {
  const NodeIndex node = snapshot->AddNode({name, model.shape, name});
  for (const PodShape& pod : model.static_pods) snapshot->PlacePod(node, snapshot->InternShape(pod));
  return node;
}

absl::string_view Name(ModelSource source) {
  switch (source) {
    case ModelSource::kStated:
      return "template";
    case ModelSource::kShared:
      return "shared by most nodes";
    case ModelSource::kSingle:
      return "one node";
  }
  return "invalid source";
}

ResourceAmounts SharedAmounts(std::span<const NodeAmounts> nodes, const ResourceNames& names) {
  absl::btree_map<ResourceId, std::map<int64_t, int64_t, std::greater<>>> offers;
  int64_t all = 0;
  for (const NodeAmounts& of : nodes) {
    all += of.nodes;
    for (const auto& [resource, amount] : *of.amounts) {
      if (amount > 0) offers[resource][amount] += of.nodes;
    }
  }
  ResourceAmounts shared;
  for (const auto& [resource, by_amount] : offers) {
    int64_t with = 0;
    for (const auto& [amount, count] : by_amount) with += count;
    if (with > all / 2) shared[resource] = SharedAmount(by_amount, IsDevice(names.name(resource)));
  }
  return shared;
}

bool IsLeaving(const ClusterState& cluster, Slot slot, const StartupTaints& names) {
  return cluster.traits(slot).deleted_s.has_value() || LeavesByTaints(cluster.node_shape(slot), names);
}

std::vector<Slot> ExamplesOf(const ClusterState& cluster, const GroupNodes& group,
                             const StartupTaints& startup_taints) {
  return ChooseExamples(cluster, group, SortByState(cluster, group, startup_taints).healthy).nodes;
}

std::optional<NodeModel> ModelOfNewNode(const ClusterState& cluster, const GroupNodes& group,
                                        const StartupTaints& startup_taints, const ResourceNames& names) {
  if (group.stated == nullptr && group.nodes.empty()) return std::nullopt;
  NodesByState sorted = SortByState(cluster, group, startup_taints);
  const auto [nodes, alike, healthy] = ChooseExamples(cluster, group, std::move(sorted.healthy));
  const auto shapes_of = [&, &nodes = nodes, &alike = alike](const std::vector<Slot>& of) {
    return of == nodes ? alike : ByShape(cluster, of);
  };
  const ResourceAmounts shown = SharedAmounts(AllocatableOf(alike), cluster.resource_names());
  NodeModel model;
  NodeShape& shape = model.shape;
  if (group.stated == nullptr) {
    const std::vector<Slot>& started = healthy ? sorted.started : nodes;
    const bool single = nodes.size() == 1 && started.size() == 1;
    model.source = single ? ModelSource::kSingle : ModelSource::kShared;
    ShareMarks(alike, shapes_of(started), startup_taints, &shape);
    if (single) DropLabelsOf(cluster.name(nodes.front()), &shape.labels);
    shape.allocatable = shown;
  } else {
    shape = WithoutPassingTaints(*group.stated, startup_taints);
    shape.allocatable = CorrectedAmounts(group.stated->allocatable, shown, healthy, names);
  }
  AddCloudLabels(alike, &shape.labels);
  if (sorted.staying.empty()) sorted.staying.assign(group.nodes.begin(), group.nodes.end());
  AddZoneLabels(shapes_of(sorted.staying), group.stated != nullptr, &shape.labels, &model.zones);
  model.nodes = static_cast<int64_t>(nodes.size());
  if (shape.declared_features.empty()) {
    shape.declared_features = SharedBy(alike, [](const NodeShape& of) { return of.declared_features; });
  }
  if (shape.unknown_field.empty()) {
    const std::vector<std::string> fields = SharedBy(alike, [](const NodeShape& of) {
      return of.unknown_field.empty() ? std::vector<std::string>() : std::vector{of.unknown_field};
    });
    if (!fields.empty()) shape.unknown_field = fields.front();
  }
  if (!nodes.empty()) shape.csi_node = TypicalCsiNode(cluster, nodes);
  model.static_pods = SharedStaticPods(cluster, nodes);
  shape = CompleteNodeShape(std::move(shape), names);
  return model;
}

}  // namespace loadline
