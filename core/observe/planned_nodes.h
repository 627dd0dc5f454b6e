// Nodes as plans see them: without what is temporary at the start and the end of a node's life.
#ifndef LOADLINE_CORE_OBSERVE_PLANNED_NODES_H_
#define LOADLINE_CORE_OBSERVE_PLANNED_NODES_H_

#include "core/cluster/shapes.h"
#include "core/observe/loop_observation.h"

namespace loadline {

// A node that has not started takes no pods: it counts as one that is on its way.
NodeShape WithoutPlace(const NodeShape& node);

// A node whose removal was abandoned is planned as if that had not begun: without taint and cordon of ours,
// and with the soft taint that says since when it is not needed.
NodeShape WithoutMark(const NodeShape& node, const NodeMark& mark);

}  // namespace loadline

#endif  // LOADLINE_CORE_OBSERVE_PLANNED_NODES_H_
