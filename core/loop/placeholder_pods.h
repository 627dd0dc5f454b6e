// Placeholders of slack as pods that a drain has to find room for.
#ifndef LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_
#define LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/drain/planner.h"
#include "core/slack/slack_plan.h"

namespace loadline {

// Returns the placeholders of `state` that are on a node, by id. A copy of a pod is a pod like it; others may
// be where the rules of their class let them. `plan` is the one that left the state, for a cluster of these
// `names`.
// Cost: O(placeholders).
std::vector<DrainPlaceholder> PlaceholderPods(const SlackState& state, const SlackPlan& plan,
                                              const ResourceNames& names);

// The id of a placeholder that has this name; nullopt: it is none of slack.
std::optional<int64_t> SlackPlaceholder(absl::string_view name);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLACEHOLDER_PODS_H_
