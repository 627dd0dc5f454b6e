// For how long the load has stood still, and how long a saving is expected to last therefore.
#ifndef LOADLINE_CORE_LOOP_LOAD_REST_H_
#define LOADLINE_CORE_LOOP_LOAD_REST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/base/cpu_memory.h"
#include "core/cluster/cluster_state.h"
#include "core/consolidate/consolidation.h"
#include "core/expand/estimate.h"
#include "core/loop/loop_memory.h"

namespace loadline {

// Sums what all pods request that run or wait: neither those of DaemonSets and static ones, which come with
// nodes, nor expendable ones. Pods on nodes that leave count, so that a removal changes nothing. Sums
// saturate. Cost: O(shapes of pods).
CpuMemory LoadOf(const ClusterState& cluster, std::span<const PendingPods> waiting);

// Follows the load from loop to loop. It is constant as long as cpu and memory are both within 5 percent of
// what they were when it began to. A change that passes within a tenth of `payback_hours` is none: evicted
// pods are missing until they come again, and the load of a moment decides no purchase. Source: our own
// choice.
RestingLoad FollowLoad(const std::optional<RestingLoad>& before, const CpuMemory& load, double payback_hours,
                       int64_t now_ms);

// Returns for how many hours a saving is expected to last: `payback_hours` at least; else as long as the load
// has stood still, in steps that double, so that questions stay alike, and a week at most. What has lasted
// for some time lasts for as long again, in the median, where nothing else is known.
double SavingLastsHours(double payback_hours, const std::optional<RestingLoad>& load, int64_t now_ms);

// Lets moves pay for what they cost within the time for which a saving is expected to last. Where that is
// more than `payback_hours`, the load has been seen to stand still, and the age of nodes tells no more about
// it.
void UseSavingLasts(double lasts_hours, ConsolidationOptions* options);

// Calls `note` with the times, in milliseconds, at which the answers of these change although no pod does.
void NoteTimesOfLoad(double payback_hours, const RestingLoad& load, int64_t now_ms,
                     const std::function<void(int64_t)>& note);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_LOAD_REST_H_
