// Nodes that have registered and have not started yet: what they will be once they have.
#ifndef LOADLINE_CORE_GROW_UPCOMING_NODES_H_
#define LOADLINE_CORE_GROW_UPCOMING_NODES_H_

#include <cstdint>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/cluster/node_model.h"
#include "core/cluster/snapshot.h"
#include "core/cluster/startup_taints.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// Nodes that start, and will be alike.
struct StartingNodes {
  NodeModel model;
  int64_t nodes = 0;
};

// The most kinds of nodes that start in one group. Chosen: others count as new nodes of the group.
inline constexpr size_t kMostStartingKinds = 64;

// Returns the nodes of each group that start and are not as its model says, in the order of slots. A node
// shows its own labels, lasting taints and amounts, and the pods that are bound to it, but for those of
// DaemonSets, which each node gets. Labels and resources that it does not have yet come as the model of its
// group has them: controllers and drivers add them. `starting`: the groups of nodes that start.
// Cost: O(nodes that start * (labels + resources + pods)).
StrongVector<GroupIndex, std::vector<StartingNodes>> FindStartingNodes(const ClusterState& cluster,
                                                                       const GroupsOfNodes& starting,
                                                                       NodeGroupSpan groups,
                                                                       const StartupTaints& startup_taints,
                                                                       const ResourceNames& names);

// The positions of upcoming nodes in a snapshot, and what is expected of them.
struct UpcomingNodes {
  bool complete = true;  // all of them are there
  NodeIndex first{0};
  std::vector<NodeIndex> untainted;  // the nodes that stand before it under new numbers
  std::vector<GroupIndex> group;     // by number from `first` on
  std::vector<EmptyNode> room;
  std::vector<char> used;  // whether pods are expected there

  void Add(GroupIndex of, const EmptyNode& left, bool is_used) {
    group.push_back(of);
    room.push_back(left);
    used.push_back(is_used ? 1 : 0);
  }
};

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_UPCOMING_NODES_H_
