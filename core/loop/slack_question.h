// Makes the question to slack, and uses what slack learns of the drains that follow.
#ifndef LOADLINE_CORE_LOOP_SLACK_QUESTION_H_
#define LOADLINE_CORE_LOOP_SLACK_QUESTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/grow/loop_growth.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"

namespace loadline {

// Slack of the cluster with the pods that wait where they are expected, on nodes that are there, on their way
// or new. `positions`: of the groups of the question, in LoopProblem::groups. All of it, and `snapshot`,
// outlives the question.
SlackQuestion MakeSlackQuestion(const LoopProblem& problem, const GrowthLedger& ledger, GroupRooms rooms,
                                const LoopPlan& plan, Snapshot* snapshot,
                                StrongVector<SlackGroupIndex, GroupIndex>* positions);

// Placeholders of nodes whose drain starts go where the drain found room for them: another order might not
// find it, and buy nodes for what was there.
void ExpectWhereDrained(const DrainProblem& problem, const DrainPlan& plan, SlackPlanner* slack);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_SLACK_QUESTION_H_
