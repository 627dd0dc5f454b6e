#include "core/size/group_facts.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/cluster/node_annotations.h"
#include "core/cluster/pod_role.h"
#include "core/cluster/startup_taints.h"
#include "core/size/free_room.h"
#include "core/size/memberships.h"

namespace loadline {
namespace {

absl::Status TooMany(absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " are in more than ", kMostMemberships, " groups in all"));
}

CpuMemory Of(const ResourceAmounts& amounts) { return {amounts.Get(kCpu), amounts.Get(kMemory)}; }

int64_t Milliseconds(int64_t seconds) { return std::clamp<int64_t>(seconds, 0, kMaxAmount / 1000) * 1000; }

// The sums for pods of one shape.
struct ShapeFacts {
  bool known = false;
  bool ignored = false;  // it has finished, or is a placeholder of slack
  bool of_node = false;
  bool partly_requested = false;
  CpuMemory effective, simple;
  Memberships::Range members;
  int64_t bound = 0;  // pods on nodes

  const CpuMemory& Requests(const SizedGroup& group) const { return IsCompat(group) ? simple : effective; }
};

// The sums for the pods of one node.
struct NodeSums {
  CpuMemory daemons;
  int64_t others = 0;     // that are not the node's own
  int64_t uncounted = 0;  // of these, in no group
};

// Answers whether a node of a group has room for a pod when it has nothing but DaemonSet and static pods.
class LargestNodes {
 public:
  void Add(const CpuMemory& allocatable, const CpuMemory& daemons) {
    known_ = true;
    empty_.AddNode(Minus(allocatable, daemons));
  }
  void AddOthers(const NodeShape& node) {
    if (!seen_.insert(&node).second) return;
    for (const auto& [id, amount] : node.allocatable) {
      int64_t& most = most_[id];
      most = std::max(most, amount);
    }
  }
  // Also where nothing is known of any node.
  bool MayTake(const PodShape& pod) {
    if (!known_) return true;
    if (!empty_.Fits(Of(pod.requests))) return false;
    if (seen_.empty()) return true;
    return std::all_of(pod.requests.begin(), pod.requests.end(), [&](const ResourceAmounts::Entry& entry) {
      return entry.value <= most_.Get(entry.id);
    });
  }

 private:
  bool known_ = false;
  FreeRoom empty_;
  absl::flat_hash_set<const NodeShape*> seen_;
  ResourceAmounts most_;  // of resources other than cpu and memory: the most that any node offers
};

class Gatherer {
 public:
  Gatherer(const ClusterState& cluster, std::span<const SizedGroup> groups, int64_t now_ms)
      : cluster_(cluster),
        groups_(groups),
        now_ms_(now_ms),
        memberships_(groups, cluster.objects()),
        gathered_(groups.size()) {}

  absl::StatusOr<std::vector<GatheredGroup>> Gather(std::span<const WaitingPods> waiting) {
    for (size_t i = 0; i < groups_.size(); ++i) {
      gathered_[i].facts.cloud_target = groups_[i].cloud_target;
      const std::optional<NodeShape>& node = groups_[i].new_node;
      if (!node.has_value()) continue;
      const bool subtract = groups_[i].options.subtract_daemons;
      gathered_[i].facts.new_node =
          Minus(Of(node->allocatable), subtract ? groups_[i].new_node_daemons : CpuMemory());
    }
    if (absl::Status status = CountNodes(); !status.ok()) return status;
    for (const ShapeFacts& shape : shapes_) {
      if (shape.bound == 0) continue;
      for (const int32_t group : memberships_.groups(shape.members)) AddDemand(shape, shape.bound, group);
    }
    std::vector<ShapeFacts> waiting_facts;
    for (const WaitingPods& pods : waiting) {
      waiting_facts.push_back(FactsOf(pods.shape));
      if (!memberships_.ok()) return TooMany("shapes of pods");
    }
    for (size_t i = 0; i < groups_.size(); ++i) {
      AddNodes(i);
      if (IsCompat(groups_[i]) && groups_[i].options.scale_on_starve) Starve(i, waiting, waiting_facts);
    }
    for (size_t i = 0; i < waiting.size(); ++i)
      AddWaiting(waiting[i], static_cast<int32_t>(i), waiting_facts[i]);
    return std::move(gathered_);
  }

 private:
  ShapeFacts FactsOf(const PodShape& shape) {
    ShapeFacts facts;
    facts.known = true;
    const PodTraits& traits = TraitsOf(shape);
    facts.of_node = BelongsToNode(shape, cluster_.objects());
    const bool gives_way = facts.of_node ? IsExpendable(traits) : traits.placeholder;
    facts.ignored = shape.finished || gives_way;
    if (facts.ignored) return facts;
    facts.partly_requested = shape.partly_requested;
    facts.effective = Of(shape.requests);
    facts.simple = traits.container_requests.value_or(facts.effective);
    facts.members = memberships_.OfPod(shape);
    return facts;
  }

  ShapeFacts& Shape(int32_t id) {
    const size_t at = static_cast<size_t>(id);
    if (at >= shapes_.size()) shapes_.resize(at + 1);
    if (!shapes_[at].known) shapes_[at] = FactsOf(cluster_.pod_shapes()[id]);
    return shapes_[at];
  }

  // Tells nodes to their groups, sums up their pods, and counts the pods of each shape.
  absl::Status CountNodes() {
    sums_.resize(static_cast<size_t>(cluster_.slot_end()));
    int64_t memberships = 0;
    for (int32_t i = 0; i < cluster_.slot_end(); ++i) {
      const Slot slot{i};
      if (!cluster_.Occupied(slot)) continue;
      NodeSums& sums = sums_[IndexOf(slot)];
      for (const NodePods::Pod& pod : cluster_.pods(slot).pods()) {
        ShapeFacts& shape = Shape(pod.shape);
        if (shape.ignored) continue;
        ++shape.bound;
        if (shape.of_node) {
          sums.daemons = Plus(sums.daemons, shape.effective);
        } else {
          ++sums.others;
          sums.uncounted += shape.members.first == shape.members.second ? 1 : 0;
        }
      }
      const Memberships::Range range = memberships_.OfNode(cluster_.node_shape(slot));
      if (!memberships_.ok()) return TooMany("shapes of pods and nodes");
      memberships += range.second - range.first;
      if (memberships > kMostMemberships) return TooMany("nodes");
      AddSlot(slot, memberships_.groups(range));
    }
    return absl::OkStatus();
  }

  void AddSlot(Slot slot, std::span<const int32_t> groups) {
    for (const int32_t group : groups) {
      GatheredGroup& gathered = gathered_[static_cast<size_t>(group)];
      gathered.slots.push_back(slot);
      gathered.uncounted_pods += sums_[IndexOf(slot)].uncounted;
      if (groups.size() == 1) continue;
      ++gathered.shared_nodes;
      if (gathered.shares_with < 0) gathered.shares_with = groups[0] == group ? groups[1] : groups[0];
    }
  }

  void AddDemand(const ShapeFacts& shape, int64_t count, int32_t group) {
    GatheredGroup& gathered = gathered_[static_cast<size_t>(group)];
    const CpuMemory& requests = shape.Requests(groups_[static_cast<size_t>(group)]);
    gathered.facts.requests = Plus(gathered.facts.requests, Times(requests, count));
    gathered.facts.pods += count;
    if (requests.cpu == 0 || requests.memory == 0 || shape.partly_requested) {
      gathered.pods_without_requests += count;
    }
  }

  void AddWaiting(const WaitingPods& pods, int32_t position, const ShapeFacts& shape) {
    if (pods.waiting == Waiting::kToStart || pods.count == 0) return;
    for (const int32_t group : memberships_.groups(shape.members)) {
      const SizedGroup& sized = groups_[static_cast<size_t>(group)];
      GatheredGroup& gathered = gathered_[static_cast<size_t>(group)];
      if (!IsCompat(sized)) {
        if (pods.waiting == Waiting::kForGate) continue;
        if (!LargestOf(static_cast<size_t>(group)).MayTake(pods.shape)) {
          if (gathered.pods_too_large == 0) gathered.too_large = position;
          gathered.pods_too_large += pods.count;
          continue;
        }
        if (sized.options.scale_on_starve) gathered.may_starve.push_back(position);
      }
      AddDemand(shape, pods.count, group);
      gathered.facts.pending_pods += pods.count;
    }
  }

  LargestNodes& LargestOf(size_t group) {
    const auto [found, fresh] = largest_.try_emplace(group);
    LargestNodes& largest = found->second;
    if (!fresh) return largest;
    const GatheredGroup& gathered = gathered_[group];
    for (size_t i = 0; i < gathered.slots.size(); ++i) {
      largest.Add(gathered.facts.nodes[i].allocatable, gathered.facts.nodes[i].daemons);
      largest.AddOthers(cluster_.node_shape(gathered.slots[i]));
    }
    const SizedGroup& sized = groups_[group];
    if (sized.new_node.has_value()) {
      largest.Add(Of(sized.new_node->allocatable), sized.new_node_daemons);
      largest.AddOthers(*sized.new_node);
    }
    if (sized.cached_node.has_value()) largest.Add(*sized.cached_node, {});
    return largest;
  }

  bool Contains(const Memberships::Range& members, size_t group) const {
    const std::span<const int32_t> groups = memberships_.groups(members);
    return std::binary_search(groups.begin(), groups.end(), static_cast<int32_t>(group));
  }

  // Requests and number of the pods on a node that are demand of the group.
  std::pair<CpuMemory, int64_t> Members(Slot slot, size_t group) {
    std::pair<CpuMemory, int64_t> sum;
    for (const NodePods::Pod& pod : cluster_.pods(slot).pods()) {
      const ShapeFacts& shape = Shape(pod.shape);
      if (shape.ignored || !Contains(shape.members, group)) continue;
      sum.first = Plus(sum.first, shape.Requests(groups_[group]));
      ++sum.second;
    }
    return sum;
  }

  void AddNodes(size_t group) {
    GatheredGroup& gathered = gathered_[group];
    std::sort(gathered.slots.begin(), gathered.slots.end(),
              [&](Slot a, Slot b) { return cluster_.name(a) < cluster_.name(b); });
    gathered.facts.nodes.reserve(gathered.slots.size());
    members_.clear();
    for (const Slot slot : gathered.slots) {
      GroupNode node = Node(slot);
      // Escalator reads no annotation of Cluster Autoscaler.
      node.deletion_forbidden = IsCompat(groups_[group])
                                    ? States(cluster_.traits(slot), NodeAnnotation::kNoDelete)
                                    : DeletionForbidden(cluster_.traits(slot));
      const NodeSums& sums = sums_[IndexOf(slot)];
      node.daemons = sums.daemons;
      node.empty = sums.others == 0;
      if (IsCompat(groups_[group])) {
        const auto [requests, pods] = Members(slot, group);
        node.empty = pods == 0;
        members_.push_back(requests);
      }
      gathered.facts.nodes.push_back(std::move(node));
    }
  }

  GroupNode Node(Slot slot) const {
    const NodeShape& shape = cluster_.node_shape(slot);
    const NodeTraits& traits = cluster_.traits(slot);
    const absl::string_view name = cluster_.name(slot);
    GroupNode node;
    node.name.assign(name.data(), name.size());
    node.allocatable = Of(shape.allocatable);
    node.created_ms = traits.created_s.has_value() ? Milliseconds(*traits.created_s) : now_ms_;
    node.ready = traits.ready;
    bool forced = false, tainted = false;
    for (const Taint& taint : shape.taints) {
      forced |= taint.key == kForceRemovalTaint;
      if (taint.key != kRemovalTaint) continue;
      tainted = true;
      int64_t seconds = 0;
      if (absl::SimpleAtoi(taint.value, &seconds)) node.tainted_ms = Milliseconds(seconds);
    }
    if (tainted) node.node_class = NodeClass::kTainted;
    if (forced) node.node_class = NodeClass::kForceTainted;
    if (shape.unschedulable) node.node_class = NodeClass::kCordoned;
    return node;
  }

  // Compares, as Escalator does, the room that pods leave on the node of the group that was added last with
  // the most that any pod that waits requests of each resource.
  void Starve(size_t group, std::span<const WaitingPods> waiting, std::span<const ShapeFacts> facts) {
    GatheredGroup& gathered = gathered_[group];
    FreeRoom room;
    for (size_t i = 0; i < gathered.slots.size(); ++i) {
      const GroupNode& node = gathered.facts.nodes[i];
      if (node.node_class == NodeClass::kUntainted) room.AddNode(Minus(node.allocatable, members_[i]));
    }
    CpuMemory largest;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].count == 0 || !Contains(facts[i].members, group)) continue;
      largest = Larger(largest, facts[i].Requests(groups_[group]));
    }
    gathered.facts.starved = room.ShippedStarved(largest);
  }

  const ClusterState& cluster_;
  std::span<const SizedGroup> groups_;
  const int64_t now_ms_;
  Memberships memberships_;
  std::vector<GatheredGroup> gathered_;
  std::vector<ShapeFacts> shapes_;                     // by id
  std::vector<NodeSums> sums_;                         // by slot
  absl::flat_hash_map<size_t, LargestNodes> largest_;  // by group
  std::vector<CpuMemory> members_;  // kCompat, by node of the group: requests of its pods there
};

}  // namespace

absl::StatusOr<std::vector<GatheredGroup>> GatherFacts(const ClusterState& cluster,
                                                       std::span<const SizedGroup> groups,
                                                       std::span<const WaitingPods> waiting, int64_t now_ms) {
  return Gatherer(cluster, groups, now_ms).Gather(waiting);
}

}  // namespace loadline
