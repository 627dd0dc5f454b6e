// Corrects, for a load line, the options of somebody who knows none.
#ifndef LOADLINE_CORE_EXPAND_OPTIONS_UNDER_LINE_H_
#define LOADLINE_CORE_EXPAND_OPTIONS_UNDER_LINE_H_

#include <optional>
#include <span>

#include "core/cluster/shapes.h"
#include "core/expand/rank_options.h"
#include "core/fit/load_line.h"

namespace loadline {

// A pod of a question as the line sees it.
struct LinePod {
  std::optional<PodShape> shape;  // nullopt: not known, and it counts as nothing
  bool exempt = false;            // its namespace is
};

// Takes the pods out of an option that an empty node of it would not take, and raises the number of nodes to
// what the limits of the others need at least: a lower bound, as what daemons count as is not known here, and
// pods are not divided. Says of each run how many of its pods one node takes. An option that keeps no pod
// helps none. Cost: O(runs * resources of the line).
void KeepToLine(const LoadLine& line, const NodeShape& node, std::span<const LinePod> pods,
                ExpansionOption* option);

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_OPTIONS_UNDER_LINE_H_
