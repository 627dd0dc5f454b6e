// Nodes as plans see them: without what comes and goes at the start and the end of a node's life.
#ifndef LOADLINE_CORE_LOOP_PLANNED_NODES_H_
#define LOADLINE_CORE_LOOP_PLANNED_NODES_H_

#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/loop/loop_observation.h"

namespace loadline {

// Whether a taint goes when a node has started, under the names that Cluster Autoscaler knows.
bool IsStartupTaint(absl::string_view key);

// A node that has not started takes no pods: it counts as one that is on its way.
NodeShape WithoutPlace(const NodeShape& node, const ResourceNames& names);

// A node whose removal was abandoned is planned as if that had not begun: without taint and cordon of ours,
// and with the soft taint that says since when it is not needed.
NodeShape WithoutMark(const NodeShape& node, const NodeMark& mark, const ResourceNames& names);

// A node as it was when it joined: without what came to it since.
NodeShape LikeNew(const NodeShape& node, const ResourceNames& names);

// What shows best what new nodes of a group are like.
struct NodeExample {
  Slot slot{-1};
  bool good = false;  // it is ready, takes pods and has all devices: better than what the cloud says
};

// The best of the nodes of a group: with all devices before others, then those that pods go to, then the
// first by name. `lacking`: nodes without all devices of the group, sorted. nullopt: there is no node.
std::optional<NodeExample> BestExample(const ClusterState& cluster, std::span<const Slot> nodes,
                                       std::span<const Slot> lacking);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLANNED_NODES_H_
