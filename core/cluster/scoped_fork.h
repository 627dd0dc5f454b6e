// Moves of a snapshot that end with a scope.
#ifndef LOADLINE_CORE_CLUSTER_SCOPED_FORK_H_
#define LOADLINE_CORE_CLUSTER_SCOPED_FORK_H_

#include "core/base/check.h"
#include "core/cluster/snapshot.h"

namespace loadline {

// Undoes the changes of a snapshot since this was made. If it is destroyed because a check failed, it undoes
// nothing: the snapshot may be half changed then, its owner drops it, and to undo could fail again.
class ScopedFork {
 public:
  explicit ScopedFork(Snapshot* snapshot) : snapshot_(*snapshot) { snapshot_.Fork(); }
  ScopedFork(const ScopedFork&) = delete;
  ScopedFork& operator=(const ScopedFork&) = delete;
  ~ScopedFork() noexcept(false) {
    if (!unwinding_.Began()) snapshot_.Revert();
  }

 private:
  Snapshot& snapshot_;
  const Unwinding unwinding_;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_CLUSTER_SCOPED_FORK_H_
