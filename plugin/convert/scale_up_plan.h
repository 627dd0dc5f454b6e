// Encodes the answers of EstimateScaleUp and PlanScaleUp.
#ifndef LOADLINE_PLUGIN_CONVERT_SCALE_UP_PLAN_H_
#define LOADLINE_PLUGIN_CONVERT_SCALE_UP_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/snapshot.h"
#include "core/expand/estimate.h"
#include "core/expand/plan.h"
#include "loadline/v1/scale_up_plan.pb.h"
#include "plugin/convert/pod_entries.h"

namespace loadline {

absl::StatusOr<EstimateMode> DecodeMode(v1::EstimateScaleUpRequest::Mode mode);

v1::GroupEstimate EncodeEstimate(const std::string& name, const NodeEstimate& estimate, PodEntries entries);
// Pods that are refused for one reason come as one, in the order of the first.
void EncodeRefusals(const std::vector<PodRefusal>& refusals, const PodEntries& entries,
                    v1::GroupEstimate* message);
void EncodeExisting(const std::vector<ExistingUse>& uses, const Snapshot& snapshot, PodEntries* entries,
                    google::protobuf::RepeatedPtrField<v1::ExistingPlacement>* message);

// `groups`: those of the request; `positions`: of the planned groups among them. Existing placements are
// there already.
void EncodePlan(const ScaleUpPlan& plan, const NodeGroups& groups,
                const StrongVector<GrowableIndex, GroupIndex>& positions, PodEntries* entries,
                v1::PlanScaleUpResponse* response);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_SCALE_UP_PLAN_H_
