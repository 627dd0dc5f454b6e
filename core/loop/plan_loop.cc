#include "core/loop/plan_loop.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/grow/loop_growth.h"
#include "core/grow/loop_sizes.h"
#include "core/grow/swap.h"
#include "core/grow/waiting.h"
#include "core/loop/cool_down.h"
#include "core/loop/downscale_order.h"
#include "core/loop/judge_slack.h"
#include "core/loop/placeholder_pods.h"
#include "core/loop/slack_question.h"
#include "core/replace/move_holds.h"
#include "core/replace/replacement.h"

namespace loadline {
namespace {

// The parts of the rest of the budget that a phase may take. Chosen: a half each, because the search for
// cheaper growth uses up whatever it gets, and slack and drains must be planned all the same.
constexpr double kForGrowth = 0.5;
constexpr double kForSlack = 0.5;

std::vector<PendingPods> AllThatWait(std::vector<PendingPods> waiting, const ResourceNames& names,
                                     const LoopFacts& facts) {
  for (PendingPods& pods : waiting) {
    if (GivesWay(TraitsOf(pods.pod.shape))) pods.count = 0;
  }
  for (PendingPods& pods : PodsOfNodesBeingDeleted(facts.cluster, facts.deleting)) {
    pods.pod.names = names;
    waiting.push_back(std::move(pods));
  }
  return waiting;
}

// Has pods that are expected on nodes keep these. Pods of nodes being deleted are placed by drains
// themselves, there first.
void KeepPlaces(size_t asked_pods, const LoopPlan& plan, const Snapshot& snapshot, WorkBudget* budget,
                DrainProblem* drain) {
  std::vector<ExpectedPlace> keep;
  for (const ExpectedPlace& place : plan.expected) {
    const size_t position = static_cast<size_t>(place.pods);
    if (position < asked_pods) {
      keep.push_back(place);
    } else if (!place.group.has_value()) {
      drain->replacements.push_back({plan.waiting[position].pod.shape.fingerprint,
                                     std::string(snapshot.name(place.node)), place.count});
    }
  }
  KeepExpected(plan.waiting, keep, snapshot, budget, drain);
}

// Keeps the nodes on which pods that are too young to make groups grow find room, beside those that wait.
void KeepForYoungPods(const std::vector<PendingPods>& young, const FitOptions& fit, const LoopPlan& plan,
                      Snapshot* snapshot, WorkBudget* budget, DrainProblem* drain) {
  if (young.empty()) return;
  snapshot->Fork();
  for (const ExpectedPlace& place : plan.expected) {
    if (place.group.has_value()) continue;
    const PodShape& shape = plan.waiting[static_cast<size_t>(place.pods)].pod.shape;
    const int32_t interned = snapshot->InternShape(shape);
    for (int64_t i = 0; i < place.count; ++i) snapshot->PlacePod(place.node, interned, "", "");
  }
  ExpectOnNodes(young, PodsOfDeleting::kStay, fit, snapshot, budget, drain);
  snapshot->Revert();
}

// With slack left to somebody else its placeholders are pods of the cluster.
std::unique_ptr<DrainProblem> ScaleDownProblem(const LoopProblem& problem, const GrowthLedger& ledger,
                                               const LoopPlan& plan, const SlackState& slack,
                                               Snapshot* snapshot, WorkBudget* budget) {
  auto drain = std::make_unique<DrainProblem>(problem.drain);
  drain->groups = problem.groups;
  for (const GroupIndex group : ledger.counts.indices())
    drain->groups[group].upcoming = ledger.counts[group].upcoming;
  drain->chosen = NodesOfSizes(problem.sized, plan.sizes, &SizeDecision::remove);
  drain->nominated = plan.reserved_nodes;
  for (const ExpectedPlace& place : plan.expected) {
    if (!place.group.has_value()) continue;
    drain->on_the_way.push_back({plan.waiting[static_cast<size_t>(place.pods)].pod, place.count});
  }
  drain->placeholders = PlaceholderPods(slack, plan.slack, ledger.facts->cluster.resource_names());
  KeepPlaces(ledger.facts->asked_pods, plan, *snapshot, budget, drain.get());
  KeepForYoungPods(problem.young, problem.scale_down.fit, plan, snapshot, budget, drain.get());
  return drain;
}

// The pods that new nodes are planned for, by position.
std::vector<size_t> PodsOfNewNodes(const ScaleUpPlan& plan) {
  std::vector<size_t> positions;
  for (const PlannedNodes& nodes : plan.nodes) {
    for (const PodCount& pods : nodes.pods) positions.push_back(static_cast<size_t>(pods.pods));
  }
  return positions;
}

// The pods that nodes on their way take, by position.
std::vector<size_t> PodsOfUpcomingNodes(const std::vector<ExpectedPlace>& expected) {
  std::vector<size_t> positions;
  for (const ExpectedPlace& place : expected) {
    if (place.group.has_value()) positions.push_back(static_cast<size_t>(place.pods));
  }
  return positions;
}

// Plans growth for the pods that have their turn, and lets it wait for further ones.
GroupRooms PlanGrowth(const LoopProblem& problem, Snapshot* snapshot, WorkBudget* budget,
                      GrowthLedger* ledger, LoopPlan* plan) {
  DeferredPods out_of_turn = TakeOutOfTurn(problem.turn, &plan->waiting);
  const std::vector<Slot> untainted = NodesOfSizes(problem.sized, plan->sizes, &SizeDecision::untaint);
  const GrowthQuestion question{problem, plan->waiting, untainted, snapshot, budget};
  GroupRooms rooms;
  {
    const WorkPhase phase(budget, kForGrowth);
    rooms = GrowForPods(question, ledger, plan);
  }
  plan->batch_wait_ms =
      BatchWaitMs(problem.batch, PodsOfNewNodes(plan->scale_up), PodsOfUpcomingNodes(plan->expected));
  if (plan->batch_wait_ms.has_value()) {
    ledger->ForgetPods();
  } else {
    SwapForLess(question, ledger, plan, &rooms);
  }
  plan->next_turn = NextTurn(problem.turn, plan->waiting, plan->scale_up);
  PutBack(problem.turn, std::move(out_of_turn), &plan->waiting, &plan->scale_up);
  return rooms;
}

// Plans slack, and lets groups grow for it whose nodes help.
void PlanSlack(const LoopProblem& problem, GroupRooms rooms, SlackPlanner* slack, Snapshot* snapshot,
               WorkBudget* budget, GrowthLedger* ledger, LoopPlan* plan) {
  for (const GroupIndex group : problem.slack_growth.indices()) {
    if (problem.slack_growth[group].held) ledger->not_for_slack.insert(group);
  }
  StrongVector<SlackGroupIndex, GroupIndex> positions;
  const SlackQuestion question =
      MakeSlackQuestion(problem, *ledger, std::move(rooms), *plan, snapshot, &positions);
  const WorkPhase phase(budget, kForSlack);
  plan->slack = slack->Plan(question, budget);
  if (plan->batch_wait_ms.has_value()) return;
  std::vector<GroupIndex> asked;
  for (const SlackDemand& demand : plan->slack.demands) {
    for (const NewNodesOfGroup& nodes : demand.groups) asked.push_back(positions[nodes.group]);
  }
  plan->judged_for_slack = JudgeSlackGrowth(problem, *plan, *slack, asked, *snapshot);
  for (const JudgedSlackGrowth& judged : plan->judged_for_slack) {
    if (!judged.has_helped) ledger->not_for_slack.insert(judged.group);
  }
  GrowForSlack(plan->slack.demands, positions, ledger);
}

NoScaleDown WhyNoScaleDown(const LoopDecisions& decisions, bool groups_grow) {
  if (!decisions.scale_down) return NoScaleDown::kNotDecided;
  return groups_grow ? NoScaleDown::kGrowing : NoScaleDown::kConsidered;
}

}  // namespace

LoopPlan PlanLoop(const LoopProblem& problem, const LoopPlanners& planners, Snapshot* snapshot,
                  WorkBudget* budget) {
  const LoopFacts facts(problem);
  GrowthLedger ledger(facts);
  LoopPlan plan;
  plan.waiting = AllThatWait(problem.pending, problem.names, facts);
  FollowMoves(problem, snapshot, budget, &ledger, &plan.replacement);
  MoveHolds holds = HoldsOf(facts, plan.replacement.moves);
  plan.sizes = DecideSizes(problem.sized, problem.decisions.scale_up, problem.drain.now_s * 1000, ledger);
  HoldNodesOnTheWay(holds, &ledger.counts);
  snapshot->Fork();
  PlaceReserved(facts.cluster, holds, snapshot);
  GrowForUtilization(problem.sized, plan.sizes, &ledger);
  if (problem.enforce_minima && problem.decisions.scale_up) GrowToMinima(&ledger);
  GroupRooms rooms = PlanGrowth(problem, snapshot, budget, &ledger, &plan);
  if (problem.decisions.slack)
    PlanSlack(problem, std::move(rooms), planners.slack, snapshot, budget, &ledger, &plan);
  snapshot->Revert();
  plan.at_maximum = ledger.AtMaximum();
  const auto groups_grow = [&] { return !ledger.growth.empty() || plan.batch_wait_ms.has_value(); };
  if (problem.decisions.scale_down) {
    std::unique_ptr<DrainProblem> drain =
        ScaleDownProblem(problem, ledger, plan, planners.slack->State(), snapshot, budget);
    BeginMoves(problem, *drain, planners.consolidator, snapshot, budget, &ledger, &plan);
    drain->groups_grow = groups_grow();
    if (!plan.replacement.begun.empty()) holds = HoldsOf(facts, plan.replacement.moves);
    HoldInDrains(holds, drain.get());
    HoldNodesThatCoolDown(drain.get());
    plan.scale_down_problem = std::move(drain);
    plan.scale_down = planners.drain->Plan(*plan.scale_down_problem, problem.scale_down, budget);
    TellEndOfDelays(problem.groups, problem.scale_down.deletion.timers, *plan.scale_down_problem,
                    &plan.scale_down);
    EndStuckMoves(problem, plan.scale_down, &ledger, &plan.replacement);
    if (problem.decisions.downscale_order)
      ChooseNodesToEmpty(problem.downscale_order, problem.drain.group_of, ledger, *snapshot, &plan);
    ExpectWhereDrained(*plan.scale_down_problem, plan.scale_down, planners.slack);
  }
  plan.no_scale_down = WhyNoScaleDown(problem.decisions, groups_grow());
  HoldBackTaints(problem.sized, &plan);
  plan.growth = std::move(ledger.growth);
  plan.take_back = std::move(ledger.take_back);
  return plan;
}

}  // namespace loadline
