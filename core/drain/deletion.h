// Selects the drainable nodes to delete in this loop.
#ifndef LOADLINE_CORE_DRAIN_DELETION_H_
#define LOADLINE_CORE_DRAIN_DELETION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/cpu_memory.h"
#include "core/cluster/node_group.h"
#include "core/drain/node_budget.h"
#include "core/drain/size_limits.h"
#include "core/drain/timers.h"

namespace loadline {

enum class NodeReason;  // see node_reason.h

// The limits on removals at the same time.
struct DeletionOptions {
  // Nodes that go at once, and how many of them with pods to move; what is under way counts. Of Cluster
  // Autoscaler the second one is 1.
  int64_t max_scale_down_parallelism = 10;
  int64_t max_drain_parallelism = 5;
  // No drain starts while one is under way, as in the proposal's first version.
  bool exclusive = false;
  // The budgets of single groups.
  std::vector<NodeBudget> budgets;
  TimerOptions timers;
};

// A node that can go, in the order in which they are to go.
struct DeletionCandidate {
  std::optional<GroupIndex> group;
  NodeOffer allocatable;
  bool ready = true;
  // No pod has to move.
  bool empty = false;
  // It is replaced by others: no timer holds it.
  bool replaced = false;
  // Pods are to run to completion there first.
  bool on_completion = false;
  // Its budgets do not allow all of its pods at once.
  bool risky = false;
  int64_t since_s = 0;  // unneeded
};

// Deletions that are under way.
struct DeletionsUnderWay {
  int64_t empty = 0;
  int64_t drain = 0;
  // One of them is risky.
  bool risky = false;
};

// The limit that holds nodes back.
enum class ThrottleLimit { kNone, kMaxScaleDownParallelism, kMaxDrainParallelism, kExclusive, kNodeBudget };
absl::string_view Name(ThrottleLimit limit);

// The result of a loop, under Cluster Autoscaler's names, and the ScaleDownThrottled of the proposal.
enum class DrainStatus {
  kNotTried,           // a brake holds everything back
  kNoCandidates,       // no node can go
  kNoNodeDeleted,      // no removal starts yet
  kThrottled,          // one would go, but for a limit
  kNodeDeleteStarted,  // at least one removal starts
};
absl::string_view Name(DrainStatus status);

// The decision about one candidate: its removal starts now, or waits for a reason.
struct DeletionDecision {
  bool start = false;
  NodeReason waits{};      // kNone: none; else what it waits for
  int64_t ready_at_s = 0;  // when its timer ends
};

// The decisions about all candidates, and the first limit that applied.
struct Deletions {
  std::vector<DeletionDecision> decisions;  // by candidate
  // Candidates that go now: empty ones, then those to be drained.
  std::vector<size_t> start;
  DrainStatus status = DrainStatus::kNoCandidates;
  // The first limit that kept a node back, also where others are removed.
  ThrottleLimit limit = ThrottleLimit::kNone;
};

// Decides, one after the other:
//   * NotUnneededLongEnough, NotUnreadyLongEnough   see timers.h
//   * BlockedByOnCompletionPod                      it keeps no other node from going
//   * NodeGroupMinSizeReached, MinimalResourceLimitExceeded  by `limits`, from which those that pass are
//   taken;
//     empty nodes first
//   * AtomicScaleDownFailed                         an atomic group is removed as a whole or not at all
//   * WaitsForOtherDrains                           a risky node is drained alone: not while another drain
//   runs, and not with an atomic group that has other nodes to be drained
//   * ScaleDownThrottled                            atomic groups first, empty ones before those to be
//   drained;
//     the first one may exceed a limit that is not used up, or it would never go, and one that has to wait
//     lets no other atomic group pass; then single empty nodes, then single drains; `allowance` holds for
//     all, and an atomic group that it does not allow as a whole does not go
//
// Cost: O(candidates + groups). Pure but for `limits` and `allowance`, from which those that start are taken.
// Source: cluster-autoscaler/core/scaledown/{unneeded,budgets}, f7bb0c36.
Deletions SelectDeletions(std::span<const DeletionCandidate> candidates, NodeGroupSpan groups,
                          const DeletionsUnderWay& under_way, const DeletionOptions& options, int64_t now_s,
                          SizeLimits* limits, NodeAllowance* allowance);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DELETION_H_
