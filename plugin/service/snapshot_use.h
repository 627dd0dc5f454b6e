// The snapshot of a view for one question.
#ifndef LOADLINE_PLUGIN_SERVICE_SNAPSHOT_USE_H_
#define LOADLINE_PLUGIN_SERVICE_SNAPSHOT_USE_H_

#include "plugin/service/views.h"

namespace loadline {

// Drops the snapshot of a view when an exception leaves it half done.
class SnapshotUse {
 public:
  explicit SnapshotUse(SharedView* shared) : kept_(shared->snapshot), snapshot_(kept_.For(shared->view)) {}
  SnapshotUse(const SnapshotUse&) = delete;
  SnapshotUse& operator=(const SnapshotUse&) = delete;
  ~SnapshotUse() {
    if (!complete_) kept_.Drop();
  }
  Snapshot* get() { return snapshot_; }
  void Complete() { complete_ = true; }

 private:
  KeptSnapshot& kept_;
  Snapshot* snapshot_;
  bool complete_ = false;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_SNAPSHOT_USE_H_
