#include "core/observe/soft_taints.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/cluster/snapshot.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"

namespace loadline {
namespace {

// The smallest is first.
struct DueChange {
  int64_t tried_ms = 0;  // 0: never
  bool gets = false;
  absl::string_view name;
  SoftTaintChange change;
  friend bool operator<(const DueChange& a, const DueChange& b) {
    return std::tie(a.tried_ms, a.gets, a.name) < std::tie(b.tried_ms, b.gets, b.name);
  }
};

bool Carries(const ClusterState& cluster, Slot slot, absl::string_view key) {
  const std::vector<Taint>& taints = cluster.node_shape(slot).taints;
  return std::any_of(taints.begin(), taints.end(), [&](const Taint& taint) { return taint.key == key; });
}

absl::flat_hash_map<Slot, int64_t> UnneededSince(const DrainPlan& plan) {
  absl::flat_hash_map<Slot, int64_t> since_s;
  for (const DrainRemoval& removal : plan.remove) since_s.emplace(removal.slot, removal.since_s);
  for (const TimedNode& node : plan.behind_budgets) since_s.emplace(node.slot, node.since_s);
  return since_s;
}

}  // namespace

std::vector<SoftTaintChange> SoftTaintChanges(const ClusterState& cluster, const DrainPlan& plan,
                                              const absl::flat_hash_set<Slot>& left_alone, int64_t most,
                                              LoopMemory* memory) {
  const absl::flat_hash_map<Slot, int64_t> unneeded_since_s = UnneededSince(plan);
  absl::btree_map<uint64_t, int64_t> tried_ms;
  std::vector<DueChange> due;
  for (int32_t i = 0; i < cluster.slot_end() && most > 0; ++i) {
    const Slot slot{i};
    if (!cluster.Occupied(slot) || left_alone.contains(slot)) continue;
    const auto unneeded = unneeded_since_s.find(slot);
    const bool is_unneeded = unneeded != unneeded_since_s.end();
    if (Carries(cluster, slot, kDeletionCandidateTaint) == is_unneeded) continue;
    if (Carries(cluster, slot, kToBeDeletedTaint)) continue;
    DueChange& change = due.emplace_back();
    change.gets = is_unneeded;
    change.name = cluster.name(slot);
    change.change.slot = slot;
    if (is_unneeded) change.change.since_s = unneeded->second;
    const auto tried = memory->soft_taint_tried_ms.find(KeyOfNode(cluster, slot));
    if (tried == memory->soft_taint_tried_ms.end()) continue;
    change.tried_ms = tried->second;
    tried_ms.insert(*tried);
  }
  memory->soft_taint_tried_ms = std::move(tried_ms);
  std::sort(due.begin(), due.end());
  if (static_cast<int64_t>(due.size()) > most) due.resize(static_cast<size_t>(most));
  std::vector<SoftTaintChange> changes;
  for (const DueChange& change : due) changes.push_back(change.change);
  return changes;
}

void NoteSoftTaintsTried(std::span<const std::string> uids, int64_t now_ms, LoopMemory* memory) {
  for (const std::string& uid : uids) memory->soft_taint_tried_ms[FleetKey(uid)] = now_ms;
}

}  // namespace loadline
