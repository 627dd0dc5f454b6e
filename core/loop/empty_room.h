// The room of nodes that are not there yet.
#ifndef LOADLINE_CORE_LOOP_EMPTY_ROOM_H_
#define LOADLINE_CORE_LOOP_EMPTY_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/loop/plan_loop.h"

namespace loadline {

// A group whose new nodes have names of their own, unlike those that PlanScaleUp() gives: hostnames are
// domains of spreading.
NodeGroup TemplateOf(const NodeGroup& group, absl::string_view suffix);

// Returns what a node of the snapshot has left, also below its load line.
EmptyNode RoomOn(const LoopProblem& problem, const Snapshot& snapshot, NodeIndex node);

// Takes the room of pods that are placed on a node of the group.
void Take(const LoopProblem& problem, GroupIndex group, const PodShape& shape, int64_t count,
          EmptyNode* room);

// Returns the room of an empty node of each group. Leaves copies of these nodes in the snapshot.
StrongVector<GroupIndex, EmptyNode> AddEmptyOnes(const LoopProblem& problem, Snapshot* snapshot,
                                                 WorkBudget* budget);

// Adds nodes that come and are left as they are to those that slack may use, kMostUpcomingNodes in all.
void AddComing(const EmptyNode& room, int64_t nodes, std::vector<EmptyNode>* coming);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_EMPTY_ROOM_H_
