// The first round of a plan: nodes of the former one.
#ifndef LOADLINE_CORE_DRAIN_KEEP_FORMERS_H_
#define LOADLINE_CORE_DRAIN_KEEP_FORMERS_H_

#include <vector>

#include "core/drain/drain_call.h"
#include "core/drain/drain_memory.h"
#include "core/drain/planned_node.h"
#include "core/drain/trial_follower.h"

namespace loadline {

// Keeps nodes of the former plan in it, in its order, where each of their pods still has the place that was
// planned; they are before any node that is new. Those that the work does not suffice for keep their timers.
// `same_rules`: rules and objects are those of the last call, and there are no budgets, so that pods which
// have not changed are as movable as before. Returns the others, which are tried again as candidates.
// Cost: O(nodes of the former plan), O(pods) of those whose moves are not applied any more.
std::vector<FormerNode> KeepFormers(std::vector<FormerEntry> formers, bool same_rules, DrainCall* call,
                                    TrialFollower* follower, DrainMemory* memory);

// With a brake on, no node is in the plan, and timers go on. They start `anew` where the cluster is not
// healthy, as in Cluster Autoscaler.
void KeepTimers(std::vector<FormerEntry> formers, bool anew, const DrainCall& call,
                const TrialFollower& follower, DrainMemory* memory);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_KEEP_FORMERS_H_
