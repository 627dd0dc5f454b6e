// The load line counted by hand, for pods of one container without overhead and the preset STRICT.
#ifndef LOADLINE_TEST_TESTING_NAIVE_LINE_H_
#define LOADLINE_TEST_TESTING_NAIVE_LINE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/shapes.h"
#include "core/fit/load_line.h"

namespace loadline {

// A line for cpu and memory, in thousandths, that counts as the preset STRICT does; 0: none for that
// resource.
inline LoadLine StrictLine(int64_t cpu, int64_t memory) {
  LoadLine line;
  if (cpu > 0) {
    line.sums.resources.push_back({kCpu, {{MissingLimit::kAllocatable}, {MissingLimit::kRequest}}});
    line.lines.push_back(cpu);
  }
  if (memory > 0) {
    line.sums.resources.push_back({kMemory, {{MissingLimit::kAllocatable}, {MissingLimit::kAllocatable}}});
    line.lines.push_back(memory);
  }
  return line;
}

// A limit counts, at most as all that the node has; without one a pod counts as its cpu request and as all
// memory, or if it requests and limits nothing as all of both.
inline int64_t NaiveCounted(const PodShape& pod, ResourceId resource, int64_t allocatable) {
  const int64_t limit = pod.limits.Get(resource);
  if (limit > 0) return std::min(limit, allocatable);
  const bool nothing = pod.requests.Get(kCpu) == 0 && pod.requests.Get(kMemory) == 0 &&
                       pod.limits.Get(kCpu) == 0 && pod.limits.Get(kMemory) == 0;
  if (resource == kMemory || nothing) return allocatable;
  return std::min(pod.requests.Get(resource), allocatable);
}

// Returns which of these pods, placed on the node in this order, would lift it above the line.
inline std::vector<size_t> NaiveLifters(const std::vector<const PodShape*>& pods, const NodeShape& node,
                                        ResourceId resource, int64_t line) {
  std::vector<size_t> lifters;
  const int64_t allocatable = node.allocatable.Get(resource);
  absl::int128 sum = 0;
  for (size_t i = 0; i < pods.size(); ++i) {
    const int64_t counted = NaiveCounted(*pods[i], resource, allocatable);
    sum += counted;
    const bool above = sum * 1000 > absl::int128(line) * allocatable;
    if (counted > 0 && above) lifters.push_back(i);
  }
  return lifters;
}

}  // namespace loadline

#endif  // LOADLINE_TEST_TESTING_NAIVE_LINE_H_
