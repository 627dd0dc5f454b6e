// Chooses the nodes that get or lose the soft taint that asks schedulers to spare nodes which may be removed.
#ifndef LOADLINE_CORE_OBSERVE_SOFT_TAINTS_H_
#define LOADLINE_CORE_OBSERVE_SOFT_TAINTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/cluster/cluster_state.h"
#include "core/drain/drain_question.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// A soft taint to write to a node, or to remove from it.
struct SoftTaintChange {
  Slot slot{-1};
  std::optional<int64_t> since_s;  // since when the node is not needed; nullopt: it loses its taint
  friend bool operator==(const SoftTaintChange&, const SoftTaintChange&) = default;
};

// Brings soft taints (kDeletionCandidateTaint) into line with a plan: nodes that the plan will remove, and
// those behind budgets, carry one, all others none. The time of a taint is not renewed.
//
// Order: first nodes that lose theirs, then those that get one, both by name. Nodes that were tried before
// and are still to change come after all others, and take turns: those that cannot be written keep no others
// waiting. `left_alone`: nodes that go, or whose removal somebody has begun; those that carry
// kToBeDeletedTaint are left alone as well. `most`: changes in one loop. Forgets who was tried of all that
// are not to change any more. Cost: O(nodes + changes log changes).
std::vector<SoftTaintChange> SoftTaintChanges(const ClusterState& cluster, const DrainPlan& plan,
                                              const absl::flat_hash_set<Slot>& left_alone, int64_t most,
                                              LoopMemory* memory);

// Takes note of the nodes, by UID, whose soft taint was written since the last loop, or could not be.
void NoteSoftTaintsTried(std::span<const std::string> uids, int64_t now_ms, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_SOFT_TAINTS_H_
