// Chooses the nodes that should become empty first when workloads shrink by themselves.
#ifndef LOADLINE_CORE_LOOP_DOWNSCALE_ORDER_H_
#define LOADLINE_CORE_LOOP_DOWNSCALE_ORDER_H_

#include <cstdint>
#include <span>

#include "core/grow/growth_ledger.h"
#include "core/grow/loop_plan.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// The deletion cost of a pod is this plus the number of its node. A ReplicaSet or ReplicationController that
// shrinks deletes pods with a lower cost first (controller.kubernetes.io/pod-deletion-cost). Chosen: below
// the costs that people are likely to state.
inline constexpr int64_t kLowestDeletionCost = -1'000'000'000;
inline constexpr int64_t kMostDownscaleNumber = 1'000'000;

// Orders the nodes that may go and run pods of ReplicaSets, the emptiest first: of each group as many as it
// has above its minimum, and kMostNodesToEmpty in all. Writes LoopPlan::deletion_costs. Then pods that end by
// themselves leave whole nodes empty, which go without an eviction.
//
// Each change is a write for each pod of the node. So a node keeps its number, new ones come behind, and all
// get new ones only when most of the first quarter are not among the emptiest any more. While groups grow or
// nodes are on their way nothing is added. Cost: O(nodes * log + pods of nodes without such pods).
// `numbers`: LoopProblem::downscale_order.
void ChooseNodesToEmpty(const absl::btree_map<uint64_t, int64_t>& numbers, const GroupsOfNodes& group_of,
                        const GrowthLedger& ledger, const Snapshot& snapshot, LoopPlan* plan);

// Takes note of it for the next loop.
void NoteDownscaleOrder(const LoopPlan& plan, const ClusterState& cluster, LoopMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_DOWNSCALE_ORDER_H_
