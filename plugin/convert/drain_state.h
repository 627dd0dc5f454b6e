// The memory of the drain planner between two questions, as a message: timers, nodes that are being deleted,
// evictions, counts of pods.
#ifndef LOADLINE_PLUGIN_CONVERT_DRAIN_STATE_H_
#define LOADLINE_PLUGIN_CONVERT_DRAIN_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/left_out.h"
#include "core/cluster/view.h"
#include "core/drain/planner.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

// Bounds of a state, chosen; a larger one is refused.
inline constexpr int kMaxEvictedPods = 100'000;
inline constexpr int kMaxDrainStateNodes = 1 << 18;
inline constexpr int kMaxDrainStateOwners = 1 << 18;
// Times, in Unix seconds, are at most this late.
inline constexpr int64_t kMaxDrainTime = int64_t{1} << 40;

// A state with its evicted pods, which are kept as they came: a shape does not lead back to its pod.
struct DecodedDrainState {
  DrainState state;
  std::vector<v1::EvictedPod> evicted;
  LeftOutList left_out;  // evicted pods that could not be taken
};
absl::StatusOr<DecodedDrainState> DecodeDrainState(const v1::DrainState& message, const ReadOptions& read,
                                                   View* view);
v1::DrainState EncodeDrainState(const DrainState& state, const std::vector<v1::EvictedPod>& evicted);

// Returns whether the message has progress that is not in the state yet.
bool TellsMore(const v1::DrainProgress& message, const ClusterState& cluster, const DrainState& state);
// Brings what was done into a state. Names of nodes that are not known are left out, and so are evictions
// that the state has already: a question may be asked again. Errors: kInvalidArgument  names the entry
absl::Status ApplyDrainProgress(const v1::DrainProgress& message, int64_t now_s, const ReadOptions& read,
                                View* view, DecodedDrainState* state);

// Reads the evicted pods of a state anew, for a view whose names or label keys are others than they were.
void ReadEvictionsAgain(const ReadOptions& read, View* view, DecodedDrainState* state);
// Takes out what is kept no longer.
void ForgetEvictions(int64_t now_s, int64_t kept_s, std::vector<v1::EvictedPod>* evicted);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_DRAIN_STATE_H_
