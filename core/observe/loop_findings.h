// The first step of a loop: what the cloud and the cluster show, and what it means for each node group.
#ifndef LOADLINE_CORE_OBSERVE_LOOP_FINDINGS_H_
#define LOADLINE_CORE_OBSERVE_LOOP_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/expand/node_limits.h"
#include "core/observe/fleet.h"
#include "core/observe/hand_over.h"
#include "core/observe/loop_memory.h"
#include "core/observe/loop_observation.h"
#include "core/observe/planned_nodes.h"

namespace loadline {

// The facts about a group beside FleetGroupView.
struct GroupFindings {
  std::vector<Slot> nodes;  // that have started; none if the rules for their removal are not known
  int64_t ready = 0;        // of those that have started, whether or not they are in `nodes`
  int64_t unready = 0;
  int64_t upcoming = 0;
  std::vector<Slot> going;  // of MarkedNodes::going
  int64_t target = 0;       // of the cloud, without the machines that are given up now
  int64_t room = 0;         // the number of nodes by which it may grow
  std::string held;         // why it may not grow; empty: it may
  // The nodes that show what new nodes will be: those that do not leave, whether or not they have started,
  // and those of them that lack devices of the group; sorted.
  std::vector<Slot> examples;
  std::vector<Slot> lacking;
  // Positions in CloudGroup::machines of those to delete now, and by how many nodes to lower the target.
  std::vector<int32_t> delete_failed;
  std::vector<int32_t> delete_late;
  int64_t take_back = 0;
  int64_t swappable = 0;  // nodes not begun that may be taken back for a cheaper mix
};

// The numbers of all nodes.
struct NodeTotals {
  int64_t all = 0;
  int64_t ready = 0;
  int64_t unready = 0;
  int64_t starting = 0;
};

// The interpretation of a LoopObservation: the state of each group and node.
struct LoopFindings {
  FleetView fleet;  // its positions are those of the input of the look, and of no use here
  StrongVector<GroupIndex, GroupFindings> groups;
  NodeTotals nodes;
  MarkedNodes marked;
  std::vector<Slot> not_started;  // nodes on their way; sorted
  NodeLimit max_new_nodes;        // that all groups together may grow by
  std::string held;               // why no group may grow
  bool nothing_leaves = false;    // it cools down, or nothing is carried out
  std::vector<std::string> warnings;
};

// Takes note of how actions ended, looks at the machines, and judges the groups.
//
// Inputs: as those of LookAtFleet(); slots of the observation are below 2^31.
// Result: see LoopFindings; `memory` is the state at the begin of the loop, and at its end.
// Cost:   O(nodes + machines log machines). The same everywhere; pure but for `memory`.
LoopFindings ObserveLoop(const ClusterState& cluster, const LoopObservation& seen,
                         const LoopOutcomes& outcomes, const ObserveOptions& options, int64_t now_ms,
                         LoopMemory* memory);

// Returns the nodes that plans see with another shape than the cluster has: those of abandoned
// removals, and those that have not started. `cluster` is as it was observed.
std::vector<ShownNode> NodesAsPlanned(const ClusterState& cluster, const LoopFindings& findings);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_LOOP_FINDINGS_H_
