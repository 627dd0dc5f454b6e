// How full a node is.
#ifndef LOADLINE_CORE_DRAIN_NODE_LOAD_H_
#define LOADLINE_CORE_DRAIN_NODE_LOAD_H_

#include <cstdint>

#include "core/cluster/snapshot.h"

namespace loadline {

// The larger share of CPU and memory that is requested on a node, in millionths; 0 where it offers neither.
int64_t LoadOf(const Snapshot& snapshot, NodeIndex node);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_NODE_LOAD_H_
