#include "core/loop/downscale_order.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/cluster/node_annotations.h"
#include "core/cluster/pod_traits.h"
#include "core/drain/node_load.h"

namespace loadline {
namespace {

struct NodeToEmpty {
  Slot slot;
  int64_t load = 0;    // in millionths
  int64_t number = 0;  // those with lower ones go first; 0: it has none
};

bool RunsReplicas(const ClusterState& cluster, Slot slot) {
  const std::span<const NodePods::Pod> pods = cluster.pods(slot).pods();
  return std::any_of(pods.begin(), pods.end(), [&](const NodePods::Pod& pod) {
    const std::optional<PodOwner>& owner = TraitsOf(cluster.pod_shapes()[pod.shape]).owner;
    return owner.has_value() && (owner->kind == "ReplicaSet" || owner->kind == "ReplicationController");
  });
}

// Nodes that moves bring, fill or have filled are to be full.
absl::flat_hash_set<uint64_t> FilledByMoves(const ReplacementPlan& plan) {
  absl::flat_hash_set<uint64_t> filled;
  for (const auto& [node, since_ms] : plan.resting_since_ms) filled.insert(node);
  for (const MoveUnderWay& move : plan.moves) {
    filled.insert(move.came.begin(), move.came.end());
    filled.insert(move.onto.begin(), move.onto.end());
  }
  return filled;
}

// Nodes that may go, the emptiest first; of each group as many as it has above its minimum.
std::vector<NodeToEmpty> NodesByLoad(const GrowthLedger& ledger, const GroupsOfNodes& group_of,
                                     const Snapshot& snapshot, const ReplacementPlan& plan) {
  const LoopFacts& facts = *ledger.facts;
  const ClusterState& cluster = facts.cluster;
  const absl::flat_hash_set<uint64_t> filled = FilledByMoves(plan);
  std::vector<NodeToEmpty> nodes;
  for (const auto [slot, group] : group_of) {
    if (!cluster.Occupied(slot) || facts.leaving.contains(slot)) continue;
    const NodeGroup& of = facts.groups[group];
    if (of.atomic || of.sized || DeletionForbidden(cluster.traits(slot))) continue;
    const std::optional<NodeIndex> at = snapshot.FindSlot(slot);
    if (!at.has_value() || !RunsReplicas(cluster, slot)) continue;
    if (filled.contains(KeyOfNode(cluster, slot))) continue;
    nodes.push_back({slot, LoadOf(snapshot, *at)});
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const NodeToEmpty& a, const NodeToEmpty& b) { return a.load < b.load; });
  StrongVector<GroupIndex, int64_t> may_go;
  for (const GroupIndex group : facts.groups.indices())
    may_go.push_back(ledger.counts[group].registered - facts.groups[group].min_nodes);
  std::erase_if(nodes, [&](const NodeToEmpty& node) { return --may_go[*group_of[node.slot]] < 0; });
  if (nodes.size() > kMostNodesToEmpty) nodes.resize(kMostNodesToEmpty);
  return nodes;
}

// Returns whether half of the first quarter are among the emptiest quarter, or little fuller. `by_load` and
// `by_number` have the same nodes.
bool IsStillRight(const std::vector<NodeToEmpty>& by_load, const std::vector<NodeToEmpty>& by_number) {
  // Chosen, in millionths: a tenth of a node is not worth new numbers.
  constexpr int64_t kLittleFuller = 100'000;
  const size_t quarter = (by_number.size() + 3) / 4;
  const int64_t most = by_load[quarter - 1].load + kLittleFuller;
  const int64_t right =
      std::count_if(by_number.begin(), by_number.begin() + static_cast<std::ptrdiff_t>(quarter),
                    [most](const NodeToEmpty& node) { return node.load <= most; });
  return 2 * right >= static_cast<int64_t>(quarter);
}

// New nodes come behind those that have a number.
void GiveNumbers(int64_t last, std::vector<NodeToEmpty>* nodes) {
  for (NodeToEmpty& node : *nodes) node.number = node.number > 0 ? node.number : ++last;
  std::sort(nodes->begin(), nodes->end(),
            [](const NodeToEmpty& a, const NodeToEmpty& b) { return a.number < b.number; });
}

}  // namespace

void ChooseNodesToEmpty(const absl::btree_map<uint64_t, int64_t>& numbers, const GroupsOfNodes& group_of,
                        const GrowthLedger& ledger, const Snapshot& snapshot, LoopPlan* plan) {
  const std::vector<NodeToEmpty> by_load = NodesByLoad(ledger, group_of, snapshot, plan->replacement);
  if (by_load.empty()) return;
  std::vector<NodeToEmpty> nodes = by_load;
  int64_t last = 0;
  for (NodeToEmpty& node : nodes) {
    const auto known = numbers.find(KeyOfNode(ledger.facts->cluster, node.slot));
    if (known != numbers.end()) node.number = known->second;
    last = std::max(last, node.number);
  }
  const bool comes = !ledger.growth.empty() || plan->batch_wait_ms.has_value() || ledger.AnyComes();
  if (comes) {
    std::erase_if(nodes, [](const NodeToEmpty& node) { return node.number == 0; });
  }
  GiveNumbers(last, &nodes);
  const bool used_up = !nodes.empty() && nodes.back().number > kMostDownscaleNumber;
  if (!comes && (used_up || !IsStillRight(by_load, nodes))) {
    nodes = by_load;
    GiveNumbers(0, &nodes);
  }
  for (const NodeToEmpty& node : nodes)
    plan->deletion_costs.push_back({node.slot, static_cast<int32_t>(kLowestDeletionCost + node.number)});
}

void NoteDownscaleOrder(const LoopPlan& plan, const ClusterState& cluster, LoopMemory* memory) {
  memory->downscale_order.clear();
  for (const NodeDeletionCost& node : plan.deletion_costs)
    memory->downscale_order[KeyOfNode(cluster, node.slot)] = node.cost - kLowestDeletionCost;
}

}  // namespace loadline
