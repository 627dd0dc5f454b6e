// Groups of nodes as a test states them.
#ifndef LOADLINE_TEST_TESTING_GROUPS_BY_SLOT_H_
#define LOADLINE_TEST_TESTING_GROUPS_BY_SLOT_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/cluster/node_group.h"

namespace loadline {

// `groups`: that of each slot; nullopt: none.
inline GroupsOfNodes GroupsBySlot(const std::vector<std::optional<GroupIndex>>& groups) {
  GroupsOfNodes group_of;
  for (size_t slot = 0; slot < groups.size(); ++slot) {
    if (groups[slot].has_value()) group_of.Set(IndexAt<Slot>(slot), *groups[slot]);
  }
  return group_of;
}

// The nodes of so many slots are in one group.
inline GroupsOfNodes AllInFirstGroup(int64_t slots) {
  return GroupsBySlot(std::vector<std::optional<GroupIndex>>(static_cast<size_t>(slots), GroupIndex{0}));
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_GROUPS_BY_SLOT_H_
