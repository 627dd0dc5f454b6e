// The room of nodes that are not there yet.
#ifndef LOADLINE_CORE_GROW_EMPTY_ROOM_H_
#define LOADLINE_CORE_GROW_EMPTY_ROOM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/work_budget.h"
#include "core/cluster/node_group.h"
#include "core/cluster/snapshot.h"
#include "core/fit/load_line.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// A group whose new nodes have names of their own, unlike those that PlanScaleUp() gives: hostnames are
// domains of spreading.
NodeGroup TemplateOf(const NodeGroup& group, absl::string_view suffix);

// Returns what a node of the snapshot has left, also below its load line. `pods`: the resource that counts
// them; nullopt: nothing does.
EmptyNode RoomOn(const LoadLine& load_line, std::optional<ResourceId> pods, const Snapshot& snapshot,
                 NodeIndex node);

// Adds nodes that come and are left as they are to those that slack may use, kMostUpcomingNodes in all.
void AddComing(const EmptyNode& room, int64_t nodes, std::vector<EmptyNode>* coming);

}  // namespace loadline

#endif  // LOADLINE_CORE_GROW_EMPTY_ROOM_H_
