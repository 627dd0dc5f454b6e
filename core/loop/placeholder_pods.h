// Placeholders of slack as pods that a drain has to find room for.
#ifndef LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_
#define LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_

#include <vector>

#include "core/drain/planner.h"
#include "core/slack/slack_plan.h"

namespace loadline {

// Those of `state` that are on a node, by id. A copy of a pod is a pod like it; others go where their class
// lets them: onto nodes with its labels, but for the instance type, and they tolerate its taints.
// `plan` is the one that left the state, for a cluster of these `names`. Cost: O(placeholders).
std::vector<DrainPlaceholder> PlaceholderPods(const SlackState& state, const SlackPlan& plan,
                                              const ResourceNames& names);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_
