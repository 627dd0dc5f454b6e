// Questions about nodes that may go: messages to core types, and answers back.
#ifndef LOADLINE_PLUGIN_CONVERT_DRAIN_H_
#define LOADLINE_PLUGIN_CONVERT_DRAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cluster/cluster_state.h"
#include "core/cluster/left_out.h"
#include "core/cluster/view.h"
#include "core/drain/brakes.h"
#include "core/drain/planner.h"
#include "loadline/v1/drain.pb.h"
#include "plugin/convert/resources.h"

namespace loadline {

inline constexpr int kMaxDrainGroups = 10'000;
inline constexpr int kMaxDrainPlaceholders = 100'000;
inline constexpr int kMaxEvictedPods = 100'000;
inline constexpr int kMaxDrainStateNodes = 1 << 18;
inline constexpr int kMaxDrainStateOwners = 1 << 18;

// Flags that the planner does not ask for itself.
struct DecodedDrainOptions {
  DrainOptions options;
  BrakeOptions brakes;
};
// kInvalidArgument names the field.
absl::StatusOr<DecodedDrainOptions> DecodeDrainOptions(const v1::DrainOptions& message,
                                                       const v1::FitOptions& fit);

// Decodes groups, placeholders, pools and times of a question about `view`, to which it may add label keys. A
// placeholder whose pod cannot be taken asks for nothing, and is added to `left_out`.
// Errors: kInvalidArgument  names group, slot, placeholder or field. kResourceExhausted  names the limit
absl::StatusOr<DrainProblem> DecodeDrainProblem(const v1::PlanDrainRequest& request, const ReadOptions& read,
                                                View* view, LeftOutList* left_out);

// A state with its evicted pods, which are kept as they came: a shape does not lead back to its pod.
struct DecodedDrainState {
  DrainState state;
  std::vector<v1::EvictedPod> evicted;
  LeftOutList left_out;  // evicted pods that could not be taken
};
absl::StatusOr<DecodedDrainState> DecodeDrainState(const v1::DrainState& message, const ReadOptions& read,
                                                   View* view);
v1::DrainState EncodeDrainState(const DrainState& state, const std::vector<v1::EvictedPod>& evicted);

// Whether what was done is not in a state yet.
bool TellsMore(const v1::DrainProgress& message, const ClusterState& cluster, const DrainState& state);
// Brings what was done into a state. Names of nodes that are not known are left out, and so are evictions
// that the state has already: a question may be asked again. Errors: kInvalidArgument  names the entry
absl::Status ApplyDrainProgress(const v1::DrainProgress& message, int64_t now_s, const ReadOptions& read,
                                View* view, DecodedDrainState* state);

// Reads the evicted pods of a state anew, for a view whose names or label keys are others than they were.
void ReadEvictionsAgain(const ReadOptions& read, View* view, DecodedDrainState* state);
// Takes out what is kept no longer.
void ForgetEvictions(int64_t now_s, int64_t kept_s, std::vector<v1::EvictedPod>* evicted);

v1::PlanDrainResponse EncodeDrainPlan(const DrainPlan& plan, const DrainProblem& problem, bool compact);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_DRAIN_H_
