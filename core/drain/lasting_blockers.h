// The pods that block each drain of their node for as long as they are there.
#ifndef LOADLINE_CORE_DRAIN_LASTING_BLOCKERS_H_
#define LOADLINE_CORE_DRAIN_LASTING_BLOCKERS_H_

#include <cstdint>
#include <memory>

#include "core/cluster/drain_blockers.h"
#include "core/cluster/objects.h"
#include "core/cluster/shapes.h"
#include "core/drain/disruption_budgets.h"

namespace loadline {

// The pods that block by DrainRules() whatever the flags of the autoscaler are and whatever else happens:
// those without an owner, those that an annotation protects, also for a time, those that cannot be read, and
// those whose budgets never allow an eviction. Pods of DaemonSets, mirror pods, placeholders, expendable pods
// without do-not-disrupt, and pods that have finished or are being deleted never do. What turns on a node or
// on the time of day plays no part.
class LastingBlockers final : public DrainBlockers {
 public:
  // Keeps the budgets of `objects`, and no reference. Cost: O(budgets).
  explicit LastingBlockers(const ClusterObjects& objects);
  LastingBlockers(const LastingBlockers&) = delete;
  LastingBlockers& operator=(const LastingBlockers&) = delete;

  // Cost: O(1), and where the pod itself does not block that of DisruptionBudgets::NeverAllow().
  bool Blocks(const PodShape& shape) const override;

  // Returns whether the budgets of `objects` make the same pods block. Cost: O(budgets).
  bool Holds(const ClusterObjects& objects) const;

 private:
  const ClusterObjects objects_;     // the budgets alone
  const DisruptionBudgets budgets_;  // refers to them
};

// The pods that block in one cluster: one object, which stays the same for as long as it holds. Not
// thread-safe.
class LastingBlockersCache {
 public:
  // Cost: O(1) while no object has changed.
  std::shared_ptr<const LastingBlockers> For(const ClusterObjects& objects);

 private:
  std::shared_ptr<const LastingBlockers> kept_;
  uint64_t fingerprint_ = 0;  // of the objects for which it holds
};

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_LASTING_BLOCKERS_H_
