// The estimate for pods that depend on each other: every placement is made in the snapshot.
#ifndef LOADLINE_CORE_EXPAND_ESTIMATE_ON_SNAPSHOT_H_
#define LOADLINE_CORE_EXPAND_ESTIMATE_ON_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/expand/estimate.h"
#include "core/fit/trial_memory.h"

namespace loadline {

// Adds copies of one template and places pods, all for good: the caller takes it back with Revert(), when
// this ends.
class SnapshotEstimate {
 public:
  SnapshotEstimate(Estimator* estimator, Snapshot* snapshot, const NodeGroup& group, NodeLimiter limiter,
                   WorkBudget* budget)
      : estimator_(*estimator),
        snapshot_(*snapshot),
        group_(group),
        limiter_(limiter),
        budget_(budget),
        memory_(budget),
        first_new_(snapshot->node_end()) {}

  // Places the pods of each position in `order` by the rules of Estimator::Estimate().
  NodeEstimate Exact(const std::vector<size_t>& order);
  // The rules of Cluster Autoscaler 1.36 (estimator/binpacking_estimator.go):
  // first fit over new nodes up to the first pod that fits none; then next fit, the last node only. There, a
  // pod that hostname spreading keeps off the last node may go to any other node, existing ones included.
  NodeEstimate ClusterAutoscaler(const std::vector<size_t>& order);

 private:
  void FillExact(size_t pods);
  void FillLikeClusterAutoscaler(size_t pods);
  // Places up to `wanted` pods, which need only room, on a node that takes one.
  int64_t FillNode(size_t pods, NodeIndex node, int64_t wanted);
  // One more node that takes the pod; nullopt: not permitted, or it does not.
  std::optional<NodeIndex> AddNodeFor(size_t pods);
  bool OnlySpreadingOverHostsRefuses(size_t pods, NodeIndex node);
  std::optional<NodeIndex> AnyOther(size_t pods, NodeIndex last);
  void Place(size_t pods, NodeIndex node);
  NodeEstimate Result();

  Estimator& estimator_;
  Snapshot& snapshot_;
  const NodeGroup& group_;
  NodeLimiter limiter_;
  WorkBudget* budget_;
  TrialMemory memory_;
  int32_t first_new_;
  NodeEstimate estimate_;
  std::vector<NodeRun> contents_;  // by new node, in the order in which they came
  bool refused_ = false;           // the limiter did
};

}  // namespace loadline

#endif  // LOADLINE_CORE_EXPAND_ESTIMATE_ON_SNAPSHOT_H_
