// Questions about one iteration of an autoscaler: the parts that other questions have too, and answers.
#ifndef LOADLINE_PLUGIN_CONVERT_LOOP_H_
#define LOADLINE_PLUGIN_CONVERT_LOOP_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/pod_entries.h"
#include "plugin/convert/scale_up_problem.h"

namespace loadline {

// The question of scale-down in it, and that of growth but for the pods; without a cluster.
// Errors: kInvalidArgument  a group states for scale-down what `growth` states; names group and field
absl::StatusOr<v1::PlanDrainRequest> DrainPart(const v1::PlanLoopRequest& request);
v1::ScaleUpProblem GrowthPart(const v1::PlanLoopRequest& request);

// Errors: kInvalidArgument  names the decision
absl::StatusOr<LoopDecisions> DecodeDecisions(const v1::PlanLoopRequest& request);

// Decodes whether growth waits for further pods; `entries` are those of the `pods` kinds of pods of the
// request.
// Errors: kInvalidArgument  names the entry and the field
absl::StatusOr<GrowthBatch> DecodeBatch(const v1::PlanLoopRequest& request, const PodEntries& entries,
                                        size_t pods);

// How groups are ranked; nullopt: they are not.
// Errors: kInvalidArgument  names the field
absl::StatusOr<std::optional<LoopRanking>> DecodeRanking(const v1::PlanLoopRequest& request,
                                                         const PriceModel& prices);

// The groups, by position in the request, with what new nodes cost by `prices`. `drain`: of the same request.
NodeGroups LoopGroups(const v1::PlanLoopRequest& request, const DecodedProblem& growth,
                      const DrainProblem& drain, const PriceModel& prices);

// Sets the groups of `problem` that are sized, without the facts that GatherFacts() adds; marks them among
// its groups, adds to its names, and sets the pods that those groups count as demand. Pods that cannot be
// read are added to `left_out`. `kept`: the state that counts if the request has none. `keys`: labels that
// selectors of the view refer to. Errors: kInvalidArgument  names the entry and the field
absl::Status DecodeSized(const v1::PlanLoopRequest& request, const v1::SizeState& kept, const LabelKeys& keys,
                         const std::string& slack_namespace, LoopProblem* problem, LeftOutList* left_out);
// Encodes the state from which the next loop starts.
v1::SizeState EncodeSizes(const LoopPlan& plan, const LoopProblem& problem);

// `entries` are those of the pods of the request; `snapshot` is the one that was planned with.
v1::PlanLoopResponse EncodeLoopPlan(const LoopPlan& plan, const LoopProblem& problem,
                                    const Snapshot& snapshot, const v1::PlanLoopRequest& request,
                                    PodEntries entries);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_LOOP_H_
