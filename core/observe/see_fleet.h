// Puts together what the cloud and the cluster show of all machines, for a look at the fleet.
#ifndef LOADLINE_CORE_OBSERVE_SEE_FLEET_H_
#define LOADLINE_CORE_OBSERVE_SEE_FLEET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/startup_taints.h"
#include "core/drain/drain_question.h"
#include "core/observe/fleet.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// A machine of the observation: its group, and its position in CloudGroup::machines.
struct MachinePlace {
  GroupIndex group{};
  size_t machine = 0;
};

// A machine that names the node of another one, which is listed before it.
struct SharedNode {
  MachinePlace machine;
  MachinePlace owner;
};

// `reported` with what its positions mean. Each machine counts once, and each node is that of one machine:
// where one is listed again, less is expected of that group. A machine without an id counts as one that the
// cloud has not begun to make.
struct SeenFleet {
  FleetObservation reported;
  // Positions in CloudGroup::machines, by position in the report; and nodes likewise, Slot{-1} where there is
  // none.
  StrongVector<GroupIndex, std::vector<int32_t>> machines;
  StrongVector<GroupIndex, std::vector<Slot>> nodes;
  std::vector<Slot> others;        // of FleetObservation::other_nodes
  std::vector<SharedNode> shared;  // in the order of the observation
};

// `going`: nodes that are being deleted, sorted. Cost: O(nodes * their resources + machines).
SeenFleet SeeFleet(const ClusterState& cluster, const LoopObservation& seen, const ObserveOptions& options,
                   std::span<const Slot> going, int64_t now_ms);

// The state of the machine of each marked node that has one which is listed.
absl::flat_hash_map<Slot, MachineState> MachinesOfMarks(const LoopObservation& seen);

// Returns whether pods may be placed on a node: it is ready, and has no startup taint.
bool HasStarted(const ClusterState& cluster, Slot slot, const StartupTaints& names);

// Finds the nodes of groups that start: DrainProblem::not_started. Such a node has not started, or lacks
// devices that the model of its group in `groups` or most of its nodes offer, or GPUs that a label of it
// names; and it is younger than a node may take for that. `groups` may be without models; `resources` are the
// names of those in models. Cost: O(nodes * their resources).
void FindNodesThatStart(const StartupTaints& names, NodeGroupSpan groups, const ResourceNames& resources,
                        DrainProblem* problem);
// Finds the nodes of one group that lack such devices, whatever their age, sorted: GroupNodes::lacking.
// `model`: its template, with resources of these names; nullptr: it has none. Cost: as above.
std::vector<Slot> NodesLackingDevices(const ClusterState& cluster, std::span<const Slot> nodes,
                                      const NodeShape* model, const ResourceNames& resources,
                                      const StartupTaints& names, int64_t now_s);
// Takes the nodes that start out of their groups, too, for a question about drains alone.
void TakeOutNodesThatStart(const StartupTaints& names, DrainProblem* problem);

// Fingerprints of the names of extended resources of which these are more than 0, in order.
std::vector<uint64_t> DevicesOf(const ResourceAmounts& amounts, const ResourceNames& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_SEE_FLEET_H_
