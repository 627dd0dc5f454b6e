// Finds the nodes and pods that a move which is carried out remembers by keys.
#ifndef LOADLINE_CORE_OBSERVE_MOVE_OBJECTS_H_
#define LOADLINE_CORE_OBSERVE_MOVE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"
#include "core/observe/loop_memory.h"

namespace loadline {

inline constexpr Slot kNoSlot{-1};

using NodesByKey = absl::flat_hash_map<uint64_t, Slot>;

// Cost: O(nodes).
NodesByKey NodesByKeyOf(const ClusterState& cluster);
// Returns the slot of the node with this key, or kNoSlot if the node is gone.
Slot Find(const NodesByKey& nodes, uint64_t key);
// Returns the slots of those nodes that still exist.
std::vector<Slot> FindAll(const NodesByKey& nodes, const std::vector<uint64_t>& keys);
// Returns the targets of MoveUnderWay::Place; kNoSlot: one that has not arrived, or is gone.
std::vector<Slot> TargetsOf(const NodesByKey& nodes, const MoveUnderWay& move);
std::optional<GroupIndex> GroupNamed(NodeGroupSpan groups, const std::string& name);

// Returns the nodes that were ordered for the move and have not come, by order: of groups that are there.
std::vector<std::pair<GroupIndex, int64_t>> MissingNodes(NodeGroupSpan groups, const MoveUnderWay& move);

// Under which a pod is remembered: its UID, else its name.
uint64_t KeyOfPod(const ClusterState& cluster, Slot slot, size_t position);
// The place that the move has planned for a pod; nullptr: none.
const MoveUnderWay::Place* PlaceOf(const MoveUnderWay& move, uint64_t pod);

// Returns whether only pods are left that end with the node.
bool IsEmptyNode(const ClusterState& cluster, Slot slot);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_MOVE_OBJECTS_H_
