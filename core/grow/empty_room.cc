#include "core/grow/empty_room.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/fit/line_left.h"
#include "core/grow/loop_problem.h"

namespace loadline {

NodeGroup TemplateOf(const NodeGroup& group, absl::string_view suffix) {
  NodeGroup copy = group;
  absl::StrAppend(&copy.name, suffix);
  return copy;
}

EmptyNode RoomOn(const LoadLine& load_line, std::optional<ResourceId> pods, const Snapshot& snapshot,
                 NodeIndex node) {
  EmptyNode room;
  room.room = {std::max<int64_t>(0, snapshot.amount(node, kCpu).free),
               std::max<int64_t>(0, snapshot.amount(node, kMemory).free)};
  LineLeft line(load_line, snapshot.node_shape(node));
  for (const SnapshotPod& pod : snapshot.pods(node)) line.Add(snapshot.pod_shape(pod.shape));
  room.room = Smaller(room.room, line.Left());
  if (pods.has_value()) {
    const int64_t slots = snapshot.node_shape(node).allocatable.Get(*pods);
    room.slots = std::max<int64_t>(0, slots - static_cast<int64_t>(snapshot.pods(node).size()));
  }
  return room;
}

void AddComing(const EmptyNode& room, int64_t nodes, std::vector<EmptyNode>* coming) {
  const int64_t most = kMostUpcomingNodes - static_cast<int64_t>(coming->size());
  if (most > 0) coming->insert(coming->end(), static_cast<size_t>(std::min(nodes, most)), room);
}

}  // namespace loadline
