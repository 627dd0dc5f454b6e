// The data that a view keeps from question to question beside its columns: a snapshot, and scale-down.
#ifndef LOADLINE_PLUGIN_SERVICE_KEPT_H_
#define LOADLINE_PLUGIN_SERVICE_KEPT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/cluster/snapshot.h"
#include "core/cluster/view.h"
#include "core/drain/planner.h"
#include "plugin/convert/drain_state.h"

namespace loadline {

// The snapshot of a view that questions make their moves on. Builds a snapshot when the view has changed and
// keeps it between questions, with the counts that they asked for. Not thread-safe.
class KeptSnapshot {
 public:
  // `most_count_bytes`: with more counts than these a snapshot is not kept.
  explicit KeptSnapshot(int64_t most_count_bytes) : most_count_bytes_(most_count_bytes) {}

  // A snapshot of `view`, which is the same each time, at its present state. Cost: O(nodes log nodes + pods)
  // when the view has changed since the last question.
  Snapshot* For(const View& view) {
    if (snapshot_ == nullptr || version_ != view.version() || snapshot_->pod_shape_end() > most_shapes_) {
      snapshot_.reset();  // first: two at a time would take twice the memory
      snapshot_ = std::make_unique<Snapshot>(view.cluster());
      version_ = view.version();
      // Questions bring shapes of their own, which stay.
      most_shapes_ = 2 * snapshot_->pod_shape_end() + 10'000;
    }
    return snapshot_.get();
  }

  // Checks the snapshot, if it is that of the view as it is. For tests.
  void CheckConsistent(const View& view) const {
    if (snapshot_ != nullptr && version_ == view.version()) snapshot_->CheckConsistent();
  }

  // Drops a snapshot that a question left half done.
  void Drop() { snapshot_.reset(); }
  // Drops one with too many counts at once, by the thread that has made them. Returns whether it did.
  bool DropLarge() {
    if (snapshot_ == nullptr || snapshot_->count_bytes() <= most_count_bytes_) return false;
    Drop();
    return true;
  }

 private:
  const int64_t most_count_bytes_;
  std::unique_ptr<Snapshot> snapshot_;
  int64_t version_ = 0;
  int32_t most_shapes_ = 0;
};

// A drain planner, and the state after its last answer. Not thread-safe.
struct KeptDrain {
  DrainPlanner planner;
  DecodedDrainState last;
  // The View::cluster_number() of the cluster that the planner has worked with, and how many label keys and
  // which options of filters and profiles it had. With others it starts over from `last`. nullopt: it is to
  // start over.
  std::optional<int64_t> cluster;
  size_t label_keys = 0;
  std::string fit;
  std::shared_ptr<const ExpectedUse> expected;
};

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_SERVICE_KEPT_H_
