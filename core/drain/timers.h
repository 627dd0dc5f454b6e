// The time for which a node has to be unneeded before it is removed.
#ifndef LOADLINE_CORE_DRAIN_TIMERS_H_
#define LOADLINE_CORE_DRAIN_TIMERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/cluster_state.h"
#include "core/cluster/node_group.h"

namespace loadline {

// Flags of Cluster Autoscaler, with its defaults but for the last one, which is off there.
struct TimerOptions {
  int64_t unneeded_time_s = 10 * 60;
  int64_t unready_time_s = 20 * 60;
  // --node-deletion-candidate-ttl: older taints say nothing about a restart. 0: none does.
  int64_t candidate_ttl_s = 60 * 60;
};

// When a timer started: as before, also where the node became ready or unready since; now where it was not
// running, or says that it will start in the future.
int64_t TimerStart(std::optional<int64_t> before_s, int64_t now_s);

// Returns the unneeded time of a node, in seconds: by its readiness, and by its group if that states one.
int64_t WaitTime(const NodeGroup& group, bool ready, const TimerOptions& options);

// Returns whether a node that has been unneeded since then is removed now. It waits strictly longer than
// `wait_s`; 0: not at all.
bool HasWaited(int64_t since_s, int64_t wait_s, int64_t now_s);
// Returns the first second at which it is removed.
int64_t ReadyAt(int64_t since_s, int64_t wait_s);

// A node that is not needed, or being deleted, and since when.
struct TimedNode {
  Slot slot;
  int64_t since_s = 0;
  friend bool operator==(const TimedNode&, const TimedNode&) = default;
};
// The timers that the taints of nodes state for a process that knows nothing of the time before.
struct RestoredTimers {
  // By DeletionCandidateOfClusterAutoscaler, at most candidate_ttl_s old.
  std::vector<TimedNode> unneeded;
  // By ToBeDeletedByClusterAutoscaler, see IsBeingDeleted().
  std::vector<TimedNode> deleting;
};
// In slot order. Values that are no number, or lie in the future, say nothing about timers.
RestoredTimers RestoreTimers(const ClusterState& state, const TimerOptions& options, int64_t now_s);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_TIMERS_H_
