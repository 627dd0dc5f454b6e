// The proposal's formulas over a whole cluster.
#ifndef LOADLINE_CORE_SLACK_LITERAL_PLAN_H_
#define LOADLINE_CORE_SLACK_LITERAL_PLAN_H_

#include "core/slack/slack_options.h"
#include "core/slack/slack_plan.h"
#include "core/slack/slack_rooms.h"

namespace loadline {

// Returns the sum of the proposal's formulas over all nodes and pods of `rooms`. Cost: O(nodes + pods).
LiteralSlackPlan LiteralPlan(const SlackRooms& rooms, const SlackOptions& options);

}  // namespace loadline

#endif  // LOADLINE_CORE_SLACK_LITERAL_PLAN_H_
