// The nodes of a cluster as its maxima count them.
#ifndef LOADLINE_CORE_GROW_LOOP_RESOURCES_H_
#define LOADLINE_CORE_GROW_LOOP_RESOURCES_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/node_group.h"
#include "core/drain/drain_question.h"
#include "core/grow/resource_limit.h"

namespace loadline {

// By group: one new node; nullopt: it has no template.
using OffersOfGroups = StrongVector<GroupIndex, std::optional<CountedNode>>;
// The offers refer to labels of `groups`.
OffersOfGroups OffersOf(NodeGroupSpan groups, const ResourceNames& names,
                        std::span<const std::string> gpu_labels);

// Returns what the nodes that are there leave of the maxima. Cost: O(nodes) where there is a limit.
ResourceRoom RoomBesideNodes(std::span<const NodeMaximum> maxima, const DrainProblem& drain,
                             const OffersOfGroups& offers, const ResourceNames& names,
                             std::span<const std::string> gpu_labels);

// Returns a sentence for each maximum that selects nodes of a group but not the template of its new nodes.
// Cost: O(maxima with a selector * nodes).
std::vector<std::string> WarningsOfMaxima(std::span<const NodeMaximum> maxima, NodeGroupSpan groups,
                                          const DrainProblem& drain);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_LOOP_RESOURCES_H_
