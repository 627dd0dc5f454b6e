// Encodes what a loop says about nodes that are replaced.
#ifndef LOADLINE_PLUGIN_CONVERT_REPLACEMENT_H_
#define LOADLINE_PLUGIN_CONVERT_REPLACEMENT_H_

#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "loadline/v1/loop.pb.h"
#include "plugin/convert/consolidate.h"

namespace loadline {

// The policy as a loop reads it, without what the last loop remembered.
void UseConsolidationPolicy(const DecodedConsolidationPolicy& policy, ReplacementPolicy* replacement);

// Cost: O(nodes) with moves.
v1::LoopReplacement EncodeReplacement(const LoopPlan& plan, const LoopProblem& problem);

}  // namespace loadline

#endif  // LOADLINE_PLUGIN_CONVERT_REPLACEMENT_H_
