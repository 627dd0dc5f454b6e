// The answers of filters about nodes that a group has, and about one that it does not have yet.
#ifndef LOADLINE_CORE_SIZE_NEW_NODE_H_
#define LOADLINE_CORE_SIZE_NEW_NODE_H_

#include <span>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/fit/node_filter.h"
#include "core/size/group_facts.h"

namespace loadline {

// Both leave the snapshot as it was. Not thread-safe.

// Adds to SizedGroup::new_node_daemons what `daemons` take of a node like SizedGroup::new_node: it takes
// those that fit it by all filters, in their order. Cost: O(groups * daemons) judgements, until the budget
// ends: later groups then get nothing.
void MeasureDaemons(Snapshot* snapshot, const FitOptions& options, std::span<const IncomingPod> daemons,
                    std::span<SizedGroup> groups, WorkBudget* budget);

// Tells of each group in kDefault with scale_on_starve whether one of GatheredGroup::may_starve fits by all
// filters on no untainted node of it, and would on a new one like the newest of these, with the same
// DaemonSet and static pods: GroupFacts::starved. Placeholders of slack give way. `names`: those of
// `waiting`. Cost: O(pods that may starve * nodes) judgements at most, until the budget ends:
// starving_unknown.
void FindStarving(Snapshot* snapshot, const FitOptions& options, std::span<const SizedGroup> groups,
                  std::span<const WaitingPods> waiting, const ResourceNames& names, WorkBudget* budget,
                  std::span<GatheredGroup> gathered);

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_NEW_NODE_H_
