#include "core/size/free_room.h"

#include <algorithm>

namespace loadline {

void FreeRoom::AddNode(const CpuMemory& free) {
  most_ = {std::max(most_.cpu, free.cpu), std::max(most_.memory, free.memory)};
  nodes_.push_back(free);
  sorted_ = false;
}

bool FreeRoom::Fits(const CpuMemory& pod) {
  if (!sorted_) {
    std::sort(nodes_.begin(), nodes_.end(),
              [](const CpuMemory& a, const CpuMemory& b) { return a.cpu > b.cpu; });
    for (size_t i = 1; i < nodes_.size(); ++i)
      nodes_[i].memory = std::max(nodes_[i].memory, nodes_[i - 1].memory);
    sorted_ = true;
  }
  // The last node with enough cpu knows the most memory of all those before it.
  const auto end = std::partition_point(nodes_.begin(), nodes_.end(),
                                        [&](const CpuMemory& node) { return node.cpu >= pod.cpu; });
  return end != nodes_.begin() && std::prev(end)->memory >= pod.memory;
}

bool FreeRoom::ShippedStarved(const CpuMemory& largest_pending) const {
  return largest_pending.cpu > most_.cpu || largest_pending.memory > most_.memory;
}

}  // namespace loadline
