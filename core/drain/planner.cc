#include "core/drain/planner.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/drain/candidate_rounds.h"
#include "core/drain/drain_call.h"
#include "core/drain/drain_memory.h"
#include "core/drain/eligible_nodes.h"
#include "core/drain/hold_back.h"
#include "core/drain/keep_formers.h"
#include "core/drain/node_reason.h"
#include "core/drain/node_trial.h"
#include "core/drain/trial_follower.h"
#include "core/drain/vanished_pods.h"
#include "core/drain/verify.h"

namespace loadline {

namespace {

// The number of nodes that are looked at, for all pods without a place together. Chosen, see TellNearest().
constexpr int64_t kNearestUnits = 20'000;

FormerNode FormerOf(const ReplacedNode& node, const DrainProblem& problem) {
  FormerNode former;
  former.node = std::string(problem.cluster->name(node.slot));
  former.uid = problem.cluster->traits(node.slot).uid;
  former.since_s = problem.now_s;
  for (const DestinationHint& hint : node.hints) {
    former.hints.emplace_back(DrainCall::KeyOfText(hint.pod), hint.node);
  }
  return former;
}

// Nodes that are replaced are tried as if a former plan had them, before all others. Those that it had keep
// their places there, or move where their move says.
void PutReplacedFirst(const DrainProblem& problem, std::vector<FormerEntry>* formers) {
  std::vector<FormerEntry> replaced;
  for (const ReplacedNode& node : problem.replaced) {
    FormerEntry& entry = replaced.emplace_back();
    entry.former = FormerOf(node, problem);
    entry.replaced = true;
    const auto held = std::find_if(formers->begin(), formers->end(), [&](const FormerEntry& former) {
      return former.intact.has_value() ? former.intact->slot == node.slot
                                       : former.former.node == entry.former.node;
    });
    if (held == formers->end()) continue;
    entry.intact = std::move(held->intact);
    if (!entry.intact.has_value() && node.hints.empty()) entry.former = std::move(held->former);
    formers->erase(held);
  }
  formers->insert(formers->begin(), std::make_move_iterator(replaced.begin()),
                  std::make_move_iterator(replaced.end()));
}

// Pods of other nodes are in the trial cluster as they were planned, perhaps on a node that is replaced now,
// or in the room that its pods need. Then all look for their places anew, in their order.
void MakeWayForReplaced(const DrainCall& call, TrialFollower* follower, std::vector<FormerEntry>* formers) {
  const bool needed = std::any_of(formers->begin(), formers->end(), [&](const FormerEntry& entry) {
    return entry.replaced &&
           (!entry.intact.has_value() || follower->trial().received(entry.intact->node) > 0);
  });
  if (!needed) return;
  for (FormerEntry& entry : *formers) {
    if (!entry.intact.has_value()) continue;
    if (!entry.replaced || entry.former.hints.empty()) entry.former = follower->ByNames(*entry.intact);
    follower->Withdraw(call, {&*entry.intact, 1});
    entry.intact.reset();
  }
}

}  // namespace

class DrainPlanner::Impl {
 public:
  void SetState(DrainState state) {
    follower_.Reset();
    ReplaceState(std::move(state));
  }
  void ReplaceState(DrainState state) {
    memory_.Set(std::move(state));
    follower_.Spoil();
    call_.reset();
    plan_ = {};
  }
  DrainState State() const { return memory_.ToState(call_.has_value() ? &*call_ : nullptr); }
  const DrainPlan& Plan(const DrainProblem& problem, const DrainOptions& options, WorkBudget* budget);
  void CheckConsistent() const { follower_.CheckConsistent(memory_.planned()); }
  int64_t count_bytes() const { return follower_.count_bytes(); }

 private:
  std::string PlanNodes(std::vector<FormerEntry> formers, bool same_rules);
  void HoldAll(std::vector<FormerEntry> formers);
  void TellRemovals();
  void TellNearest();

  std::optional<DrainCall> call_;  // the last one
  TrialFollower follower_;
  DrainMemory memory_;
  EligibleNodes eligible_;
  PodCounter counter_;
  DrainPlan plan_;
};

const DrainPlan& DrainPlanner::Impl::Plan(const DrainProblem& problem, const DrainOptions& options,
                                          WorkBudget* budget) {
  memory_.ForgetOldEvictions(problem.now_s, options.recent_eviction_s);
  const std::vector<Slot> order = call_.has_value() ? call_->TakeNodes() : std::vector<Slot>();
  call_.emplace(problem, options, memory_.state(), budget);
  const bool same_rules = memory_.SawSameRules(*call_);
  auto [formers, changes] = follower_.Follow(*call_, memory_.TakePlanned());
  for (FormerNode& former : memory_.TakeTimers()) formers.push_back({std::nullopt, std::move(former)});
  PutReplacedFirst(problem, &formers);
  counter_.Follow(*problem.cluster, changes);
  std::vector<OwnerPods> pods = counter_.counts();

  call_->SetNodes(follower_.trial().snapshot(), formers, order);
  eligible_.Judge(changes, &*call_);
  BrakeFound brake = FindBrake(*call_, memory_.state(), pods);
  if (brake.brake == DrainBrake::kNone) brake = PlacePodsUnderWay(memory_.state(), &*call_, &follower_);
  plan_ = {};
  plan_.brake = brake.brake;
  plan_.brake_text = std::move(brake.text);
  std::string resume_at;
  if (plan_.brake == DrainBrake::kNone) {
    resume_at = PlanNodes(std::move(formers), same_rules);
  } else {
    HoldAll(std::move(formers));
  }
  plan_.cut_short_by = budget->end();
  plan_.evaluated = call_->evaluated;
  plan_.skipped = call_->skipped;
  plan_.behind_budgets = call_->behind_budgets;
  plan_.too_costly_budgets = call_->budgets.TooCostly();
  TellRemovals();
  memory_.Remember(*call_, follower_.trial(), std::move(resume_at), std::move(pods), &plan_);
  TellNearest();
  return plan_;
}

std::string DrainPlanner::Impl::PlanNodes(std::vector<FormerEntry> formers, bool same_rules) {
  const bool anew = formers.empty();
  MakeWayForReplaced(*call_, &follower_, &formers);
  const std::vector<FormerNode> displaced =
      KeepFormers(std::move(formers), same_rules, &*call_, &follower_, &memory_);
  return PlanCandidates(displaced, anew, &*call_, &follower_, &memory_);
}

// With a brake on nothing new is drained.
void DrainPlanner::Impl::HoldAll(std::vector<FormerEntry> formers) {
  KeepTimers(std::move(formers), /*anew=*/plan_.brake == DrainBrake::kUnhealthy, *call_, follower_, &memory_);
  follower_.Spoil();
  const NodeReason reason = plan_.brake == DrainBrake::kRecentEvictions ? NodeReason::kRecentEvictionsWait
                                                                        : NodeReason::kNotUnneededOtherReason;
  for (const Slot slot : call_->nodes()) {
    if (call_->judged(slot).reason == NodeReason::kNone) call_->Note(slot, reason);
  }
}

// Puts the nodes that go into the answer, and says which of them start now.
void DrainPlanner::Impl::TellRemovals() {
  std::vector<PlannedNode>& planned = memory_.planned();
  const Deletions deletions = DecideStarts(planned, memory_.state(), &*call_, &follower_);
  plan_.status = plan_.brake == DrainBrake::kNone ? deletions.status : DrainStatus::kNotTried;
  plan_.limit = deletions.limit;
  plan_.remove.reserve(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    PlannedNode& node = planned[i];
    const DeletionDecision& decision = deletions.decisions[i];
    node.start = decision.start;
    plan_.remove.push_back({.slot = node.slot,
                            .empty = node.empty,
                            .risky = node.risky,
                            .shared_moves = node.moves,
                            .waits_for = node.waits_for,
                            .since_s = node.since_s,
                            .ready_at_s = decision.ready_at_s,
                            .start = decision.start,
                            .waits = decision.waits});
    plan_.price_saved += SavedPrice(*call_->GroupOf(node.slot), node.slot).value_or(0);
  }
}

// Reports for pods without a place the filter of the node that is closest to taking them, in the state that
// the plan leaves. The bound keeps this below a tenth of the time that a plan for 2,000 nodes may take.
void DrainPlanner::Impl::TellNearest() {
  if (!call_->options().tell_nearest) return;
  NearestVerdicts known{.units = kNearestUnits};
  for (DrainKeep& keep : plan_.keep) {
    const bool no_place =
        keep.reason == NodeReason::kNoPlaceToMovePods || keep.reason == NodeReason::kPlaceholdersNeedRoom;
    if (!no_place || !keep.pod.has_value() || known.units < 0) continue;
    keep.nearest = follower_.trial().Nearest(call_->judged(keep.slot).node,
                                             MovingPodOf(*call_, keep.slot, *keep.pod, &follower_), &known);
  }
}

DrainPlanner::DrainPlanner() : impl_(std::make_unique<Impl>()) {}
DrainPlanner::~DrainPlanner() = default;
void DrainPlanner::SetState(DrainState state) { impl_->SetState(std::move(state)); }
void DrainPlanner::ReplaceState(DrainState state) { impl_->ReplaceState(std::move(state)); }
DrainState DrainPlanner::state() const { return impl_->State(); }
const DrainPlan& DrainPlanner::Plan(const DrainProblem& problem, const DrainOptions& options,
                                    WorkBudget* budget) {
  return impl_->Plan(problem, options, budget);
}
int64_t DrainPlanner::count_bytes() const { return impl_->count_bytes(); }

void DrainPlanner::CheckConsistent() const { impl_->CheckConsistent(); }

}  // namespace loadline
