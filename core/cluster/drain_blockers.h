// The pods that block drains, for who does not know the rules of drains.
#ifndef LOADLINE_CORE_CLUSTER_DRAIN_BLOCKERS_H_
#define LOADLINE_CORE_CLUSTER_DRAIN_BLOCKERS_H_

#include "core/cluster/shapes.h"

namespace loadline {

// Immutable: any thread.
class DrainBlockers {
 public:
  virtual ~DrainBlockers() = default;

  // Returns whether a pod of this shape keeps the node on which it is from being drained.
  virtual bool Blocks(const PodShape& shape) const = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_DRAIN_BLOCKERS_H_
