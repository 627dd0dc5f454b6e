// Measures for how long the load has been constant, and derives for how long a saving is expected to last.
#ifndef LOADLINE_CORE_REPLACE_LOAD_REST_H_
#define LOADLINE_CORE_REPLACE_LOAD_REST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/base/cpu_memory.h"
#include "core/cluster/cluster_state.h"
#include "core/consolidate/consolidation.h"
#include "core/expand/estimate.h"
#include "core/observe/loop_memory.h"

namespace loadline {

// Sums the requests of all pods that run or wait, except DaemonSet and static pods, which belong to nodes,
// and expendable pods. Pods on nodes that are being removed count, so that a removal changes nothing. Sums
// saturate. Cost: O(shapes of pods).
CpuMemory LoadOf(const ClusterState& cluster, std::span<const PendingPods> waiting);

// Follows the load from loop to loop. The load is constant while CPU and memory are both within 5 percent of
// their amounts at the start. A change that ends within a tenth of `payback_hours` does not count: evicted
// pods are missing until they are created again, and a momentary load should not decide a purchase. Source:
// our own choice.
RestingLoad FollowLoad(const std::optional<RestingLoad>& before, const CpuMemory& load, double payback_hours,
                       int64_t now_ms);

// Returns for how many hours a saving is expected to last: `payback_hours` at least; otherwise as long as the
// load has been constant, in steps that double, so that questions stay alike, and a week at most. If nothing
// else is known, a state lasts, in the median, for as long again as it has lasted.
double SavingLastsHours(double payback_hours, const std::optional<RestingLoad>& load, int64_t now_ms);

// Lets moves pay for what they cost within the time for which a saving is expected to last. If that is more
// than `payback_hours`, the load is known to be constant, and the age of nodes says nothing more about it.
void UseSavingLasts(double lasts_hours, ConsolidationOptions* options);

// Calls `note` with the times, in milliseconds, at which the answers of these functions change although no
// pod changes.
void NoteTimesOfLoad(double payback_hours, const RestingLoad& load, int64_t now_ms,
                     const std::function<void(int64_t)>& note);

}  // namespace loadline

#endif  // LOADLINE_CORE_REPLACE_LOAD_REST_H_
