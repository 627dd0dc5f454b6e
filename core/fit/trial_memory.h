// The memory of nodes and pods that are put into a snapshot to see what happens.
#ifndef LOADLINE_CORE_FIT_TRIAL_MEMORY_H_
#define LOADLINE_CORE_FIT_TRIAL_MEMORY_H_

#include <cstdint>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"

namespace loadline {

// Charges a budget for what a trial puts into a snapshot, and gives the memory back when the trial ends: its
// owner takes the nodes and pods out of the snapshot then. `budget` outlives the object. Not thread-safe.
class TrialMemory {
 public:
  // A node with its names and its place in the counts, without its amounts; a pod with the move that undoes
  // it.
  static constexpr int64_t kNodeBytes = 2'048;
  static constexpr int64_t kPodBytes = 128;
  // The work of adding a node, in units.
  static constexpr int64_t kNodeUnits = 20;

  explicit TrialMemory(WorkBudget* budget) : budget_(budget) {}
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;
  ~TrialMemory() { budget_->Release(held_); }

  // Charges one more node or pod. False: the budget has ended, and it must not be added. A node that no
  // snapshot holds is charged without one.
  bool Node() { return budget_->Spend(kNodeUnits) && Take(kNodeBytes); }
  bool Node(const Snapshot& snapshot) {
    return budget_->Spend(kNodeUnits) && Take(kNodeBytes + snapshot.bytes_of_node());
  }
  // `units`: what it takes to look whether the pod fits there.
  bool Pod(int64_t units = 1) { return budget_->Spend(units) && Take(kPodBytes); }
  // Charges memory of any other kind.
  bool Take(int64_t bytes) {
    if (!budget_->Reserve(bytes)) return false;
    held_ += bytes;
    return true;
  }

 private:
  WorkBudget* budget_;
  int64_t held_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_FIT_TRIAL_MEMORY_H_
