// Judges whether nodes that came for slack help.
#ifndef LOADLINE_CORE_LOOP_JUDGE_SLACK_H_
#define LOADLINE_CORE_LOOP_JUDGE_SLACK_H_

#include <span>
#include <vector>

#include "core/cluster/snapshot.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// Judges the nodes of LoopProblem::slack_growth by the plan of slack. They have helped where one of them
// holds a placeholder, runs pods that do not belong to it, or is where pods are expected or nominated: then
// others have taken the room. They have not where slack asks for more nodes of the group and all of them are
// empty. `groups_that_are_asked`: with a demand of slack. Returns what is certain, in the order of the
// groups: nothing where the plan was cut short. The snapshot has the pods of moves in their new places. Cost:
// O(placeholders + expected pods) where nodes came, else O(groups).
std::vector<JudgedSlackGrowth> JudgeSlackGrowth(const LoopProblem& problem, const LoopPlan& plan,
                                                const SlackPlanner& slack,
                                                std::span<const GroupIndex> groups_that_are_asked,
                                                const Snapshot& snapshot);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_JUDGE_SLACK_H_
