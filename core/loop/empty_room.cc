#include "core/loop/empty_room.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/fit/line_left.h"
#include "core/fit/trial_memory.h"

namespace loadline {

NodeGroup TemplateOf(const NodeGroup& group, absl::string_view suffix) {
  NodeGroup copy = group;
  absl::StrAppend(&copy.name, suffix);
  return copy;
}

EmptyNode RoomOn(const LoopProblem& problem, const Snapshot& snapshot, NodeIndex node) {
  EmptyNode room;
  room.room = {std::max<int64_t>(0, snapshot.amount(node, kCpu).free),
               std::max<int64_t>(0, snapshot.amount(node, kMemory).free)};
  LineLeft line(problem.scale_down.fit.load_line, snapshot.node_shape(node));
  for (const SnapshotPod& pod : snapshot.pods(node)) line.Add(snapshot.pod_shape(pod.shape));
  room.room = Smaller(room.room, line.Left());
  if (const std::optional<ResourceId> pods = problem.names.Find("pods")) {
    const int64_t slots = snapshot.node_shape(node).allocatable.Get(*pods);
    room.slots = std::max<int64_t>(0, slots - static_cast<int64_t>(snapshot.pods(node).size()));
  }
  return room;
}

// Takes the room of pods that are placed on a node of the group.
void Take(const LoopProblem& problem, GroupIndex group, const PodShape& shape, int64_t count,
          EmptyNode* room) {
  const LineLeft line(problem.scale_down.fit.load_line, problem.groups[group].model->shape);
  room->room = Minus(room->room, Times(line.TakenBy(shape), count));
  room->slots = std::max<int64_t>(0, room->slots - count);
}

StrongVector<GroupIndex, EmptyNode> AddEmptyOnes(const LoopProblem& problem, Snapshot* snapshot,
                                                 WorkBudget* budget) {
  StrongVector<GroupIndex, EmptyNode> rooms(problem.groups.size());
  Estimator nodes(snapshot, &problem.scale_down.fit, {}, problem.daemons, budget);
  TrialMemory memory(budget);
  for (const GroupIndex group : rooms.indices()) {
    if (!problem.groups[group].model.has_value()) continue;
    const NodeGroup node = TemplateOf(problem.groups[group], "/empty");
    rooms[group] = RoomOn(problem, *snapshot, nodes.AddCopy(node, &memory));
  }
  return rooms;
}

void AddComing(const EmptyNode& room, int64_t nodes, std::vector<EmptyNode>* coming) {
  const int64_t most = kMostUpcomingNodes - static_cast<int64_t>(coming->size());
  if (most > 0) coming->insert(coming->end(), static_cast<size_t>(std::min(nodes, most)), room);
}

}  // namespace loadline
