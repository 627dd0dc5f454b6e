// The parts that filters read of a pod that leaves its node and is placed anew.
#ifndef LOADLINE_CORE_DRAIN_FILTER_SHAPE_H_
#define LOADLINE_CORE_DRAIN_FILTER_SHAPE_H_

#include "core/cluster/shapes.h"
#include "core/fit/load_line.h"

namespace loadline {

// Returns what filters read of the replacement of a pod of this shape, and nothing else, so that pods of many
// owners that ask for the same have equal shapes: namespace, requests, labels, rules, and the limits of the
// resources that `line` is for. The replacement is bound to no node, and is not terminating.
// Cost: O(resources, labels and rules). Pure: any thread.
PodShape ShapeForFilters(const PodShape& shape, const LoadLine& line);

// Returns whether what fits for such a pod may depend on other pods, or on volumes that they share.
bool DependsOnOthers(const PodShape& shape);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_FILTER_SHAPE_H_
