// Decodes the reports to a loop about the cloud and its own actions, and encodes the answers.
#ifndef LOADLINE_PLUGIN_CONVERT_LOOP_FLEET_H_
#define LOADLINE_PLUGIN_CONVERT_LOOP_FLEET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/grow/refused_growth.h"
#include "core/loop/loop_actions.h"
#include "core/observe/loop_findings.h"
#include "core/observe/loop_observation.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/scale_up_problem.h"

namespace loadline {

inline constexpr int kMaxActionOutcomes = 10'000;

// PlanLoopRequest.fleet with PlanLoopRequest.groups, but for the state.
struct DecodedLoopFleet {
  int64_t now_ms = 0;
  LoopObservation seen;
  LoopOutcomes outcomes;
  ObserveOptions options;
  StrongVector<GroupIndex, bool> cloud_template;
  LeftOutList left_out;  // groups and nodes of which something cannot be taken
};

// `growth`: the groups of the request. `names`: those of the cluster, with names added.
// A group, machine or mark with an impossible value is reported, and the loop continues: see StatedGroup and
// DecodeMarks(). Errors: kInvalidArgument  names the group, machine, outcome or field
//                kResourceExhausted  names the limit
absl::StatusOr<DecodedLoopFleet> DecodeLoopFleet(const v1::PlanLoopRequest& request,
                                                 const DecodedProblem& growth, const LoopDecisions& decisions,
                                                 const ClusterState& cluster);

// The answer without its state and without what EncodeWhyNoGrowth() adds. All of the same loop.
v1::LoopFleetAnswer EncodeLoopFleet(const LoopObservation& seen, const LoopFindings& findings,
                                    const LoopProblem& problem, const LoopPlan& plan,
                                    const std::vector<LoopAction>& actions);

// Adds why pods get no node. `entries` are those of the pods of the request.
void EncodeWhyNoGrowth(const LoopObservation& seen, const LoopFindings& findings, const LoopProblem& problem,
                       const LoopPlan& plan, const std::vector<RefusedPods>& refused,
                       const PodEntries& entries, v1::LoopFleetAnswer* answer);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_LOOP_FLEET_H_
