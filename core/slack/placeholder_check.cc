// Compares what a set of placeholders keeps with what it would be if worked out anew.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/slack/placeholder_set.h"

namespace loadline {

void PlaceholderSet::CheckConsistent() const {
  size_t with_slots = 0;
  size_t overcommitted = 0;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].present) {
      LOADLINE_CHECK(nodes_[node].placeholders.empty()) << "node " << node << " is gone and has placeholders";
      continue;
    }
    CheckNode(node);
    with_slots += nodes_[node].slots > 0 ? 1 : 0;
    overcommitted += Within(nodes_[node].content.real, nodes_[node].content.allocatable) ? 0 : 1;
  }
  size_t ordered = 0;
  for (const auto& rooms : by_room_) ordered += rooms.size();
  LOADLINE_CHECK(ordered == with_slots) << ordered << " nodes are in order, " << with_slots << " have slots";
  LOADLINE_CHECK(overcommitted_.size() == overcommitted)
      << overcommitted_.size() << " nodes count as overcommitted";
  for (const auto& [name, node] : by_name_) {
    LOADLINE_CHECK(Has(node) && nodes_[node].content.name == name) << "node " << name;
  }
  CheckGroups();
}

void PlaceholderSet::CheckNode(size_t node) const {
  const Node& at = nodes_[node];
  CpuMemory taken;
  for (const int64_t id : at.placeholders) {
    const Item& item = ItemOf(id);
    LOADLINE_CHECK(item.node == node && item.placeholder.node == at.content.name) << "placeholder " << id;
    taken = Plus(taken, item.placeholder.size);
  }
  LOADLINE_CHECK(at.taken == taken) << "placeholders take another sum on node " << at.content.name;
  const int64_t slots = at.content.free_slots - static_cast<int64_t>(at.placeholders.size());
  LOADLINE_CHECK(at.slots == slots) << at.slots << " slots of node " << at.content.name;
  LOADLINE_CHECK(Find(at.content.name) != kNoNode) << "node " << at.content.name << " is not found";
  const bool over = !Within(at.content.real, at.content.allocatable);
  LOADLINE_CHECK(overcommitted_.contains(at.content.name) == over) << "node " << at.content.name;
  if (slots <= 0) return;
  const size_t node_class = static_cast<size_t>(at.content.node_class);
  const auto& rooms = by_room_[CheckedIndex("node class", node_class, by_room_.size())];
  LOADLINE_CHECK(rooms.contains(RoomOf(node))) << "room of node " << at.content.name;
}

void PlaceholderSet::CheckGroups() const {
  size_t grouped = 0;
  for (const auto& [group, members] : groups_) {
    LOADLINE_CHECK(!members.ids.empty()) << "a group of " << group.owner << " is empty";
    grouped += members.ids.size();
    for (const int64_t id : members.ids) LOADLINE_CHECK(GroupOf(ItemOf(id).placeholder) == group) << id;
    for (const int64_t id : members.unplaced) LOADLINE_CHECK(members.ids.contains(id)) << id;
  }
  LOADLINE_CHECK(grouped == items_.size())
      << grouped << " of " << items_.size() << " placeholders are in a group";
  for (const auto& [id, item] : items_) {
    const Members* const members = Find(GroupOf(item.placeholder));
    LOADLINE_CHECK(members != nullptr && members->ids.contains(id)) << "group of placeholder " << id;
    const bool unplaced = item.node == kNoNode;
    LOADLINE_CHECK(members->unplaced.contains(id) == unplaced) << "placeholder " << id;
    LOADLINE_CHECK(item.placeholder.id == id && item.placeholder.node.empty() == unplaced) << id;
    if (unplaced) continue;
    const auto& there = At(item.node).placeholders;
    LOADLINE_CHECK(std::count(there.begin(), there.end(), id) == 1) << "placeholder " << id << " on its node";
  }
}

}  // namespace loadline
