// The line of limits that would have been safe, by what the pods of each node are expected to use.
#ifndef LOADLINE_CORE_SCORE_SAFE_LINE_H_
#define LOADLINE_CORE_SCORE_SAFE_LINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace loadline {

// One resource of one node.
struct UseOnNode {
  int64_t allocatable = 0;  // 0: the node lacks it
  int64_t limits = 0;       // what the pods there count as by their limits; [0, 2^62]
  int64_t requests = 0;     // [0, 2^62]
  int64_t peak = 0;         // the most that they are expected to use in any hour; [0, 2^62]
};

// A line of limits, and how many of the nodes would be over their allocatable in some hour if each was filled
// up to it with pods like those that it has. `nodes` of the mean size of those there hold all pods at least:
// it takes so many by their limits under the line, or by their requests where that is more.
struct LineRisk {
  int64_t line = 0;  // in thousandths
  size_t nodes_over = 0;
  int64_t nodes = 0;
};

// The highest safe load line, with the risk of the lines around it.
struct SafeLine {
  size_t node = 0;               // the first by position that allows no more
  std::vector<LineRisk> around;  // rising: a tighter line, the safe one, and two looser ones
  int64_t line() const { return around[1].line; }
};

// Returns the highest line under which no node exceeds its allocatable when it is filled with pods like
// those that it has now:
//
//   min over nodes of limits / peak, rounded down to 0.05, in [0.1, 1000]
//
// Nodes whose limits are less than half of their allocatable say little about a full one, and count only
// where all nodes are such. nullopt: no node has pods that use anything.
// The lines around are 0.75, 1.25 and 1.5 times the safe one, rounded likewise.
// Cost: O(nodes). Pure: any thread.
std::optional<SafeLine> FindSafeLine(std::span<const UseOnNode> nodes);

}  // namespace loadline

#endif  // LOADLINE_CORE_SCORE_SAFE_LINE_H_
