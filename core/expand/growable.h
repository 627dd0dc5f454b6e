// The groups that growth is planned for.
#ifndef LOADLINE_CORE_EXPAND_GROWABLE_H_
#define LOADLINE_CORE_EXPAND_GROWABLE_H_

#include <cstdint>

#include "core/base/strong_vector.h"
#include "core/cluster/node_group.h"

namespace loadline {

// The position of a group in the list that a plan of growth is asked about: seldom all groups there are.
enum class GrowableIndex : int32_t {};
using GrowableGroups = StrongVector<GrowableIndex, NodeGroup>;

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_GROWABLE_H_
