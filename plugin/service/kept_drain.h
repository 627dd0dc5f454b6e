// What scale-down remembers of a view.
#ifndef LOADLINE_PLUGIN_SERVICE_KEPT_DRAIN_H_
#define LOADLINE_PLUGIN_SERVICE_KEPT_DRAIN_H_

#include <cstddef>
#include <string>

#include "core/drain/planner.h"
#include "plugin/convert/drain_state.h"

namespace loadline {

// A planner, and the state after its last answer. Not thread-safe.
struct KeptDrain {
  DrainPlanner planner;
  DecodedDrainState last;
  // What the planner has worked out is of this cluster, with so many label keys, and these options of
  // filters. Of another one it starts over from `last`.
  const ClusterState* cluster = nullptr;
  size_t label_keys = 0;
  std::string fit;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_KEPT_DRAIN_H_
