// Questions about what a cluster must cost, and answers.
#ifndef LOADLINE_PLUGIN_CONVERT_CONSOLIDATE_H_
#define LOADLINE_PLUGIN_CONVERT_CONSOLIDATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/consolidate/consolidation.h"
#include "core/drain/drain_question.h"
#include "core/observe/derived_groups.h"
#include "core/price/price_tally.h"
#include "core/replace/consolidation_question.h"
#include "loadline/v1/consolidate.pb.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/scale_up_problem.h"

namespace loadline {

// A policy of consolidation without a cluster.
struct DecodedConsolidationPolicy {
  ConsolidationOptions options;  // without the filters
  DisturbancePrices prices;
  // Only loops read them: see LoopReplacement.
  int64_t rest_s = 1'800;
  TimeWindows windows;
};

// Errors: kInvalidArgument  names the field
absl::StatusOr<DecodedConsolidationPolicy> DecodeConsolidationPolicy(const v1::ConsolidationPolicy& message);

// The parts that a question about a loop has as well; without a cluster.
v1::PlanLoopRequest LoopPart(const v1::PlanConsolidationRequest& request);

// `prices`: of the nodes of all groups. If they are mostly estimated, the message has no bound.
v1::ConsolidationBill EncodeBill(const ConsolidationBill& bill, const PriceTally& prices);
// Returns the derived groups, which are those of `drain`, with what a new node is and costs by `prices`.
NodeGroups DerivedLoopGroups(const DerivedGroups& derived, const DrainProblem& drain,
                             const StartupTaints& startup_taints, const PriceModel& prices);

// Adds to the response the nodes of each derived group, what a new node of it offers, and how many machines
// state no type. `groups`: as DerivedLoopGroups() returned them. `names`: of the resources of the cluster.
void EncodeDerivedGroups(const DerivedGroups& derived, const NodeGroups& groups, const ResourceNames& names,
                         v1::PlanConsolidationResponse* response);

// Fills in everything except the objects that were left out. `groups`: those with which `question` was
// prepared. `options`: those of the plan. Lists the first moves and the first nodes that stay, as many as fit
// into a bounded answer.
void EncodeConsolidation(const ConsolidationPlan& plan, const ConsolidationOptions& options,
                         const ConsolidationQuestion& question, const DrainProblem& drain,
                         const NodeGroups& groups, const PriceTally& prices,
                         v1::PlanConsolidationResponse* response);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_CONSOLIDATE_H_
