// Decides which removals continue by themselves, and what happens to those that nobody continues.
#ifndef LOADLINE_CORE_OBSERVE_HAND_OVER_H_
#define LOADLINE_CORE_OBSERVE_HAND_OVER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/cluster_state.h"
#include "core/drain/drain_question.h"
#include "core/observe/loop_memory.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// The time for which a node whose removal an earlier process began may wait for a plan that removes it.
// Chosen: some loops, so that a plan of the new process decides.
inline constexpr int64_t kHandOverMs = 60'000;

// The state of nodes that carry a mark, or whose deletion the cloud has acknowledged. Slots in order.
struct MarkedNodes {
  // The cloud was asked to delete them, and has not made it plain that it does not. A deletion that it has
  // acknowledged lasts until the node is gone.
  std::vector<Slot> going;
  // Their removal has begun and nobody continues it: they are planned as if it had not.
  std::vector<NodeMark> abandoned;
  // Nodes of which the cloud said some time ago that it deletes them, and which it still lists. They hold no
  // place of the deletions and drains that may be under way: others go on.
  std::vector<NodeMark> stuck;
};

// `listed`: MachinesOfMarks().
// `patience_ms`: how long the cloud may take from being asked to delete a node to saying that it does.
MarkedNodes JudgeMarks(const ClusterState& cluster, const LoopObservation& seen,
                       const absl::flat_hash_map<Slot, MachineState>& listed, int64_t patience_ms,
                       int64_t now_ms, const LoopMemory& memory);

// Takes note of acknowledged deletions, and forgets those of nodes that are gone.
void NoteAcknowledged(const ClusterState& cluster, std::span<const std::string> uids, LoopMemory* memory);

// The abandoned nodes to give back now: at once those that the plan does not remove at all, the others when
// it has not come to it within kHandOverMs. `plan`: of the same loop; nullptr: nobody plans drains.
std::vector<Slot> GiveBack(const ClusterState& cluster, std::span<const NodeMark> abandoned,
                           const DrainPlan* plan, int64_t now_ms, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_HAND_OVER_H_
