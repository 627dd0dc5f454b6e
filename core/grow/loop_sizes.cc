#include "core/grow/loop_sizes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/being_deleted.h"
#include "core/expand/node_limits.h"
#include "core/size/new_node.h"

namespace loadline {
namespace {

// Keeps the nodes that count, and takes off the target those that do not although the cloud holds them.
void KeepOwnNodes(const NodeGroup& group, const GroupsOfNodes& group_of,
                  const absl::flat_hash_set<Slot>& deleting, int64_t registered, LoopSizing* sizing) {
  GatheredGroup& gathered = sizing->gathered;
  std::vector<GroupNode> nodes;
  std::vector<Slot> slots;
  for (size_t i = 0; i < gathered.slots.size(); ++i) {
    const Slot slot = gathered.slots[i];
    if (group_of[slot] != sizing->group || deleting.contains(slot)) continue;
    nodes.push_back(std::move(gathered.facts.nodes[i]));
    slots.push_back(slot);
  }
  const int64_t others = registered - static_cast<int64_t>(slots.size());
  gathered.facts.cloud_target = std::max<int64_t>(0, group.target - others);
  sizing->of.options.cloud_min = group.min_nodes;
  sizing->of.options.cloud_max = std::max<int64_t>(0, group.max_nodes - others);
  gathered.facts.nodes = std::move(nodes);
  gathered.slots = std::move(slots);
}

}  // namespace

absl::Status GatherSizes(LoopProblem* problem, Snapshot* snapshot, WorkBudget* budget) {
  if (problem->sized.empty()) return absl::OkStatus();
  const FitOptions& fit = problem->scale_down.fit;
  std::vector<SizedGroup> groups;
  for (const LoopSizing& sizing : problem->sized) {
    SizedGroup& group = groups.emplace_back(sizing.of);
    const NodeGroup& of = problem->groups[sizing.group];
    if (of.model.has_value()) {
      group.new_node = of.model->shape;
      for (const PodShape& pod : of.model->static_pods) {
        const CpuMemory room = {pod.requests.Get(kCpu), pod.requests.Get(kMemory)};
        group.new_node_daemons = Plus(group.new_node_daemons, room);
      }
    }
    group.cached_node = sizing.state.cached_node;
  }
  MeasureDaemons(snapshot, fit, problem->daemons, groups, budget);
  if (problem->size_pods.empty()) {
    for (const PendingPods& pods : problem->pending)
      problem->size_pods.push_back({pods.pod.shape, pods.count});
  }
  absl::StatusOr<std::vector<GatheredGroup>> gathered =
      GatherFacts(*problem->drain.cluster, groups, problem->size_pods, problem->drain.now_s * 1000);
  if (!gathered.ok()) return gathered.status();
  FindStarving(snapshot, fit, groups, problem->size_pods, problem->names, budget, *gathered);
  const std::vector<Slot> being_deleted =
      NodesBeingDeleted(*problem->drain.cluster, problem->deleting, problem->drain.now_s);
  const absl::flat_hash_set<Slot> deleting(being_deleted.begin(), being_deleted.end());
  const CountsOfGroups counts = CountNodes(problem->drain, problem->groups);
  for (size_t i = 0; i < groups.size(); ++i) {
    LoopSizing& sizing = problem->sized[i];
    sizing.gathered = std::move((*gathered)[i]);
    KeepOwnNodes(problem->groups[sizing.group], problem->drain.group_of, deleting,
                 counts[sizing.group].registered, &sizing);
  }
  return absl::OkStatus();
}

std::vector<SizeDecision> DecideSizes(std::span<const LoopSizing> sized, bool grows, int64_t now_ms,
                                      const GrowthLedger& ledger) {
  std::vector<SizeDecision> decisions;
  const LoopFacts& facts = *ledger.facts;
  ResourceRoom room = ledger.room;
  NodeLimit left = facts.max_new_nodes;
  for (const LoopSizing& sizing : sized) {
    int64_t most = std::max<int64_t>(0, kMostUpcomingNodes - ledger.counts[sizing.group].upcoming);
    most = std::min(most, left.value_or(most));
    most = std::min(most, ledger.MostNodesOf(sizing.group, room).value_or(most));
    if (!grows || !facts.groups[sizing.group].blocked_reason.empty()) most = 0;
    SizeOptions options = sizing.of.options;
    options.cloud_max = std::min(options.cloud_max, *sizing.gathered.facts.cloud_target + most);
    decisions.push_back(SizeGroup(options, sizing.gathered.facts, sizing.state, now_ms));
    if (sizing.dry_run) continue;
    const int64_t asked = decisions.back().ask_cloud;
    left = LimitLeft(left, asked);
    if (std::optional<CountedNode> offer = facts.offers[sizing.group]) {
      offer->group.reset();
      room.Take(*offer, asked);
    }
  }
  return decisions;
}

void GrowForUtilization(std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
                        GrowthLedger* ledger) {
  for (size_t i = 0; i < sized.size(); ++i) {
    if (sizes[i].ask_cloud == 0 || sized[i].dry_run) continue;
    ledger->counts[sized[i].group].upcoming += sizes[i].ask_cloud;
    ledger->Of(sized[i].group).for_utilization = sizes[i].ask_cloud;
  }
}

std::vector<Slot> NodesOfSizes(std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
                               std::vector<size_t> SizeDecision::*nodes) {
  std::vector<Slot> slots;
  for (size_t i = 0; i < sized.size(); ++i) {
    if (sized[i].dry_run) continue;
    for (const size_t node : sizes[i].*nodes) slots.push_back(sized[i].gathered.slots[node]);
  }
  return slots;
}

std::vector<NodeIndex> Untaint(std::span<const Slot> slots, const ClusterState& cluster, Snapshot* snapshot) {
  std::vector<NodeIndex> former;
  for (const Slot slot : slots) {
    const NodeIndex node = *snapshot->FindSlot(slot);
    const NodeShape& shape = snapshot->node_shape(node);
    std::vector<Taint> taints = shape.taints;
    std::erase_if(taints, [](const Taint& taint) { return taint.key == kRemovalTaint; });
    NewNode without{snapshot->name(node), Retainted(shape, std::move(taints), shape.unschedulable),
                    cluster.hostname(slot), slot};
    const std::span<const SnapshotPod> there = snapshot->pods(node);
    const std::vector<SnapshotPod> pods(there.begin(), there.end());
    snapshot->RemoveNode(node);
    const NodeIndex added = snapshot->AddNode(std::move(without));
    for (const SnapshotPod& pod : pods) snapshot->PlacePod(added, pod.shape, pod.name, pod.uid);
    former.push_back(node);
  }
  return former;
}

void HoldBackTaints(std::span<const LoopSizing> sized, LoopPlan* plan) {
  const bool considered =
      plan->no_scale_down == NoScaleDown::kConsidered && plan->scale_down.brake == DrainBrake::kNone;
  absl::flat_hash_set<Slot> destinations;
  for (const DrainRemoval& removal : plan->scale_down.remove) {
    if (!removal.start) continue;
    for (const DrainMove& move : removal.moves()) destinations.insert(move.to);
  }
  for (size_t i = 0; i < sized.size(); ++i) {
    if (sized[i].dry_run) continue;
    SizeDecision& size = plan->sizes[i];
    if (!considered) {
      size.taint.clear();
      size.taint_unhealthy.clear();
      size.remove.clear();
    }
    std::erase_if(size.taint,
                  [&](size_t node) { return destinations.contains(sized[i].gathered.slots[node]); });
  }
}

}  // namespace loadline
