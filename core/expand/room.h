// The requests of pods and the free amounts of nodes, as rows of the same columns.
#ifndef LOADLINE_CORE_EXPAND_ROOM_H_
#define LOADLINE_CORE_EXPAND_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/fit/filters.h"

namespace loadline {

// One column per resource that a pod requests and the filter checks, then one for pod slots, then further
// ones of the caller.
class RoomColumns {
 public:
  // nullptr: the budget has not the memory. What they take stays charged.
  static std::unique_ptr<RoomColumns> Make(const std::vector<const IncomingPod*>& pods,
                                           const FitOptions& options, WorkBudget* budget);

  // The same with further columns; `taken` says what a pod takes, >= 0, by its position and the number of the
  // further column. The caller answers for the memory, see BytesWith().
  std::unique_ptr<RoomColumns> With(size_t further,
                                    const std::function<int64_t(size_t, size_t)>& taken) const;
  int64_t BytesWith(size_t further) const {
    return static_cast<int64_t>((requests_.size() / width()) * (width() + further) * sizeof(int64_t));
  }

  size_t width() const { return resources_.size() + 1 + further_; }
  // The resource of a column; nullopt: pod slots, or a further one.
  std::optional<ResourceId> resource(size_t column) const {
    return column < resources_.size() ? std::optional(resources_[column]) : std::nullopt;
  }
  // The requests of one pod. 0: the resource is not checked.
  std::span<const int64_t> request(size_t pod) const { return {requests_.data() + pod * width(), width()}; }
  // Returns what a node has free, but for the further columns. Below 0 where its pods request more than it
  // offers.
  std::vector<int64_t> FreeOn(const Snapshot& snapshot, NodeIndex node) const;

 private:
  RoomColumns() = default;

  std::vector<ResourceId> resources_;
  std::vector<int64_t> requests_;  // pod * width() + column
  std::optional<ResourceId> pods_;
  size_t further_ = 0;
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_ROOM_H_
