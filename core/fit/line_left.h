// The room that the load line leaves on a node in the two resources that autoscalers plan by.
#ifndef LOADLINE_CORE_FIT_LINE_LEFT_H_
#define LOADLINE_CORE_FIT_LINE_LEFT_H_

#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/cpu_memory.h"
#include "core/fit/load_line.h"

namespace loadline {

// One node under a line; both outlive the object. Without a line, there is room without end.
class LineLeft {
 public:
  LineLeft(const LoadLine& line, const NodeShape& node);

  // A pod that is there.
  void Add(const PodShape& pod);
  // Saturates at 0 where the node is above the line.
  CpuMemory Left() const;
  // Returns what a pod takes of room that is the lesser of this and what requests leave: the larger of both.
  CpuMemory TakenBy(const PodShape& pod) const;

 private:
  const LoadLine& line_;
  const NodeShape& node_;
  const LimitSums sums_;            // counts pods, and sums none
  std::vector<absl::int128> left_;  // by position of the line
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_LINE_LEFT_H_
