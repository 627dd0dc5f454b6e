// Groups that are sized by how full they are, within an iteration.
#ifndef LOADLINE_CORE_GROW_LOOP_SIZES_H_
#define LOADLINE_CORE_GROW_LOOP_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/cluster/snapshot.h"
#include "core/grow/growth_ledger.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Fills in what is to be known of the groups that are sized, from the rest of the problem. Nodes that carry
// the labels of a group count where they are nodes of that group at the cloud and are not being deleted. The
// snapshot is that of the cluster, and as before when this returns. Errors and cost: those of GatherFacts(),
// MeasureDaemons() and FindStarving().
absl::Status GatherSizes(LoopProblem* problem, Snapshot* snapshot, WorkBudget* budget);

// Decides each group, in their order: those before take from what all may grow by together, and from what the
// maxima of the cluster leave. Where growth is decided elsewhere (`grows` is false), or the group may not
// grow now, nothing is asked of the cloud.
std::vector<SizeDecision> DecideSizes(std::span<const LoopSizing> sized, bool grows, int64_t now_ms,
                                      const GrowthLedger& ledger);

// Adds the nodes that are asked of the cloud to those on their way, and to the growth.
void GrowForUtilization(std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
                        GrowthLedger* ledger);

// Returns the nodes of one list of each decision that is carried out, such as &SizeDecision::remove.
std::vector<Slot> NodesOfSizes(std::span<const LoopSizing> sized, std::span<const SizeDecision> sizes,
                               std::vector<size_t> SizeDecision::*nodes);

// Takes the taint of nodes that are to go off these nodes. Each gets a new number, behind all others; returns
// their former ones, in this order.
std::vector<NodeIndex> Untaint(std::span<const Slot> slots, const ClusterState& cluster, Snapshot* snapshot);

// Takes out of the plan what is not done: taints and removals where no node may go, and taints
// on nodes that take pods from those that go now.
void HoldBackTaints(std::span<const LoopSizing> sized, LoopPlan* plan);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_SIZES_H_
