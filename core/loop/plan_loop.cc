#include "core/loop/plan_loop.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/drain/being_deleted.h"
#include "core/loop/cool_down.h"
#include "core/loop/downscale_order.h"
#include "core/loop/loop_growth.h"
#include "core/loop/loop_resources.h"
#include "core/loop/loop_sizes.h"
#include "core/loop/minimum_growth.h"
#include "core/loop/move_holds.h"
#include "core/loop/placeholder_pods.h"
#include "core/loop/replacement.h"
#include "core/loop/slack_question.h"
#include "core/loop/swap.h"
#include "core/loop/waiting.h"

namespace loadline {
namespace {

// The parts of the rest of the budget that a phase may take. Chosen: a half each, because the search for
// cheaper growth uses up whatever it gets, and slack and drains must be planned all the same.
constexpr double kForGrowth = 0.5;
constexpr double kForSlack = 0.5;
constexpr double kForMoves = 0.5;

std::vector<PendingPods> AllThatWait(const LoopProblem& problem) {
  std::vector<PendingPods> waiting = problem.pending;
  for (PendingPods& pods : waiting) {
    if (GivesWay(TraitsOf(pods.pod.shape))) pods.count = 0;
  }
  const ClusterState& cluster = *problem.drain.cluster;
  const std::vector<Slot> deleting = NodesBeingDeleted(cluster, problem.deleting, problem.drain.now_s);
  for (PendingPods& pods : PodsOfNodesBeingDeleted(cluster, deleting)) {
    pods.pod.names = problem.names;
    waiting.push_back(std::move(pods));
  }
  return waiting;
}

bool GroupsGrow(const LoopPlan& plan) { return !plan.growth.empty() || plan.batch_wait_ms.has_value(); }

// Has pods that are expected on nodes keep these. Pods of nodes being deleted are placed by drains
// themselves, there first.
void KeepPlaces(const LoopProblem& problem, const LoopPlan& plan, const Snapshot& snapshot,
                WorkBudget* budget, DrainProblem* drain) {
  std::vector<ExpectedPlace> keep;
  for (const ExpectedPlace& place : plan.expected) {
    const size_t position = static_cast<size_t>(place.pods);
    if (position < problem.pending.size()) {
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
std::unique_ptr<DrainProblem> ScaleDownProblem(const LoopProblem& problem, const CountsOfGroups& counts,
                                               const LoopPlan& plan, const SlackState& slack,
                                               Snapshot* snapshot, WorkBudget* budget) {
  auto drain = std::make_unique<DrainProblem>(problem.drain);
  drain->groups = problem.groups;
  for (const GroupIndex group : counts.indices()) drain->groups[group].upcoming = counts[group].upcoming;
  drain->chosen = NodesOfSizes(problem.sized, plan.sizes, &SizeDecision::remove);
  drain->nominated = plan.reserved_nodes;
  for (const ExpectedPlace& place : plan.expected) {
    if (!place.group.has_value()) continue;
    drain->on_the_way.push_back({plan.waiting[static_cast<size_t>(place.pods)].pod, place.count});
  }
  drain->placeholders = PlaceholderPods(slack, plan.slack, problem.drain.cluster->resource_names());
  KeepPlaces(problem, plan, *snapshot, budget, drain.get());
  KeepForYoungPods(problem.young, problem.scale_down.fit, plan, snapshot, budget, drain.get());
  return drain;
}

GroupRooms PlanGrowthPhase(const LoopProblem& problem, const CountsOfGroups& counts, Snapshot* snapshot,
                           WorkBudget* budget, LoopPlan* plan) {
  const WorkPhase phase(budget, kForGrowth);
  return GrowForPods(problem, counts, snapshot, budget, plan);
}

void LookForMoves(const LoopProblem& problem, const CountsOfGroups& counts, const DrainProblem& drain,
                  Consolidator* consolidator, Snapshot* snapshot, WorkBudget* budget, LoopPlan* plan) {
  Consolidator anew;
  const WorkPhase phase(budget, kForMoves);
  BeginMoves(problem, counts, drain, consolidator != nullptr ? consolidator : &anew, snapshot, budget, plan);
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
std::vector<size_t> PodsOfUpcomingNodes(const LoopPlan& plan) {
  std::vector<size_t> positions;
  for (const ExpectedPlace& place : plan.expected) {
    if (place.group.has_value()) positions.push_back(static_cast<size_t>(place.pods));
  }
  return positions;
}

// Takes growth for pods out of a plan that waits for further ones.
void HoldGrowthForPods(LoopPlan* plan) {
  for (LoopGrowth& growth : plan->growth) growth.for_pods = 0;
  std::erase_if(plan->growth, [](const LoopGrowth& growth) { return growth.nodes() == 0; });
}

NoScaleDown WhyNoScaleDown(const LoopDecisions& decisions, const LoopPlan& plan) {
  if (!decisions.scale_down) return NoScaleDown::kNotDecided;
  return GroupsGrow(plan) ? NoScaleDown::kGrowing : NoScaleDown::kConsidered;
}

}  // namespace

absl::string_view Name(NoScaleDown why) {
  switch (why) {
    case NoScaleDown::kConsidered:
      return "considered";
    case NoScaleDown::kNotDecided:
      return "decided elsewhere";
    case NoScaleDown::kGrowing:
      return "groups grow";
  }
  return "invalid reason";
}

LoopPlan PlanLoop(const LoopProblem& problem, const LoopPlanners& planners, Snapshot* snapshot,
                  WorkBudget* budget) {
  LoopPlan plan;
  plan.waiting = AllThatWait(problem);
  DeferredPods out_of_turn = TakeOutOfTurn(problem.turn, &plan.waiting);
  CountsOfGroups counts = CountNodes(problem);
  FollowMoves(problem, snapshot, budget, &plan);
  const MoveHolds holds = HoldsOf(problem, plan);
  plan.room = RoomOfCluster(problem, counts);
  plan.sizes = DecideSizes(problem, counts, plan.room);
  HoldNodesOnTheWay(holds, &counts);
  snapshot->Fork();
  PlaceReserved(*problem.drain.cluster, holds, snapshot);
  GrowForUtilization(problem, &counts, &plan);
  GrowToMinima(problem, &counts, &plan);
  GroupRooms rooms = PlanGrowthPhase(problem, counts, snapshot, budget, &plan);
  plan.batch_wait_ms = BatchWaitMs(problem.batch, PodsOfNewNodes(plan.scale_up), PodsOfUpcomingNodes(plan));
  if (plan.batch_wait_ms.has_value()) HoldGrowthForPods(&plan);
  SwapForLess(problem, counts, snapshot, budget, &plan, &rooms);
  plan.next_turn = NextTurn(problem.turn, plan.waiting, plan.scale_up);
  PutBack(problem.turn, std::move(out_of_turn), &plan.waiting, &plan.scale_up);
  if (problem.decisions.slack) {
    StrongVector<SlackGroupIndex, GroupIndex> positions;
    const SlackQuestion question =
        MakeSlackQuestion(problem, counts, std::move(rooms), plan, snapshot, &positions);
    const WorkPhase phase(budget, kForSlack);
    plan.slack = planners.slack->Plan(question, budget);
    if (!plan.batch_wait_ms.has_value()) GrowForSlack(problem, counts, positions, &plan);
  }
  snapshot->Revert();
  plan.at_maximum = GroupsAtMaximum(problem, plan);
  if (problem.decisions.scale_down) {
    std::unique_ptr<DrainProblem> drain =
        ScaleDownProblem(problem, counts, plan, planners.slack->State(), snapshot, budget);
    LookForMoves(problem, counts, *drain, planners.consolidator, snapshot, budget, &plan);
    drain->groups_grow = GroupsGrow(plan);
    HoldInDrains(problem, HoldsOf(problem, plan), drain.get());
    HoldNodesThatCoolDown(drain.get());
    plan.scale_down_problem = std::move(drain);
    plan.scale_down = planners.drain->Plan(*plan.scale_down_problem, problem.scale_down, budget);
    TellEndOfDelays(problem.groups, problem.scale_down.deletion.timers, *plan.scale_down_problem,
                    &plan.scale_down);
    EndStuckMoves(problem, snapshot, budget, &plan);
    ChooseNodesToEmpty(problem, counts, *snapshot, &plan);
    ExpectWhereDrained(*plan.scale_down_problem, plan.scale_down, planners.slack);
  }
  plan.no_scale_down = WhyNoScaleDown(problem.decisions, plan);
  HoldBackTaints(problem.sized, &plan);
  return plan;
}

}  // namespace loadline
