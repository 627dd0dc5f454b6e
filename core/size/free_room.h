// Answers whether a pod fits on any node, by cpu and memory.
#ifndef LOADLINE_CORE_SIZE_FREE_ROOM_H_
#define LOADLINE_CORE_SIZE_FREE_ROOM_H_

#include <cstddef>
#include <vector>

#include "core/size/utilization.h"

namespace loadline {

// The room that nodes have left over. Nodes are added first, then pods are asked about. Cost: O(log nodes) a
// question after O(nodes log nodes) once.
class FreeRoom {
 public:
  void AddNode(const CpuMemory& free);

  // Returns whether some node has enough left of both.
  bool Fits(const CpuMemory& pod);

  // Escalator's test of starvation: more cpu, or more memory, than the node that has most left of it. It
  // takes the two dimensions of possibly different nodes. Without a node every pod that requests anything
  // starves.
  bool ShippedStarved(const CpuMemory& largest_pending) const;

 private:
  CpuMemory most_;
  std::vector<CpuMemory> nodes_;  // sorted by cpu, most first, once asked; memory is then the most so far
  bool sorted_ = true;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_SIZE_FREE_ROOM_H_
