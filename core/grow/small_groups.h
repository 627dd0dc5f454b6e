// Groups whose new nodes are too small for all pods of DaemonSets: --force-ds of Cluster Autoscaler.
#ifndef LOADLINE_CORE_GROW_SMALL_GROUPS_H_
#define LOADLINE_CORE_GROW_SMALL_GROUPS_H_

#include <string>

#include "core/base/strong_vector.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Finds the groups of which a new node has no room for one of LoopProblem::daemons beside those before it,
// although nothing but room keeps it off. These groups do not grow: NodeGroup::blocked_reason says why,
// unless something else blocks them already.
//
// Returns the reasons, by group; empty where it may grow. Takes at most a tenth of the work that is left:
// groups for which that does not suffice may grow in this loop. Cost: O(groups * daemons) judgements.
// Source: the flag force-ds, with which Cluster Autoscaler puts all suitable pods on the node by which it
// plans: where they exceed it, nothing else fits.
StrongVector<GroupIndex, std::string> HoldSmallGroups(Snapshot* snapshot, WorkBudget* budget,
                                                      LoopProblem* problem);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_SMALL_GROUPS_H_
