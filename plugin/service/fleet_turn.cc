#include "plugin/service/fleet_turn.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/loop/downscale_order.h"
#include "core/loop/kept.h"
#include "core/loop/loop_timers.h"
#include "core/observe/loop_memory_bytes.h"
#include "core/replace/replacement.h"
#include "plugin/convert/size.h"

namespace loadline {

// The next question has room for all that a memory keeps.
static_assert(size_t{kMaxSizedGroups} == kMostSizedGroups);

absl::StatusOr<std::unique_ptr<FleetTurn>> FleetTurn::Begin(const v1::PlanLoopRequest& request,
                                                            const DecodedProblem& growth,
                                                            const LoopDecisions& decisions,
                                                            QuestionCluster* cluster) {
  const View& view = cluster->view();
  std::unique_ptr<FleetTurn> turn(new FleetTurn(&view));
  absl::StatusOr<DecodedLoopFleet> fleet = DecodeLoopFleet(request, growth, decisions, view.cluster());
  if (!fleet.ok()) return fleet.status();
  turn->fleet_ = *std::move(fleet);
  if (!request.fleet().state().empty()) {
    absl::StatusOr<LoopMemory> memory = DecodeLoopMemory(request.fleet().state());
    if (memory.ok()) {
      turn->memory_ = *std::move(memory);
    } else {  // a loop must go on without it: the times of all machines begin anew
      turn->state_problem_ = absl::StrCat("state: ", memory.status().message());
    }
  }
  turn->findings_ = ObserveLoop(view.cluster(), turn->fleet_.seen, turn->fleet_.outcomes,
                                turn->fleet_.options, turn->fleet_.now_ms, &turn->memory_);
  cluster->Show(NodesAsPlanned(view.cluster(), turn->findings_));
  return turn;
}

void FleetTurn::Describe(const ScalableGroups& stated, DecodedProblem* decoded) const {
  for (const GroupIndex group : findings_.groups.indices()) {
    const GroupFindings& of = findings_.groups[group];
    DescribeByNodes(view_.cluster(), stated, of.examples.empty() ? of.going : of.examples, of.lacking, group,
                    decoded);
  }
}

void FleetTurn::AddProgress(v1::PlanDrainRequest* drain) const {
  for (const std::vector<NodeMark>* marks : {&findings_.marked.abandoned, &findings_.marked.stuck}) {
    for (const NodeMark& mark : *marks) {
      drain->mutable_progress()->add_failed(std::string(view_.cluster().name(mark.slot)));
    }
  }
}

std::vector<TimedNode> FleetTurn::Timers(int64_t now_s, int64_t ttl_s) const {
  return KnownTimers(memory_, view_.cluster(), now_s, ttl_s);
}

v1::SizeState FleetTurn::Sizes(const v1::SizeState& of_view) const {
  v1::SizeState sizes;
  for (const v1::GroupSizeState& size : of_view.groups()) {
    if (!memory_.sizes.contains(size.node_group())) *sizes.add_groups() = size;
  }
  for (const auto& [group, size] : memory_.sizes) *sizes.add_groups() = EncodeState(group, size);
  return sizes;
}

void FleetTurn::UseSlack(const LoopProblem& problem, SlackPlanner* slack) const {
  UseKeptSlack(memory_, problem.decisions, slack);
}

void FleetTurn::Use(LoopProblem* problem) const {
  ApplyFindings(findings_, fleet_.cloud_template, view_.cluster(), problem);
  UseRememberedMoves(memory_, fleet_.options.fleet.after_add_ms, fleet_.now_ms, &problem->replacement);
  problem->downscale_order = memory_.downscale_order;
  BeginBatch(memory_, fleet_.now_ms, &problem->batch);
}

void FleetTurn::NoteHeld(const StrongVector<GroupIndex, std::string>& held) {
  for (const GroupIndex group : held.indices()) {
    if (findings_.groups[group].held.empty()) findings_.groups[group].held = held[group];
  }
}

void FleetTurn::HoldVainGrowth(Snapshot* snapshot, WorkBudget* budget, LoopProblem* problem) {
  vain_ = loadline::HoldVainGrowth(fleet_.options.fleet.back_off, fleet_.now_ms, snapshot, budget, problem,
                                   &memory_);
}

v1::LoopFleetAnswer FleetTurn::Finish(const LoopProblem& problem, const LoopPlan& plan,
                                      const SlackPlanner& slack) {
  const ClusterState& cluster = view_.cluster();
  NoteBatch(plan, fleet_.now_ms, &memory_);
  NoteTimers(plan, cluster, &memory_);
  if (fleet_.options.acts) NoteMoves(plan, &memory_);
  if (fleet_.options.acts) NoteGrowth(fleet_.options.fleet.back_off, problem, plan, fleet_.now_ms, &memory_);
  for (std::string& text : TextsOf(vain_, problem, fleet_.now_ms))
    findings_.warnings.push_back(std::move(text));
  NoteDownscaleOrder(plan, cluster, &memory_);
  NoteKept(problem.groups, problem.sized, plan.sizes, problem.decisions.slack ? &slack : nullptr, &memory_);
  const std::vector<LoopAction> actions =
      ActionsOf(fleet_.seen, findings_, plan, cluster, fleet_.options, fleet_.now_ms, &memory_);
  v1::LoopFleetAnswer answer = EncodeLoopFleet(fleet_.seen, findings_, problem, plan, actions);
  answer.set_timers_run(!vain_.empty() || TimersRun(fleet_.seen, findings_, problem.sized, plan));
  answer.set_state(EncodeLoopMemory(memory_));
  answer.set_state_problem(state_problem_);
  return answer;
}

void FleetTurn::TellWhyNoGrowth(const LoopProblem& problem, const LoopPlan& plan, const PodEntries& entries,
                                Snapshot* snapshot, WorkBudget* budget, v1::LoopFleetAnswer* answer) const {
  std::vector<RefusedPods> refused = RefusedByNewNodes(problem, plan, snapshot, budget);
  // Such a group refuses the pods by a rule that HoldVainGrowth() gives them.
  for (const VainGrowth& vain : vain_) {
    for (RefusedPods& kind : refused) {
      if (kind.pods != vain.pods) continue;
      const std::string why = absl::StrCat("does not grow again yet, as its last new node refused such pods",
                                           vain.reason.empty() ? "" : ": ", vain.reason);
      kind.by_group[vain.group] = {0, Refusal(FilterName::kNone, StatusClass::kUnschedulable, {why})};
    }
  }
  EncodeWhyNoGrowth(fleet_.seen, findings_, problem, plan, refused, entries, answer);
}

}  // namespace loadline
