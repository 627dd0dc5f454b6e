#include "core/drain/timers.h"

#include "core/cluster/startup_taints.h"
#include "core/drain/eligibility.h"

namespace loadline {

int64_t TimerStart(std::optional<int64_t> before_s, int64_t now_s) {
  return before_s.has_value() && *before_s <= now_s ? *before_s : now_s;
}

int64_t WaitTime(const NodeGroup& group, bool ready, const TimerOptions& options) {
  if (group.sized) return 0;  // its nodes have waited tainted
  return ready ? group.unneeded_time_s.value_or(options.unneeded_time_s)
               : group.unready_time_s.value_or(options.unready_time_s);
}

bool HasWaited(int64_t since_s, int64_t wait_s, int64_t now_s) { return now_s >= ReadyAt(since_s, wait_s); }

int64_t ReadyAt(int64_t since_s, int64_t wait_s) { return wait_s <= 0 ? since_s : since_s + wait_s + 1; }

RestoredTimers RestoreTimers(const ClusterState& state, const TimerOptions& options, int64_t now_s) {
  RestoredTimers restored;
  for (int32_t i = 0; i < state.slot_end(); ++i) {
    const Slot slot{i};
    if (!state.Occupied(slot)) continue;
    if (IsBeingDeleted(state, slot, now_s)) {
      const std::optional<int64_t> since_s = TaintTime(state, slot, kToBeDeletedTaint);
      if (since_s.has_value()) restored.deleting.push_back({slot, *since_s});
      continue;
    }
    const std::optional<int64_t> since_s = TaintTime(state, slot, kDeletionCandidateTaint);
    if (!since_s.has_value() || *since_s > now_s || now_s - *since_s > options.candidate_ttl_s) continue;
    if (options.candidate_ttl_s > 0) restored.unneeded.push_back({slot, *since_s});
  }
  return restored;
}

}  // namespace loadline
