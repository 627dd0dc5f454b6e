// One iteration of an autoscaler: pods that wait find places, groups grow for the rest, slack is kept, and
// unneeded nodes are removed, unless groups grow.
#ifndef LOADLINE_CORE_LOOP_PLAN_LOOP_H_
#define LOADLINE_CORE_LOOP_PLAN_LOOP_H_

#include "core/base/work_budget.h"
#include "core/cluster/snapshot.h"
#include "core/consolidate/consolidator.h"
#include "core/drain/planner.h"
#include "core/grow/loop_plan.h"
#include "core/grow/loop_problem.h"
#include "core/slack/slack_planner.h"

namespace loadline {

// The planners that are kept from one iteration to the next; their states say all that counts.
struct LoopPlanners {
  SlackPlanner* slack;
  DrainPlanner* drain;
  // The planner of moves, which remembers failed attempts; nullptr: nothing is remembered.
  Consolidator* consolidator = nullptr;
};

// Plans one iteration. `snapshot` is one of problem.drain.cluster and is as before when the call returns.
//
// Groups that are sized come first: nodes that they ask for count as on their way, and those that lose their
// taint take pods. Placeholders of slack and pods below the expendable priority hold nothing against pods
// that wait. Nodes on their way, then new ones, take placeholders where pods leave room for them, before more
// is asked for. Nodes are asked to go with the pods that are expected on them. Drains are planned in every
// loop, so that timers go on; while groups grow none starts, and while pods wait for nodes on their way those
// nodes stay that would have to take them if none came.
//
// Growth may take half of the budget, slack half of what growth leaves, the search for moves half of what is
// left then, and drains the rest, so that none of them keeps the others from being planned.
//
// Where growth is cut short before all pods have a place, only some namespaces take part in the next plan of
// growth, and others in the one after it: pods that cost more than there is keep no others waiting for ever.
// Pods that do not take part are reported as pods without a place, in a plan that is cut short.
//
// While pods still come that need new nodes, growth for pods and slack waits, see LoopProblem::batch: one
// plan for all of them costs less than one for each handful.
//
// Where nodes are replaced, moves that are carried out come first, see replacement.h: nothing else uses the
// nodes that come for them, nor the places of their pods. New moves begin where nothing else is in progress.
//
// Deterministic. Cost: that of PlanScaleUp() or PlanRankedScaleUp() when pods wait, of SlackPlanner::Plan(),
// and of DrainPlanner::Plan().
LoopPlan PlanLoop(const LoopProblem& problem, const LoopPlanners& planners, Snapshot* snapshot,
                  WorkBudget* budget);

}  // namespace loadline

#endif  // LOADLINE_CORE_LOOP_PLAN_LOOP_H_
