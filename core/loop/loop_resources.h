// How far groups may grow under the maxima of the cluster.
#ifndef LOADLINE_CORE_LOOP_LOOP_RESOURCES_H_
#define LOADLINE_CORE_LOOP_LOOP_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/loop/loop_growth.h"
#include "core/loop/plan_loop.h"
#include "core/loop/resource_limit.h"

namespace loadline {

// Returns what one node counts as against the maxima of the cluster; one of the group, which has a template.
CountedNode OfferOfNode(const LoopProblem& problem, const NodeShape& node);
CountedNode OfferOfGroup(const LoopProblem& problem, GroupIndex group);

// Returns what present and upcoming nodes leave of the maxima. An upcoming node whose group has no template
// counts for nothing: nobody knows what it offers. Cost: O(nodes) where there is a limit.
ResourceRoom RoomOfCluster(const LoopProblem& problem, const CountsOfGroups& counts);

// Returns what all that the plan grows by leaves of LoopPlan::room.
ResourceRoom RoomLeft(const LoopProblem& problem, const LoopPlan& plan);

// Returns the number of nodes of the group that the remaining amounts allow; nullopt: there is no limit, or
// no template.
NodeLimit MostNodesOf(const LoopProblem& problem, const ResourceRoom& left, GroupIndex group);

// New nodes of groups.
using NodesOfGroups = absl::btree_map<GroupIndex, int64_t>;

// Returns what new nodes cost, US dollars per hour.
double PriceOf(const LoopProblem& problem, const NodesOfGroups& growth);

// Returns whether the plan may grow by all of these nodes more.
bool PermitsTogether(const LoopProblem& problem, const LoopPlan& plan, const NodesOfGroups& growth);

// Nodes that each group may win at most so that all together stay within the maxima: what may be of `growth`,
// and then what is left for others, each in the order of the groups. A group that has all of its nodes or
// none is behind the others of `growth`, with all that `growth` has of it or none.
StrongVector<GroupIndex, NodeLimit> CapsTogether(const LoopProblem& problem, const CountsOfGroups& counts,
                                                 const LoopPlan& plan, const NodesOfGroups& growth);

// The groups that might grow and of which the maxima permit no further node, in their order.
std::vector<GroupAtMaximum> GroupsAtMaximum(const LoopProblem& problem, const LoopPlan& plan);

// Returns a sentence for each maximum that selects nodes of a group but not the template of its new nodes.
// Cost: O(maxima with a selector * nodes).
std::vector<std::string> WarningsOfMaxima(const LoopProblem& problem);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_LOOP_RESOURCES_H_
