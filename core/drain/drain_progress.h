// Updates the state of scale-down when something was done between two loops, or another process leads.
#ifndef LOADLINE_CORE_DRAIN_DRAIN_PROGRESS_H_
#define LOADLINE_CORE_DRAIN_DRAIN_PROGRESS_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "core/cluster/cluster_state.h"
#include "core/drain/drain_state.h"
#include "core/drain/timers.h"

namespace loadline {

bool IsDeleting(const DrainState& state, absl::string_view node);

// Moves a node from those that may go to those that are being deleted. Of one that is not known to be the
// former, a drain is assumed; one that is not there, or is being deleted already, changes nothing.
void NoteStarted(absl::string_view node, int64_t now_s, const ClusterState& cluster, DrainState* state);

// It is not being deleted any more.
void NoteFailed(absl::string_view node, DrainState* state);

// Returns the state where nothing is remembered: since when nodes are unneeded. `known` counts before soft
// taints, which are written some time later.
DrainState StateFromTimers(const ClusterState& cluster, const TimerOptions& options, int64_t now_s,
                           std::span<const TimedNode> known);

}  // namespace loadline

#endif  // LOADLINE_CORE_DRAIN_DRAIN_PROGRESS_H_
