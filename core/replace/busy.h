// Finds the groups and nodes that a new move leaves alone because something else is in progress there.
#ifndef LOADLINE_CORE_REPLACE_BUSY_H_
#define LOADLINE_CORE_REPLACE_BUSY_H_

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/growth_ledger.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Pods for which no group grows keep moves back for so long after the first of them arrived. Chosen: Cluster
// Autoscaler's --max-node-provision-time, after which no node that was ordered for them is awaited any more.
inline constexpr int64_t kLongestWantedMs = 15 * 60 * 1'000;

// The groups and nodes that are not at rest.
struct BusyObjects {
  // Groups that grow, that have upcoming nodes or take nodes back, and groups whose new nodes suit pods that
  // wait for a node that does not exist yet: these pods get whatever becomes free there.
  StrongVector<GroupIndex, bool> groups;
  // Groups of which a node is being deleted.
  StrongVector<GroupIndex, bool> shrinking;
  // Nodes that are being deleted.
  absl::flat_hash_set<Slot> leaving;
  // Nodes that pods of these nodes are expected on. (Placeholders keep the room of other pods that wait.)
  absl::flat_hash_set<Slot> expecting;

  // Returns whether any node is being added or deleted, or wanted.
  bool any() const;
  // Returns whether moves may add nodes to the group.
  bool MayProvide(GroupIndex group) const { return !groups[group] && !shrinking[group]; }
};

// Finds all but the groups that waiting pods need. Cost: O(nodes).
BusyObjects FindBusyObjects(const DrainProblem& drain, const GrowthLedger& ledger, const LoopPlan& plan,
                            const Snapshot& snapshot);

// Marks the groups whose new nodes suit pods that wait for a node that does not exist yet. Pods that have
// waited for kLongestWantedMs and for which no group grows mark none, unless the plan of growth was cut
// short: what a move frees may serve them, and it would otherwise wait as long as they do. Nobody knows about
// a group without a model. If the budget ends, no group is known to be at rest. The snapshot is as before
// when the call returns. Cost: O(kinds of pods without a node * groups).
void MarkWanted(const LoopProblem& problem, const LoopPlan& plan, Snapshot* snapshot, WorkBudget* budget,
                BusyObjects* busy);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_BUSY_H_
