// How the nodes of a placement fared after the first week.
#ifndef LOADLINE_TEST_OVERLOAD_JUDGE_H_
#define LOADLINE_TEST_OVERLOAD_JUDGE_H_

#include <cstddef>
#include <vector>

#include "test/overload/placement.h"

namespace loadline {

// The trace has the peak of each hour. The pods of a node count as if their peaks came together, so that
// overload is counted too high, for all scores alike.
struct Outcome {
  double cpu_overload = 0;  // percent: mean over nodes and hours of what use is above the node, over the node
  double cpu_nodes_over = 0;  // percent of the nodes that were over in any hour
  double memory_nodes_over =
      0;               // percent of the nodes with more than 97 % of their memory in use in any hour
  double without = 0;  // pods without a place
};
Outcome Judge(const std::vector<TracePod>& pods, const std::vector<std::vector<size_t>>& pods_on,
              NodeSize size, size_t hours);

// The most that limits over allocatable, or expected use over allocatable in any hour, may be, in
// thousandths.
struct FilledLine {
  int64_t limits = 0;    // 0: none
  int64_t expected = 0;  // 0: none
};

// Fills nodes up to a line with the pods in this order, first fit; a node is added where no other takes the
// pod.
struct Filled {
  size_t nodes = 0;
  Outcome outcome;
};
Filled FillToLine(const FilledLine& line, const std::vector<size_t>& order, const std::vector<TracePod>& pods,
                  NodeSize size, size_t hours);

}  // namespace loadline

#endif  // LOADLINE_TEST_OVERLOAD_JUDGE_H_
