#include "core/expand/options_under_line.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/numeric/int128.h"

namespace loadline {
namespace {

constexpr int64_t kMostNodes = std::numeric_limits<int32_t>::max();

// The amounts that the pods need of one resource of the line.
struct LineDemand {
  absl::int128 counted = 0;
  int64_t ceiling = 0;  // of one node
};

// Returns the number of such pods that one node takes; it may be 0.
int64_t MostOnNode(const LineOnNode& on) {
  if (!on.Keeps(0)) return 0;
  return on.counted == 0 ? std::numeric_limits<int64_t>::max() : on.ceiling / on.counted;
}

}  // namespace

void KeepToLine(const LoadLine& line, const NodeShape& node, std::span<const LinePod> pods,
                ExpansionOption* option) {
  const LimitSums sums(line.sums);
  std::vector<LineDemand> demands(line.lines.size());
  for (PodRun& run : option->pods) {
    const LinePod& pod = pods[run.pod];
    if (!pod.shape.has_value() || pod.exempt) continue;
    std::vector<int64_t> counted;
    for (size_t r = 0; r < demands.size(); ++r) {
      const LineOnNode on = LineFor(line, r, sums, *pod.shape, node);
      run.most_on_node = std::min(run.most_on_node, MostOnNode(on));
      demands[r].ceiling = on.ceiling;
      counted.push_back(on.counted);
    }
    if (run.most_on_node == 0) {
      run.count = 0;
      continue;
    }
    for (size_t r = 0; r < demands.size(); ++r) demands[r].counted += absl::int128(counted[r]) * run.count;
  }
  if (option->node_count == 0) return;
  for (const LineDemand& demand : demands) {
    if (demand.counted == 0) continue;
    const absl::int128 nodes = (demand.counted + demand.ceiling - 1) / demand.ceiling;
    const int64_t least = nodes > kMostNodes ? kMostNodes : static_cast<int64_t>(nodes);
    option->node_count = std::max(option->node_count, least);
  }
}

}  // namespace loadline
